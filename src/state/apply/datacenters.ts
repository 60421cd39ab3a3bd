// Which datacenters there are, as all of them know it, and to which federation they belong. Each change of
// the list is an entry of the global log, one at a time.

import { AclError, invalid } from '../../acl/error.ts';
import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import { mayChangeDatacenters } from '../global-log/election.ts';
import {
  currentEpoch,
  type Datacenter,
  isStranger,
  type Replication,
  removedOf,
} from '../global-log/replication.ts';
import type { VerdictAnswer } from '../global-log/verdict.ts';
import type { ApplyContext } from './checks.ts';
import { verdictOf } from './global-log.ts';

/** The list is written with every global change: so many that were removed are remembered at most. */
const REMOVED_MAX = 64;

export function applyDatacentersSet(
  context: ApplyContext,
  { datacenters, majoritySeq }: ChangeOf<'datacenters.set'>,
): VerdictAnswer {
  const { changes } = context;
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  // Only an operator removes one, and lets it back.
  const hasSameRemoved = removedOf(replication).join() === removedOf({ datacenters }).join();
  if (!hasSameRemoved || !mayChangeDatacenters(replication, datacenters, majoritySeq)) {
    return verdictOf(changes, 'not-allowed');
  }
  if (!isSame(replication.datacenters, datacenters)) say(context, replication, datacenters);
  return verdictOf(changes, 'applied');
}

export function applyDatacenterRemove(
  context: ApplyContext,
  { name, majoritySeq, isForced }: ChangeOf<'datacenter.remove'>,
): Answer {
  const replication = logOf(context);
  const removed = removedOf(replication);
  if (removed.includes(name)) return { type: 'deleted', existed: false };
  if (name === replication.datacenter) {
    throw invalid(`Datacenter ${name} is the primary: move the primary to another one first`);
  }
  if (removed.length >= REMOVED_MAX) {
    throw invalid(`${REMOVED_MAX} datacenters are removed already: allow some of them first`);
  }
  const gone: Datacenter = { name, isVoter: false, isWitness: false, isRemoved: true };
  const next = byName([...without(replication, name), gone]);
  if (!isForced && !mayChangeDatacenters(replication, next, majoritySeq)) {
    throw new AclError(
      'unavailable',
      `Nothing was changed: a majority of datacenters has not yet what the primary wrote of late (entry ${neededSeq(replication)}); where one of them is lost for good, force it`,
    );
  }
  say(context, replication, next);
  return { type: 'deleted', existed: true };
}

export function applyDatacenterAllow(
  context: ApplyContext,
  { name }: ChangeOf<'datacenter.allow'>,
): Answer {
  const replication = logOf(context);
  if (!removedOf(replication).includes(name)) return { type: 'deleted', existed: false };
  say(context, replication, without(replication, name));
  return { type: 'deleted', existed: true };
}

export function applyFederationAdopt(
  { changes }: ApplyContext,
  { federationId }: ChangeOf<'federation.adopt'>,
): VerdictAnswer {
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  if (isStranger(replication, { federationId })) return verdictOf(changes, 'stranger');
  if (replication.federationId === '') changes.changeReplication({ ...replication, federationId });
  return verdictOf(changes, 'applied');
}

/** A datacenter has no ModifyIndex that could be compared. Throws the refusal. */
function logOf({ changes, cas }: ApplyContext): Replication {
  if (cas !== undefined) throw invalid('A datacenter has no ModifyIndex: cas compares nothing');
  if (changes.replication !== undefined) return changes.replication;
  throw invalid('There is no global log here yet: no other datacenter has joined');
}

function say(
  { changes, timeMs, principal }: ApplyContext,
  replication: Replication,
  datacenters: readonly Datacenter[],
): void {
  const { epoch } = currentEpoch(replication);
  const origin = { timeMs, principal, request: undefined };
  changes.appendEntry({ kind: 'datacenters', datacenters }, origin, epoch);
}

/** Up to here a majority must have the log before the voters change. */
function neededSeq(replication: Replication): number {
  return Math.max(currentEpoch(replication).startSeq, replication.datacentersSeq);
}

function without({ datacenters }: Replication, name: string): readonly Datacenter[] {
  return datacenters.filter((each) => each.name !== name);
}

function byName(datacenters: readonly Datacenter[]): readonly Datacenter[] {
  return [...datacenters].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function isSame(left: readonly Datacenter[], right: readonly Datacenter[]): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
