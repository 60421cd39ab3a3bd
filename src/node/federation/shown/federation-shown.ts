// How the datacenters stand to each other, of what this server knows: as the leader of the primary what
// all of them have acknowledged, as the leader of a secondary how far it is itself, else who they are.

import type { RemovedClaim } from '../../../../cluster/federation/directory/directory.ts';
import { DEFAULT_FEED_LIMITS } from '../../../../cluster/federation/feed/feed-limits.ts';
import type { Refused } from '../../../../cluster/federation/feed/feed-server.ts';
import type { FollowerState, FollowerView } from '../../../../cluster/federation/feed/follower.ts';
import type {
  SubscriberKind,
  SubscriberState,
} from '../../../../cluster/federation/feed/subscriber-record.ts';
import { positionText } from '../../../../cluster/federation/global-log.ts';
import type {
  DatacenterState,
  ShownDatacenter,
  ShownFederation,
} from '../../../api/render/shown-federation.ts';
import type { Primacy } from '../../../service/datacenters/federation.ts';
import { epochAt } from '../../../state/global-log/chain.ts';
import type { Position } from '../../../state/global-log/cursor.ts';
import { type Replication, removedOf } from '../../../state/global-log/replication.ts';
import type { AheadOutside } from '../gate/outside-places.ts';

export interface KnownFederation {
  readonly own: string;
  /** The own one first; without those that were removed. */
  readonly names: readonly string[];
  readonly primary: Primacy;
  /** Whom a datacenter that was removed takes for the primary; undefined where it was not heard. */
  readonly claimOfRemoved: (datacenter: string) => RemovedClaim | undefined;
  /** Since a datacenter that was removed has said something; undefined: it was not heard. */
  readonly silenceOfRemoved: (datacenter: string) => number | undefined;
  /** Those that were removed, and have more of a reign of this datacenter than it has. */
  readonly aheadOutside: readonly AheadOutside[];
  readonly isPrimary: boolean;
  readonly replication: Replication | undefined;
  readonly position: Position;
  /** At the leader of the primary. */
  readonly followers: readonly FollowerView[];
  /** How long this server has led the primary; undefined where it does not. */
  readonly ledForMs: number | undefined;
  /** As leader of the primary: why one that is there does not follow; undefined where that is not so. */
  readonly refused: (datacenter: string) => Refused | undefined;
  readonly majoritySeq: number;
  /** At the leader of a secondary. */
  readonly subscriber: SubscriberState | undefined;
  readonly nowMs: number;
}

export function federationShown(known: KnownFederation): ShownFederation {
  const { names, own, primary, position, replication, subscriber } = known;
  const removed = removedOf(replication).filter((name) => !names.includes(name));
  const witnesses = witnessesOf(replication);
  const headSeq = Math.max(position.seq, subscriber?.news?.headSeq ?? 0);
  return {
    primary,
    tableIndexes: subscriber?.figures,
    head: { epoch: Math.max(position.epoch, subscriber?.news?.epoch ?? 0), seq: headSeq },
    majority: majorityOf(known),
    datacenters: [
      ...names.map((name) => ({
        ...(name === own ? ownOf(known) : otherOf(known, name)),
        isWitness: witnesses.has(name),
      })),
      ...removed.map((name) => removedOne(name, known)),
    ],
  };
}

/** Its reign matters where it would win over the present one, or could not be told from it. */
function removedOne(
  name: string,
  { aheadOutside, claimOfRemoved, nowMs, own, primary, silenceOfRemoved }: KnownFederation,
): ShownDatacenter {
  const lastContactMs = silenceOfRemoved(name);
  const shown = { ...unknown(name), state: 'removed', lastContactMs } as const;
  const ahead = aheadOutside.find(({ datacenter }) => datacenter === name);
  if (ahead !== undefined) {
    const { upTo, end, heardAtMs: lastErrorMs } = ahead;
    const lastError = `it has ${positionText(upTo)} of a reign of ${own}, of which there is ${positionText(end)} here`;
    return { ...shown, ahead: { upTo, end }, lastErrorMs, lastError };
  }
  const claim = claimOfRemoved(name);
  if (claim === undefined || claim.epoch < primary.epoch) return shown;
  const { datacenter, epoch, ageMs } = claim;
  if (epoch === primary.epoch && datacenter === primary.datacenter) return shown;
  const lastError = `it takes ${datacenter} for the primary, of epoch ${epoch}`;
  return { ...shown, rival: { datacenter, epoch }, lastErrorMs: nowMs - ageMs, lastError };
}

function witnessesOf(replication: Replication | undefined): ReadonlySet<string> {
  const all = replication?.datacenters ?? [];
  return new Set(all.filter(({ isWitness }) => isWitness).map(({ name }) => name));
}

/** Alone, a datacenter is all there are. */
function majorityOf(known: KnownFederation): Position | undefined {
  const { isPrimary, replication, position, majoritySeq } = known;
  if (replication === undefined) return isPrimary ? position : undefined;
  if (majoritySeq === 0) return undefined;
  return { epoch: epochAt(replication.epochs, majoritySeq), seq: majoritySeq };
}

function ownOf({ own, isPrimary, position, subscriber }: KnownFederation): ShownDatacenter {
  const self = { ...unknown(own), isSelf: true, position, lastContactMs: 0 };
  if (isPrimary) return { ...self, state: 'primary', lagEntries: 0, lagBytes: 0, lagMs: 0 };
  if (subscriber === undefined) return self;
  const { kind, lagBytes, lagEntries, lagMs, lastAppliedAtMs, lastError, news } = subscriber;
  const isCurrent = kind === 'tail' && lagEntries === 0;
  return {
    ...self,
    state: STATE_OF_SUBSCRIBER[kind],
    lagEntries,
    lagBytes,
    differences: subscriber.differenceCount,
    lagMs,
    lastSuccessMs: isCurrent ? news?.nowMs : lastAppliedAtMs,
    lastErrorMs: lastError?.atMs,
    lastError: lastError?.text ?? '',
  };
}

const STATE_OF_SUBSCRIBER: Readonly<Record<SubscriberKind, DatacenterState>> = {
  idle: 'unknown',
  connecting: 'away',
  'catching-up': 'catching-up',
  tail: 'live',
  snapshot: 'snapshot',
  diverged: 'stopped',
  fenced: 'away',
  refused: 'stopped',
};

function otherOf(known: KnownFederation, name: string): ShownDatacenter {
  const { followers, nowMs } = known;
  const follower = followers.find(({ datacenter }) => datacenter === name);
  if (follower === undefined) {
    const refused = known.refused(name);
    if (refused === undefined) return { ...unknown(name), state: stateOfUnheard(known, name) };
    const { says: lastError, atMs: lastErrorMs } = refused;
    return { ...unknown(name), state: 'stopped', lastError, lastErrorMs };
  }
  const { acked, lagBytes, lagEntries, lagMs, lastError, lastHeardMs, state } = follower;
  return {
    ...unknown(name),
    state: STATE_OF_FOLLOWER[state],
    position: acked && { epoch: acked.epoch, seq: acked.seq },
    lagEntries,
    lagBytes,
    lagMs,
    lastContactMs: lastHeardMs,
    lastSuccessMs: lagEntries === 0 ? nowMs - lastHeardMs : undefined,
    lastErrorMs: lastError?.atMs,
    lastError: lastError?.text ?? '',
    differences: follower.differenceCount,
  };
}

/** Whoever leads the primary hears everybody who is there within seconds: of the others it knows that they are away. */
function stateOfUnheard({ primary, ledForMs = 0 }: KnownFederation, name: string): DatacenterState {
  if (name === primary.datacenter) return 'primary';
  return ledForMs > DEFAULT_FEED_LIMITS.silentMs ? 'away' : 'unknown';
}

const STATE_OF_FOLLOWER: Readonly<Record<FollowerState, DatacenterState>> = {
  tail: 'live',
  'catching-up': 'catching-up',
  snapshot: 'snapshot',
  diverged: 'stopped',
  differs: 'differs',
  silent: 'away',
};

function unknown(name: string): ShownDatacenter {
  return {
    name,
    isSelf: false,
    isWitness: false,
    state: 'unknown',
    position: undefined,
    lagEntries: undefined,
    lagBytes: undefined,
    lagMs: undefined,
    lastContactMs: undefined,
    lastSuccessMs: undefined,
    lastErrorMs: undefined,
    lastError: '',
    differences: 0,
    rival: undefined,
    ahead: undefined,
  };
}
