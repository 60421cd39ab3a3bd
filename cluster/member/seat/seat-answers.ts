// What a member answers to other nodes about the group: who it is and who leads, whether they may join,
// what became of a founding; and what it is told. Nobody speaks for another node or another cluster.

import { FOUNDING_TERM } from '../../log/cluster-identity.ts';
import type { DurableLog } from '../../log/durable-log.ts';
import type { MemberRecord } from '../../replica/group-record.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import { tooOldText } from '../../transport/handshake/hello-check.ts';
import type { RpcRequest } from '../../transport/transport.ts';
import { fateOf } from '../founding/founding.ts';
import type { Leading } from '../leading/leading.ts';
import type { HandlerByMethod } from '../member-calls.ts';
import {
  decodeFoundingOrder,
  decodeIntroduction,
  decodeText,
  encodeFateAnswer,
  encodeIntroduction,
  encodeText,
  type Introduction,
} from '../member-frames.ts';

export interface SeatAnswersOptions {
  readonly clusterId: string;
  readonly self: () => MemberRecord;
  readonly log: DurableLog;
  readonly leading: Leading;
  readonly introduction: () => Introduction;
  /** The level of what the group's log may say. */
  readonly uses: () => number;
  /** A node of this cluster says where it is. */
  readonly onHeard: (member: MemberRecord) => void;
  /** A node of this cluster says that this one was removed. */
  readonly onRemovedTold: () => void;
}

export function answersOf(options: SeatAnswersOptions): HandlerByMethod {
  return {
    'member.intro': async (request) => onIntroduction(options, request),
    'member.join': (request) => onJoin(options, request),
    'member.removed': async (request) => onRemovedTold(options, request),
    'member.promise': async () => refuseFounding(options),
    'member.found': async (request) => onFounded(options, request),
    'member.fate': async (request) => onFateAsked(options, request),
  };
}

function onIntroduction(
  { clusterId, introduction, onHeard }: SeatAnswersOptions,
  request: RpcRequest,
): Uint8Array {
  const said = introductionOf(request);
  if (said.clusterId === clusterId) onHeard(said.record);
  return encodeIntroduction(introduction());
}

async function onJoin(
  { clusterId: own, leading, uses }: SeatAnswersOptions,
  request: RpcRequest,
): Promise<Uint8Array> {
  const { record, clusterId } = introductionOf(request);
  if (clusterId !== '' && clusterId !== own) {
    throw new RpcRefusal('other-cluster', `${record.name} belongs to the cluster ${clusterId}`);
  }
  // The level may have risen since the handshake.
  const { reads } = request.from;
  if (reads < uses()) {
    throw new RpcRefusal('too-old', tooOldText(record.name, { reads, uses: uses() }));
  }
  await leading.admit({ record, isOurs: clusterId === own });
  return encodeText(own);
}

function onRemovedTold(options: SeatAnswersOptions, { payload }: RpcRequest): Uint8Array {
  const { clusterId } = options;
  if (decodeText(payload) !== clusterId) {
    throw new RpcRefusal('other-cluster', 'this server belongs to another cluster');
  }
  options.onRemovedTold();
  return encodeText(clusterId);
}

function refuseFounding({ self }: SeatAnswersOptions): never {
  throw new RpcRefusal('has-cluster', `server ${self().name} belongs to a cluster already`);
}

/** Told once more by a founder that did not hear the answer. */
function onFounded(options: SeatAnswersOptions, { payload }: RpcRequest): Uint8Array {
  const { clusterId } = decodeFoundingOrder(payload);
  return clusterId === options.clusterId ? encodeText(clusterId) : refuseFounding(options);
}

function onFateAsked(
  { clusterId, self, log }: SeatAnswersOptions,
  { payload }: RpcRequest,
): Uint8Array {
  const fate = fateOf(decodeText(payload), { clusterId, promise: undefined });
  const payloads = fate === 'founded' ? foundingEntriesOf(log) : [];
  return encodeFateAnswer({ answererId: self().id, fate, payloads });
}

/** The entries by which the group was founded, if the log has them still: no election is of that term. */
function foundingEntriesOf(log: DurableLog): readonly Uint8Array[] {
  const payloads: Uint8Array[] = [];
  if (log.firstIndex !== 1) return payloads;
  for (let index = 1; index <= log.lastIndex; index += 1) {
    const { term, type, payload } = log.entry(index);
    if (term !== FOUNDING_TERM || type !== 'membership') break;
    payloads.push(payload);
  }
  return payloads;
}

/** A node speaks for itself only. */
function introductionOf({ payload, from }: RpcRequest): Introduction {
  const introduction = decodeIntroduction(payload);
  if (introduction.record.id === from.id) return introduction;
  throw new RpcRefusal('not-yours', `node ${from.id} speaks for node ${introduction.record.id}`);
}
