// Who may write the global log next: a vote among datacenters, each of which is a group that agrees on
// its own log, so that a promise is as durable as any write. These are the rules of Raft's election, one
// level up: one promise an epoch, and only to a candidate that lacks nothing that the voter has. Pure.

import { comparePlaces, type Position } from './cursor.ts';
import { currentEpoch, type Datacenter, type Replication } from './replication.ts';

export interface Candidacy {
  readonly epoch: number;
  readonly candidate: string;
  /** How far the candidate is. */
  readonly at: Position;
}

/** Whether the datacenter may promise. The same promise twice is one promise. */
export function mayPromise(replication: Replication, candidacy: Candidacy): boolean {
  const { epoch, candidate, at } = candidacy;
  const { datacenter, maxEpochPromised, votedFor, cursor, datacenters } = replication;
  // What a datacenter is it knows itself, also where the list does not say so yet.
  if (replication.isWitness && candidate === datacenter) return false;
  const isElectable = datacenters.some(
    ({ name, isWitness, isRemoved }) => name === candidate && !isWitness && isRemoved !== true,
  );
  const isFree = epoch > maxEpochPromised || (epoch === maxEpochPromised && votedFor === candidate);
  return isElectable && isFree && comparePlaces(at, cursor) >= 0;
}

export interface EpochClaim {
  readonly epoch: number;
  /** Datacenters that promised. */
  readonly promises: readonly string[];
  /** An operator takes the loss of what others may have. */
  readonly isForced: boolean;
  /** It knows that it stands on a fork: what it set apart becomes part of the log again. */
  readonly isFromFork: boolean;
}

/** Whether the datacenter may begin the epoch as its primary. */
export function mayStart(
  replication: Replication,
  { epoch, promises, isForced, isFromFork }: EpochClaim,
): boolean {
  const { datacenter, maxEpochPromised, votedFor, isDiverged, isWitness } = replication;
  if (isDiverged !== isFromFork || isWitness) return false;
  if (epoch <= currentEpoch(replication).epoch) return false;
  const isOwnPromise = epoch === maxEpochPromised && votedFor === datacenter;
  if (isForced) return isOwnPromise || epoch > maxEpochPromised;
  return isOwnPromise && hasMajority(replication.datacenters, [datacenter, ...promises]);
}

/**
 * Whom this datacenter has promised a later epoch to, when it is the last primary that it knows of: nobody may
 * be primary until an entry of that epoch comes. Undefined where it is not so.
 */
export function successorIn(replication: Replication): string | undefined {
  const { datacenter, maxEpochPromised, votedFor, isDiverged } = replication;
  const { epoch, primary } = currentEpoch(replication);
  const isGivenAway = primary === datacenter && maxEpochPromised > epoch && votedFor !== datacenter;
  return isGivenAway && !isDiverged ? votedFor : undefined;
}

/**
 * Whether this datacenter, the last primary that it knows of, has promised itself a later epoch that it has not begun:
 * nobody is primary.
 */
export function isRenewingIn(replication: Replication): boolean {
  const { datacenter, maxEpochPromised, votedFor, isDiverged } = replication;
  const { epoch, primary } = currentEpoch(replication);
  const isOwn = primary === datacenter && votedFor === datacenter && !isDiverged;
  return isOwn && maxEpochPromised > epoch;
}

/** Whether more than half of the voters are among the names. */
function hasMajority(datacenters: readonly Datacenter[], names: readonly string[]): boolean {
  const voters = datacenters.filter(({ isVoter }) => isVoter);
  const promised = voters.filter(({ name }) => names.includes(name));
  return promised.length * 2 > voters.length;
}

/**
 * Whether the primary may say that there are these datacenters from now on: one is added, removed or
 * changed at a time, the clusters of any number become known, and the voters change only when a majority has the
 * last change and an entry of this epoch (so that two majorities always meet). `majoritySeq`: up to here a majority
 * has the log.
 */
export function mayChangeDatacenters(
  replication: Replication,
  next: readonly Datacenter[],
  majoritySeq: number,
): boolean {
  const { datacenter, datacenters, datacentersSeq, cursor } = replication;
  const own = next.find(({ name }) => name === datacenter);
  const isOrdered = next.every(({ name }, place) => place === 0 || name > next[place - 1]!.name);
  if (!isOrdered || own === undefined || !own.isVoter || own.isWitness) return false;
  if (differences(datacenters, next) > 1 || !keepsClusters(datacenters, next)) return false;
  const isSole = votersOf(datacenters).length === 1;
  if (isSole || votersOf(datacenters).join(' ') === votersOf(next).join(' ')) return true;
  const { startSeq } = currentEpoch(replication);
  return majoritySeq <= cursor.seq && majoritySeq >= Math.max(startSeq, datacentersSeq);
}

/** A cluster that has a name keeps it until an operator removes the datacenter. */
function keepsClusters(datacenters: readonly Datacenter[], next: readonly Datacenter[]): boolean {
  return datacenters.every(({ name, clusterId }) => {
    const then = next.find((each) => each.name === name);
    return clusterId === undefined || then?.isRemoved === true || then?.clusterId === clusterId;
  });
}

function votersOf(datacenters: readonly Datacenter[]): readonly string[] {
  return datacenters.filter(({ isVoter }) => isVoter).map(({ name }) => name);
}

/** How many datacenters are in one list alone, or are not the same in both, whatever is known of clusters. */
function differences(left: readonly Datacenter[], right: readonly Datacenter[]): number {
  const names = new Set([...left, ...right].map(({ name }) => name));
  return [...names].filter((name) => textOf(left, name) !== textOf(right, name)).length;
}

function textOf(datacenters: readonly Datacenter[], wanted: string): string {
  const found = datacenters.find(({ name }) => name === wanted);
  if (found === undefined) return '';
  return `${found.isVoter} ${found.isWitness} ${found.isRemoved === true}`;
}
