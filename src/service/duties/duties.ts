// The leader's housekeeping: the objects that must exist are made, what is void or too old is deleted.
// One call is one pass; how often, and on which node, is for the caller to say.

import {
  anonymousToken,
  builtinPolicies,
  defaultNamespace,
  initialManagementToken,
} from '../../acl/built-in/built-ins.ts';
import { AclError } from '../../acl/error.ts';
import type { AccessorId } from '../../acl/ids.ts';
import { GLOBAL_MANAGEMENT_RULES, GLOBAL_READ_ONLY_RULES } from '../../rules/built-in-rules.ts';
import type { Change } from '../../state/commands/commands.ts';
import { forgetsByName } from '../../state/commands/feature-levels.ts';
import { IN_ONE_PIECE_BYTES } from '../../state/in-one-piece.ts';
import type { FoundTokens } from '../../state/reads/void-tokens.ts';
import { REQUEST_MEMORY_MS } from '../../state/rows/bookkeeping.ts';
import { RESTORE_IDLE_MS } from '../../state/rows/restore-progress.ts';
import type { ServiceDeps } from '../deps.ts';
import type { RequestAges } from './request-ages.ts';
import type { VoidTokenRounds } from './void-token-rounds.ts';

/** Most objects of one kind that a pass looks at and deletes: applying them must not keep the event loop for long. */
export const REAP_BATCH_MAX = 512;

export type DutyDeps = Pick<
  ServiceDeps,
  'view' | 'clock' | 'agreedMs' | 'random' | 'propose' | 'federation' | 'metrics' | 'settings'
>;

/** What the leader's clock-work keeps from pass to pass. */
export interface DutyMemory {
  readonly ages: RequestAges;
  readonly rounds: VoidTokenRounds;
}

/** What one pass found. */
export interface ReapReport {
  /** Whether another pass would find more at once. */
  readonly isMore: boolean;
  readonly expiredTokens: number;
  readonly orphanedTokens: number;
  readonly oldRequests: number;
  readonly oldPendingLogins: number;
}

/** What making the built-ins needs. */
export type BuiltinDeps = Omit<DutyDeps, 'federation' | 'agreedMs'> & Pick<ServiceDeps, 'logger'>;

/**
 * Makes the built-ins that are missing, and the management token of the settings where there was no bootstrap yet: it
 * is one, and a bootstrap is done once. Rejects when the log does not take the command.
 */
export async function ensureBuiltins(deps: BuiltinDeps): Promise<void> {
  const { view, clock, random, settings, logger } = deps;
  const nowMs = clock.wallMs();
  const { initialManagementSecret: secretId } = settings;
  const management =
    secretId === undefined || view.bootstrapIndex() !== undefined
      ? []
      : [initialManagementToken({ accessorId: random.uuid() as AccessorId, secretId, nowMs })];
  await perform(deps, {
    type: 'ensure-builtins',
    policies: builtinPolicies({
      globalManagement: GLOBAL_MANAGEMENT_RULES,
      globalReadOnly: GLOBAL_READ_ONLY_RULES,
    }),
    tokens: [anonymousToken(nowMs), ...management],
    namespace: defaultNamespace(),
  });
  if (secretId === undefined || view.tokenBySecret(secretId) !== undefined) return;
  const says = 'acl.tokens.initial_management makes no token: there was a bootstrap before';
  logger.warn({}, says);
}

/** One pass over everything that grows old. Proposes nothing when there is nothing to do. */
export async function reapOnce(deps: DutyDeps, { ages, rounds }: DutyMemory): Promise<ReapReport> {
  const { view, clock, federation } = deps;
  const nowMs = clock.wallMs();
  // What all share is deleted only where it may be written.
  const isLocalOnly = federation.closedBecause() !== undefined;
  rounds.begin({ nowMs, isLocalOnly });
  const dueMs = await dueUpTo(deps, { nowMs, isLocalOnly, after: rounds.expired });
  const expired = await reapFound(
    deps,
    (limit) => view.expiredTokens({ nowMs: dueMs, isLocalOnly, after: rounds.expired, limit }),
    (found) => rounds.expiredDone(found),
  );
  const orphaned = await reapFound(
    deps,
    (limit) => view.orphanedTokens({ isLocalOnly, after: rounds.orphaned, limit }),
    (found) => rounds.orphanedDone(found),
  );
  const requests = await forgetRequests(deps, ages);
  const logins = await view.oldPendingLogins(nowMs, REAP_BATCH_MAX);
  if (logins.length > 0) await perform(deps, { type: 'pending-login.delete', keys: logins });
  const restore = view.restoreUnderWay();
  if (restore !== undefined && restore.timeMs + RESTORE_IDLE_MS <= nowMs) {
    await perform(deps, { type: 'restore.abandon', id: restore.id });
  }
  return {
    // Orphans that are left to the primary are come by again in any case.
    isMore:
      !expired.isEnd ||
      (!orphaned.isEnd && orphaned.count > 0) ||
      Math.max(requests, logins.length) >= REAP_BATCH_MAX,
    expiredTokens: expired.count,
    orphanedTokens: orphaned.count,
    oldRequests: requests,
    oldPendingLogins: logins.length,
  };
}

/**
 * Tokens that expired before it are deleted: this server's clock alone does not say so. Where nothing has expired by
 * that one, nobody is asked.
 */
async function dueUpTo(
  deps: DutyDeps,
  search: Omit<Parameters<DutyDeps['view']['expiredTokens']>[0], 'limit'>,
): Promise<number> {
  const { looked } = await deps.view.expiredTokens({ ...search, limit: 1 });
  return looked === 0 ? search.nowMs : Math.min(search.nowMs, await deps.agreedMs());
}

/** As many as a pass may look at, in pieces. What a piece has found is done when it is deleted. */
async function reapFound<Place>(
  deps: DutyDeps,
  search: (limit: number) => Promise<FoundTokens<Place>>,
  onDone: (found: FoundTokens<Place>) => void,
): Promise<{ readonly count: number; readonly isEnd: boolean }> {
  let count = 0;
  for (let left = REAP_BATCH_MAX; left > 0; ) {
    const found = await search(left);
    await reap(deps, found.accessorIds);
    onDone(found);
    count += found.accessorIds.length;
    left -= found.looked;
    if (found.isEnd) return { count, isEnd: true };
  }
  return { count, isEnd: false };
}

/** How many were forgotten. Where releases may still run that do not forget by name, the times in the state decide. */
async function forgetRequests(deps: DutyDeps, ages: RequestAges): Promise<number> {
  const { view, clock } = deps;
  const nowMs = clock.wallMs();
  if (!forgetsByName(view.usesLevel, view.replication())) {
    const keys = await view.oldRequests(nowMs - REQUEST_MEMORY_MS, REAP_BATCH_MAX);
    if (keys.length > 0) await perform(deps, { type: 'request-id.trim', keys });
    return keys.length;
  }
  ages.note(clock.monotonicMs(), view.index());
  const below = ages.dueBelow(clock.monotonicMs());
  if (below === undefined) return 0;
  const orBeforeMs = nowMs - REQUEST_MEMORY_MS;
  let count = 0;
  for (let left = REAP_BATCH_MAX; left > 0; ) {
    const search = { below, orBeforeMs, after: ages.after, limit: left };
    const { keys, looked, next } = await view.requestsBelow(search);
    if (keys.length > 0) await perform(deps, { type: 'request-id.forget', keys });
    ages.looked(next);
    count += keys.length;
    left = next === undefined || keys.length === 0 ? 0 : left - looked;
  }
  return count;
}

/** Long ones few at a time: every server reads them in one piece. */
async function reap(deps: DutyDeps, accessorIds: readonly AccessorId[]): Promise<void> {
  for (let at = 0; at < accessorIds.length; ) {
    const portion: AccessorId[] = [];
    for (let bytes = 0; at < accessorIds.length && bytes < IN_ONE_PIECE_BYTES; at += 1) {
      portion.push(accessorIds[at]!);
      bytes += deps.view.tokenBytes(accessorIds[at]!);
    }
    await perform(deps, { type: 'token.reap', accessorIds: portion });
    deps.metrics.count('acl.token.reaped', {}, portion.length);
  }
}

async function perform(deps: Pick<DutyDeps, 'clock' | 'propose'>, change: Change): Promise<void> {
  const timeMs = deps.clock.wallMs();
  const outcome = await deps.propose({ change, timeMs, cas: undefined, request: undefined });
  if (outcome.kind === 'refused') {
    throw new AclError('internal', `the duty ${change.type} was refused: ${outcome.message}`);
  }
}
