// What all commands that create or change something have in common: who must have it before they end, what becomes of
// an answer that is late for that, and what of an object an update sends back unseen.

import { type Command, Option } from 'commander';
import { type Answer, type CallName, definitionOf } from '../client/call-types.ts';
import { ClientError } from '../client/client-error.ts';
import type { Session } from './session.ts';

export interface AckOptions {
  readonly ack?: string;
}

export function addAckFlag(command: Command): void {
  const says =
    'who must have it before this ends: the primary, a majority of the datacenters, or all';
  command.addOption(new Option('--ack <level>', says).choices(['primary', 'majority', 'all']));
}

/** What a call adds to its input. */
interface Asked {
  readonly query: AckOptions;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Writes with what the flags ask, and shows what was written, also where it is late: where the answer is that not as
 * many have the write in time, it is asked for once more, by the name of the request, without waiting for anybody. With
 * it a secret would be lost that nobody else has. Throws behind it that it is late, so that the command fails.
 */
export async function writeAndShow<Value>(
  { surroundings }: Session,
  { ack }: AckOptions,
  write: (asked: Asked) => Promise<Answer<Value>>,
  show: (value: Value) => Promise<void>,
): Promise<void> {
  if (ack === undefined) return show((await write({ query: {}, headers: {} })).value);
  const id = Buffer.from(surroundings.randomBytes(REQUEST_ID_BYTES)).toString('hex');
  const headers = { 'x-service-request-id': id };
  const inTime = await write({ query: { ack }, headers }).catch(lateIn);
  if (!(inTime instanceof ClientError)) return show(inTime.value);
  const again = write({ query: { ack: 'primary' }, headers });
  await show((await again.catch(() => Promise.reject(inTime))).value);
  throw inTime;
}

const REQUEST_ID_BYTES = 16;

/** The error, where it says that the write stands, and did not come to as many datacenters in time as it was to. */
function lateIn(error: unknown): ClientError {
  if (error instanceof ClientError && error.code === 'wait-timeout') return error;
  throw error;
}

/**
 * What `read` gave of an object and this release does not know. A server of a later one sends it, and would take what
 * an update leaves out for taken away: it may be what narrows a right down.
 */
export function unknownIn(read: CallName, current: object): object {
  const { properties } = definitionOf(read).answer as { readonly properties?: object };
  return unknownBeside(properties ?? {}, current);
}

/** What `current` has besides what `known` names. */
export function unknownBeside(known: object, current: object): object {
  return Object.fromEntries(Object.entries(current).filter(([field]) => !(field in known)));
}
