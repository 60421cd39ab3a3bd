// How much of the log a release can read, as one number. Every command has the level that it came with; a
// datacenter uses a level when a command in its log says so, and its leader proposes nothing above it. A
// level is raised only when all who will read the log can: see docs/decisions/0036.

import type { GlobalEntry } from '../global-log/global-entry.ts';
import { nameClusters, type Replication } from '../global-log/replication.ts';
import type { Change, ChangeType, Command } from './commands.ts';

/** Of the first release, and of every log that says nothing of levels. */
export const FIRST_LEVEL = 1;

/** What this release reads. */
export const NEWEST_LEVEL = 8;

/** A level is never given another meaning: a new command, or another layout of one, has a new level. */
const LEVEL_OF_CHANGE: Readonly<Record<ChangeType, number>> = {
  'token.set': 1,
  'token.delete': 1,
  'token.reap': 1,
  'policy.set': 1,
  'policy.delete': 1,
  'role.set': 1,
  'role.delete': 1,
  'auth-method.set': 1,
  'auth-method.delete': 1,
  'binding-rule.set': 1,
  'binding-rule.delete': 1,
  'namespace.set': 1,
  'namespace.delete': 1,
  bootstrap: 1,
  'ensure-builtins': 1,
  'request-id.trim': 1,
  'pending-login.set': 1,
  'pending-login.delete': 1,
  'restore.begin': 1,
  'restore.chunk': 1,
  'restore.commit': 1,
  'restore.abandon': 1,
  'global-log.begin': 2,
  'global-log.apply': 2,
  'global-log.trim': 2,
  'request-id.forget': 2,
  'datacenters.set': 2,
  'global-snapshot.begin': 2,
  'global-snapshot.chunk': 2,
  'global-snapshot.carry': 2,
  'global-snapshot.commit': 2,
  'epoch.promise': 2,
  'epoch.start': 2,
  'epoch.fence': 2,
  'divergent.discard': 2,
  'divergent.drop': 2,
  'datacenter.remove': 2,
  'datacenter.allow': 2,
  'federation.adopt': 2,
  'level.raise': 2,
};

/** From which on a datacenter has a global log: who reads less has no part in one. */
export const GLOBAL_LOG_LEVEL = LEVEL_OF_CHANGE['global-log.begin'];

/**
 * Whether requests are remembered until a command names them: where there is a global log, and from that command's
 * level on. Elsewhere their age counts, by the clocks of leaders: see docs/decisions/0007.
 */
export function forgetsByName(level: number, replication: Replication | undefined): boolean {
  return replication !== undefined || level >= LEVEL_OF_CHANGE['request-id.forget'];
}

/**
 * Whether whoever waits on a fork sets more apart for a later reign that left the chain before that fork, and takes
 * nothing of a fork for what has its name and CreateIndex elsewhere. Commands of before say so, which older
 * releases apply otherwise.
 */
export function isStrictOnForks(level: number): boolean {
  return level >= FROM_FORK_LEVEL;
}

/**
 * Whether what is remembered of a deletion says that it was of a local token. What does not is of what all share then,
 * and a snapshot of the primary knows it better.
 */
export function tellsLocalDeletions(level: number): boolean {
  return level >= LOCAL_DELETIONS_LEVEL;
}

/**
 * Whether a row that comes with a restore, or with a snapshot of the primary, is refused where it cannot be read.
 * Releases of before took it, and ended at the first command that met it: so what they did is done below that level.
 */
export function isStrictOnRows(level: number): boolean {
  return level >= STRICT_ROWS_LEVEL;
}

/**
 * Whether what a restore left behind in the log is set apart with the rest of a fork where it is still there. Releases
 * of before count it as gone, and drop it: so what they did is done below that level.
 */
export function setsApartUnused(level: number): boolean {
  return level >= UNUSED_APART_LEVEL;
}

/**
 * Whether the management token of the settings is made only where there was no bootstrap yet. Releases of before make
 * it wherever no token has its secret, also where it was deleted: so it is done below that level.
 */
export function bootstrapsOnce(level: number): boolean {
  return level >= BOOTSTRAP_ONCE_LEVEL;
}

/**
 * Whether a token that all share, and is deleted, leaves alone what is remembered of a namespace that was lost.
 * Releases of before counted it as one of the void local tokens where its index is not above theirs: so it is done
 * below that level.
 */
export function countsLostAlone(level: number): boolean {
  return level >= LOST_ALONE_LEVEL;
}

/**
 * Whether a local token whose auth method was made on a fork ends with the fork also where the method was deleted on
 * it. Releases of before looked at methods that are there, and took one of the next reign with that CreateIndex for it.
 */
export function endsWithLostMethod(level: number): boolean {
  return level >= LOST_METHOD_LEVEL;
}

/**
 * Whether a local token that a snapshot has already is changed there whatever is known of the fork by then. Releases
 * of before asked anew whether it ends with the fork, and left it there as it was before the change.
 */
export function changesCarried(level: number): boolean {
  return level >= CARRIED_LEVEL;
}

/**
 * Whether what a snapshot remembers of a request stays where what was remembered here of the same one, on a fork, is
 * forgotten before the snapshot is the state. Releases of before forgot both, and kept the time of the other.
 */
export function keepsArrivedRequests(level: number): boolean {
  return level >= ARRIVED_REQUESTS_LEVEL;
}

/**
 * Whether an entry that comes is on the chain from then on, whatever was said of its place while another reign had left
 * the chain before it. Releases of before go on to say that: so it is done below that level.
 */
export function takesBackOnChain(level: number): boolean {
  return level >= BACK_ON_CHAIN_LEVEL;
}

/** Whether all servers tell their leader what their clocks show: from the release on that reads this level. */
export function tellsClocks(level: number): boolean {
  return level >= CLOCKS_LEVEL;
}

/** Whether the list of datacenters may say which cluster has each name: older releases would leave that out. */
export function namesClusters(level: number): boolean {
  return level >= CLUSTERS_LEVEL;
}

/** The level that whoever applies the command must read. */
export function levelOf(change: Change): number {
  if (change.type === 'token.set' && change.presence === 'create-drawn') return DRAWN_LEVEL;
  if (change.type === 'epoch.start' && change.isFromFork) return FROM_FORK_LEVEL;
  if (change.type === 'datacenters.set' && nameClusters(change.datacenters)) return CLUSTERS_LEVEL;
  return LEVEL_OF_CHANGE[change.type];
}

/**
 * The level that whoever takes the entry must read. The feed gives nothing to those who use less than the primary, so
 * it asks this of none; what a candidate lacks is given by whoever has it.
 */
export function levelOfEntry({ body }: Pick<GlobalEntry, 'body'>): number {
  const doesName = body.kind === 'datacenters' && nameClusters(body.datacenters);
  return doesName ? CLUSTERS_LEVEL : GLOBAL_LOG_LEVEL;
}

const DRAWN_LEVEL = 2;
const FROM_FORK_LEVEL = 3;
const LOCAL_DELETIONS_LEVEL = 4;
const STRICT_ROWS_LEVEL = 5;
const CLUSTERS_LEVEL = 4;
const UNUSED_APART_LEVEL = 6;
const BOOTSTRAP_ONCE_LEVEL = 7;
const CLOCKS_LEVEL = 7;
const LOST_ALONE_LEVEL = 8;
const LOST_METHOD_LEVEL = 8;
const CARRIED_LEVEL = 8;
const ARRIVED_REQUESTS_LEVEL = 8;
const BACK_ON_CHAIN_LEVEL = 8;

/**
 * The command in words that everybody reads who reads the level. Undefined where there are none: it must
 * wait until the level is raised.
 */
export function readableAt(level: number, command: Command): Command | undefined {
  const { change } = command;
  if (levelOf(change) <= level) return command;
  if (change.type === 'token.set') return { ...command, change: { ...change, presence: 'create' } };
  return undefined;
}
