// Whether there is a federation already, asked before a datacenter begins one by its settings. A primary of
// before that has lost all its disks has the settings of one that starts for the first time: what it began beside
// the others would be a second world, with nothing in it. Who does not answer is not waited for: at the first
// start of all, the others are not there yet.

import {
  DIRECTORY_METHOD,
  type DirectoryRecord,
  decodeRecords,
  encodeRecords,
} from '../../../../cluster/federation/directory/directory-frames.ts';
import { FEED_REFUSAL } from '../../../../cluster/federation/feed/feed-session.ts';
import { REMOVED_REFUSAL } from '../../../../cluster/federation/refuse-outsiders.ts';
import type { Clock } from '../../../../cluster/platform/clock.ts';
import type { NetAddress } from '../../../../cluster/platform/net.ts';
import { RpcError } from '../../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCaller } from '../../../../cluster/transport/transport.ts';
import type { CallAddress } from '../calls/datacenter-calls.ts';

export interface ElsewhereOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  /** It has objects, which taking part would cost it. */
  readonly hasWritten: boolean;
  /** `retry_join_wan`. */
  readonly seeds: readonly NetAddress[];
  /** Rejects with RpcError. */
  readonly call: CallAddress;
}

/** Of those who answer. */
const CALL_MS = 3_000;
/** Where nobody answers, they are asked again: after a power cut the others start at the same time. */
const PATIENCE_MS = 5_000;
const RETRY_MS = 250;

type Answer =
  | { readonly kind: 'silent' }
  /** It belongs to none, and has not heard of one. */
  | { readonly kind: 'none' }
  | { readonly kind: 'federation'; readonly says: string };

const SILENT: Answer = { kind: 'silent' };

/** Why no other federation may begin, and what to do; undefined where nobody who answers knows of one. */
export async function federationElsewhere(options: ElsewhereOptions): Promise<string | undefined> {
  const { clock, seeds } = options;
  const untilMs = clock.monotonicMs() + PATIENCE_MS;
  for (;;) {
    const answers = await Promise.all(seeds.map((seed) => answerAt(seed, options)));
    const found = answers.find((answer) => answer.kind === 'federation');
    if (found !== undefined) return found.says;
    const isAnswered = answers.some(({ kind }) => kind === 'none');
    if (isAnswered || clock.monotonicMs() >= untilMs) return undefined;
    await new Promise<void>((resolve) => {
      clock.after(RETRY_MS, resolve);
    });
  }
}

async function answerAt(
  seed: NetAddress,
  { call, datacenter, hasWritten }: ElsewhereOptions,
): Promise<Answer> {
  let who: RpcCaller | undefined;
  const refuses = (each: RpcCaller): string | undefined => {
    who = each.datacenter === datacenter ? undefined : each;
    return who === undefined ? 'it is of this datacenter' : undefined;
  };
  const payload = encodeRecords([]);
  const request = { method: DIRECTORY_METHOD, payload, deadlineMs: CALL_MS, hops: 0, refuses };
  try {
    const records = decodeRecords(await call(seed, request));
    return toldBy(who, { datacenter, hasWritten, records, refusal: undefined });
  } catch (error) {
    const refusal = error instanceof RpcError ? error.refusal : undefined;
    const isOutside = refusal?.code === REMOVED_REFUSAL || refusal?.code === FEED_REFUSAL.stranger;
    const says = isOutside ? refusal?.says : undefined;
    const told = { datacenter, hasWritten, records: [], refusal: says };
    const answer = toldBy(who, told);
    return answer.kind === 'none' ? SILENT : answer;
  }
}

interface Told extends Pick<ElsewhereOptions, 'datacenter' | 'hasWritten'> {
  readonly records: readonly DirectoryRecord[];
  /** It has no part in the federation of who was asked. */
  readonly refusal: string | undefined;
}

function toldBy(
  who: RpcCaller | undefined,
  { datacenter, hasWritten, records, refusal }: Told,
): Answer {
  if (who === undefined) return SILENT;
  const others = records.filter((each) => each.datacenter !== datacenter);
  const federated = others.filter(({ federationId }) => federationId !== '');
  const federationId = who.federationId || (federated[0]?.federationId ?? '');
  if (federationId === '' && refusal === undefined) return { kind: 'none' };
  const [latest] = federated.sort((one, other) => other.epoch - one.epoch);
  const primary = latest?.primary ? `, of which ${latest.primary} is the primary` : '';
  const first = refusal === undefined ? '' : `${refusal}. `;
  const says = `${datacenter} begins no global log of its own: ${who.datacenter} is of federation ${federationId || 'another'}${primary}. ${first}${wayOnOf(datacenter, hasWritten)}`;
  return { kind: 'federation', says };
}

function wayOnOf(datacenter: string, hasWritten: boolean): string {
  const toTakePart = `set primary_datacenter to the present primary on all servers of ${datacenter}, and start them again`;
  if (!hasWritten) return `To take part, ${toTakePart}`;
  return (
    `It has objects of its own and goes on alone: take retry_join_wan back on its servers. To give them up and take ` +
    `part, keep an archive, ${toTakePart} with empty data folders`
  );
}
