// The door of the service. Every operation comes in here: from http, from the command line, from
// another node. What is the same for all is done here (is it on, is it here, is it fresh, was it done
// before); what differs is in the operation's own function.

import { unreachable } from '../../cluster/base/unreachable.ts';
import { AclError } from '../acl/error.ts';
import { requireMayTellOfNothing, withLevelOfNothing } from './writes/acknowledge.ts';
import { answerAgain, answerFromHome, requestOwnerOf } from './writes/answer-again.ts';
import { answeredInTime, AS_WRITE } from './writes/answered-in-time.ts';
import { CallerResolver } from './rights/caller-resolver.ts';
import { deletedWhereNamed } from './datacenters/delete-where-named.ts';
import { counted } from './rights/denials.ts';
import type { ServiceDeps } from './deps.ts';
import { GoalWaiters } from './goal-waiters.ts';
import { HANDLERS } from './handlers.ts';
import { LinkNames } from './objects/link-names.ts';
import { OPERATION_TABLE } from './operation-table.ts';
import type { Asked, OperationName, OperationOutput, Operations } from './operations.ts';
import { isAnsweredHere, placeOfCall, refusalOfPlace } from './datacenters/place-call.ts';
import { PendingLogins } from './logins/pending-logins.ts';
import { PositionWaiters } from './position-waiters.ts';
import { freshness } from './reading.ts';
import { isOfToken, type Placement } from './datacenters/placement.ts';
import { presentable } from './datacenters/presentable.ts';
import { RefusedRequests, requestNameOf } from './writes/refused-requests.ts';
import { type Attempt, runAsLeader } from './writes/run-as-leader.ts';
import { runInDatacenter } from './datacenters/run-in-datacenter.ts';
import {
  isMoved,
  NotAsked,
  runWrite,
  saysNothingOfEarlier,
  unknownBehind,
} from './writes/run-write.ts';
import { requestMarkOf } from './writes/request-marks.ts';
import type { Service } from './service.ts';
import { untilNotOvertaken } from './writes/under-way.ts';
import type { WatchTarget, WriteResult } from './views.ts';

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
    answer: (name, input, call) => answer(service, { name, input, call }),
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

/** An output, or what becomes one. */
type Soon<Name extends OperationName> = OperationOutput<Name> | Promise<OperationOutput<Name>>;

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
  return answerNow(service, asked, from);
}

function answerNow<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Soon<Name> {
  if (!service.settings.aclEnabled) throw new AclError('acl-disabled', 'ACL support disabled');
  return isAnsweredHere(asked) ? runRead(service, asked) : runPlaced(service, asked, from);
}

async function runPlaced<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Promise<OperationOutput<Name>> {
  const { clock, settings } = service;
  // Of what another datacenter sends, that one has waited for it.
  if (from === undefined && asked.call.minPosition !== undefined)
    await afterPosition(service, asked);
  const deadlineMs = clock.monotonicMs() + settings.leaderWaitMs;
  /** Of a try at an earlier primary: it may have taken effect. */
  let unknown: AclError | undefined;
  for (;;) {
    try {
      const run = () => runOncePlaced(service, asked, from);
      return await (from === undefined ? deletedWhereNamed(service, asked, run) : run());
    } catch (error) {
      unknown = unknownBehind(error) ?? unknown;
      // The primary is another one by now, or has something that soon will be known here too.
      const goesOn = isMoved(error) && from === undefined && clock.monotonicMs() < deadlineMs;
      if (!goesOn) throw saysNothingOfEarlier(error) ? (unknown ?? error) : error;
      await new Promise<void>((resolve) => clock.after(MOVED_PAUSE_MS, resolve));
    }
  }
}

/** A read waits where it is answered; a write, before anything is tried. Rejects with 'wait-timeout'. */
async function afterPosition(
  { positions }: Service,
  { name, call }: Asked<OperationName>,
): Promise<void> {
  if (call.minPosition === undefined || OPERATION_TABLE[name].kind === 'read') return;
  try {
    await positions.reached(call.minPosition);
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    throw new NotAsked(error.code, `Nothing was written. ${error.message}`, { cause: error });
  }
}

/** Between two looks at where the primary is. */
const MOVED_PAUSE_MS = 100;

async function runOncePlaced<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Promise<OperationOutput<Name>> {
  const place = placeOfCall(service, asked, from);
  const placement = place instanceof Promise ? await place : place;
  const isSentAway = placement.kind === 'datacenter' || placement.kind === 'astray';
  if (!isSentAway || !isOfToken(OPERATION_TABLE[asked.name])) {
    return runAt(service, placement, asked);
  }
  try {
    const output = await runAt(service, placement, asked);
    const isNothing = (output as WriteResult<unknown>).value === false;
    return (isNothing ? await answerFromHome(service, asked, undefined) : undefined) ?? output;
  } catch (error) {
    const first = error instanceof AclError ? answerFromHome(service, asked, error) : undefined;
    if (first === undefined) throw error;
    return first;
  }
}

async function runAt<Name extends OperationName>(
  service: Service,
  placement: Placement,
  asked: Asked<Name>,
): Promise<OperationOutput<Name>> {
  switch (placement.kind) {
    case 'here':
    case 'leader':
      if (OPERATION_TABLE[asked.name].kind === 'read') return runRead(service, asked);
      return runWrite(service, asked, (again) => runHere(service, again));
    case 'datacenter':
      return runInDatacenter(service, placement.name, asked);
    case 'astray':
    case 'local-here':
    case 'ahead':
      throw refusalOfPlace(placement, service.settings.datacenter);
    default:
      return unreachable(placement);
  }
}

function runRead<Name extends OperationName>(service: Service, asked: Asked<Name>): Soon<Name> {
  const asksLeader = OPERATION_TABLE[asked.name].atLeader && asked.call.consistency !== 'stale';
  return asksLeader ? runReadAtLeader(service, asked) : readHere(service, asked);
}

/** A server that cannot ask its leader says what it knows itself. */
async function runReadAtLeader<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
): Promise<OperationOutput<Name>> {
  const itself = { ...asked, call: { ...asked.call, consistency: 'stale' } } as const;
  if (service.leaderContact().isLeader) return readHere(service, itself);
  try {
    return await service.remote.runAtLeader(asked.name, asked.input, itself.call);
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    return readHere(service, itself);
  }
}

function readHere<Name extends OperationName>(service: Service, read: Asked<Name>): Soon<Name> {
  const fresh = freshness(service, read.call);
  return fresh === undefined ? look(service, read) : fresh.then(() => look(service, read));
}

/** What the state says now. */
function look<Name extends OperationName>(
  service: Service,
  { name, input, call }: Asked<Name>,
): Soon<Name> {
  try {
    const output = HANDLERS[name](service, input, { call, mark: undefined, attempt: undefined });
    if (!(output instanceof Promise)) return output;
    return output.catch((error: unknown) => {
      throw counted(service, error);
    });
  } catch (error) {
    throw counted(service, error);
  }
}

/** A write at this server, which leads or rejects with LeaderAway. */
async function runHere<Name extends OperationName>(
  service: Service,
  write: Asked<Name>,
  term?: number,
): Promise<OperationOutput<Name>> {
  try {
    const { name, call } = write;
    const request = requestNameOf(write);
    const { callers, clock, settings } = service;
    const limitMs = settings.leaderWaitMs;
    const isOfStranger = (): boolean => callers.isStranger(call.secret);
    const output = await answeredInTime(clock, AS_WRITE, (onApplied) =>
      runAsLeader(service, { name, term, request, isOfStranger, onApplied }, async (attempt) => {
        const once = () => runOnce(service, write, attempt);
        const found = await untilNotOvertaken({ clock, limitMs }, once);
        return requireMayTellOfNothing(service, found);
      }),
    );
    return await withLevelOfNothing(service, call, output);
  } catch (error) {
    throw counted(service, error);
  }
}

function runOnce<Name extends OperationName>(
  service: Service,
  { name, input, call }: Asked<Name>,
  attempt: Attempt,
): OperationOutput<Name> | Promise<OperationOutput<Name>> {
  const owned = requestOwnerOf(service, name, input, call);
  if (owned === undefined)
    return HANDLERS[name](service, input, { call, mark: undefined, attempt });
  const { id, owner, caller } = owned;
  const mark = requestMarkOf({ id, owner, operation: name, input }, call);
  const remembered = answerAgain(service, mark, { call, caller, attempt });
  if (remembered === undefined) return HANDLERS[name](service, input, { call, mark, attempt });
  attempt.isDecided = true;
  return remembered as OperationOutput<Name> | Promise<OperationOutput<Name>>;
}

function requireOpen({ notOpenBecause }: Service): void {
  const reason = notOpenBecause();
  if (reason !== undefined) throw new AclError('unavailable', reason);
}

async function waitForChange(
  { view, watch, clock, federation }: Service,
  target: WatchTarget,
  wait: {
    readonly index: number;
    readonly timeoutMs: number;
    readonly cancel: AbortSignal;
  },
): Promise<boolean> {
  if (target.datacenter !== undefined) {
    await federation.waitForChange(target.datacenter, { target, ...wait });
    return !wait.cancel.aborted;
  }
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const timer = clock.after(wait.timeoutMs, end);
  wait.cancel.addEventListener('abort', end, { once: true });
  if (wait.cancel.aborted) end();
  try {
    while (!ended.signal.aborted && view.tableIndex(target.table) <= wait.index) {
      await watch.waitFor(target, ended.signal);
    }
    return view.tableIndex(target.table) > wait.index;
  } finally {
    timer.cancel();
    wait.cancel.removeEventListener('abort', end);
  }
}
