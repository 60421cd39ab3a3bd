// The door of the service. Every operation comes in here: from http, from the command line, from
// another node. What is the same for all is done here (is it open, is it on, is it answered here); what
// differs is in the operation's own function.

import { AclError } from '../acl/error.ts';
import { aclDisabled } from '../acl/refusals.ts';
import { isAnsweredHere } from './datacenters/place-call.ts';
import { presentable } from './datacenters/presentable.ts';
import { runPlaced } from './datacenters/run-placed.ts';
import type { ServiceDeps } from './deps.ts';
import { GoalWaiters } from './goal-waiters.ts';
import { PendingLogins } from './logins/pending-logins.ts';
import { LinkNames } from './objects/link-names.ts';
import { OPERATION_TABLE } from './operation-table.ts';
import type { Asked, OperationName, OperationOutput, Operations, Soon } from './operations.ts';
import { PositionWaiters } from './position-waiters.ts';
import { CallerResolver } from './rights/caller-resolver.ts';
import { readHere, runRead } from './run-read.ts';
import type { Service } from './service.ts';
import type { WatchTarget } from './views.ts';
import { waitForChange } from './wait-for-change.ts';
import { RefusedRequests } from './writes/refused-requests.ts';
import { runHere } from './writes/run-here.ts';
import { requireAwaited } from './writes/tries.ts';

export interface Door extends Operations {
  /**
   * Runs what another server sends because this one leads: a write here, or with LeaderAway not at all;
   * a read by what this server knows. A write is for the leader of `term` alone, where that is told.
   */
  runForOther<Name extends OperationName>(
    asked: Asked<Name>,
    term?: number,
  ): Promise<OperationOutput<Name>>;
  /** Runs what a server of the datacenter `from` sends. The output is plain data; see `presentable`. */
  runForDatacenter<Name extends OperationName>(asked: Asked<Name>, from: string): Promise<unknown>;
  /** Whether the target changed after `index`, as soon as it did, and at the end of the time. */
  changesWithin(target: WatchTarget, index: number, timeoutMs: number): Promise<boolean>;
}

/** Opens the door; from then on the caches hear of every applied change. */
export function createOperations(deps: ServiceDeps): Door {
  const { view, clock, metrics, settings } = deps;
  const callers = new CallerResolver({ view, clock, metrics, settings });
  const positions = new PositionWaiters(view, clock);
  const names = new LinkNames(view);
  const indexes = new GoalWaiters<number>({ clock, isReached: (wanted) => view.index() >= wanted });
  deps.watch.onApplied((event) => {
    callers.onApplied(event);
    names.onApplied(event);
    positions.onApplied();
    indexes.onApplied();
  });
  const refused = new RefusedRequests(clock);
  const pendingLogins = new PendingLogins({ view, clock });
  const caches = { callers, names, positions, indexes, refused, pendingLogins };
  const service: Service = { ...deps, ...caches };
  return {
    run: async (name, input, call) => answer(service, { name, input, call }),
    answer: (name, input, call, isGone) => answer(service, { name, input, call, isGone }),
    runForOther: async (asked, term) => {
      requireOpen(service);
      const isRead = OPERATION_TABLE[asked.name].kind === 'read';
      return isRead ? readHere(service, asked) : runHere(service, asked, term);
    },
    runForDatacenter: async (asked, from) =>
      presentable(await answer(service, asked, from)) as never,
    changesWithin: (target, index, timeoutMs) =>
      waitForChange(service, target, { index, timeoutMs, cancel: new AbortController().signal }),
    waitForChange: async (target, index, timeoutMs, cancel) => {
      await waitForChange(service, target, { index, timeoutMs, cancel });
    },
    meta: () => ({ defaultPolicy: settings.defaultPolicy, position: view.position() }),
  };
}

/**
 * `from` is the datacenter that sent the call; undefined when a client did. What waits for nothing is
 * given, or thrown, at once.
 */
function answer<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from?: string,
): Soon<Name> {
  if (service.notOpenBecause() !== undefined) return answerOnceOpen(service, asked, from);
  return answerNow(service, asked, from);
}

/** Whoever asks a moment too soon waits as for a leader. */
async function answerOnceOpen<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Promise<OperationOutput<Name>> {
  await service.opens(service.settings.leaderWaitMs);
  requireOpen(service);
  requireAwaited(asked);
  return answerNow(service, asked, from);
}

function answerNow<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Soon<Name> {
  if (!service.settings.aclEnabled) throw aclDisabled();
  return isAnsweredHere(asked) ? runRead(service, asked) : runPlaced(service, asked, from);
}

function requireOpen({ notOpenBecause }: Service): void {
  const reason = notOpenBecause();
  if (reason !== undefined) throw new AclError('unavailable', reason);
}
