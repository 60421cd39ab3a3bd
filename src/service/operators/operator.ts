// The use cases of operators: who may look at the group and change it, and where each is answered. The
// leader answers, from what it knows, after it has asked the rights itself; a stale look at the
// members is answered by any server, so that a group without a leader can still be looked at.

import { messageOf } from '../../../cluster/base/message-of.ts';
import { AclError } from '../../acl/error.ts';
import { DEFAULT_NAMESPACE } from '../../acl/ids.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import type { Call } from '../call.ts';
import { requireKnownDatacenter } from '../datacenters/known-datacenter.ts';
import { requireOwnDatacenter } from '../datacenters/own-datacenter.ts';
import { bearsLocalToken } from '../datacenters/travelling-secret.ts';
import type { ServiceDeps } from '../deps.ts';
import { GoalWaiters } from '../goal-waiters.ts';
import { PositionWaiters } from '../position-waiters.ts';
import { freshness } from '../reading.ts';
import { LeaderAway } from '../remote.ts';
import { CallerResolver } from '../rights/caller-resolver.ts';
import { permissionDenied } from '../rights/permissions.ts';
import { answeredInTime, WRITE_MAX_MS } from '../writes/answered-in-time.ts';
import { CATCH_UP_MS } from '../writes/run-write.ts';
import { isUnknown } from '../writes/tries.ts';
import { untilNotOvertaken } from '../writes/under-way.ts';
import { loggable } from './logged-input.ts';
import { MovingPrimary } from './moving-primary.ts';
import { ANSWER_BY_NAME } from './operator-answers.ts';
import type {
  OperatorDoor,
  OperatorInput,
  OperatorName,
  OperatorOutput,
  RunAtLeader,
  RunInDatacenter,
  SavedArchive,
} from './operator-operations.ts';
import type { Archives, Group, RestoreIntake } from './operator-port.ts';
import { isReadOfOperators, OPERATOR_TABLE } from './operator-table.ts';
import type { PrimaryPort } from './primary-port.ts';

export interface OperatorDeps
  extends Pick<
    ServiceDeps,
    | 'view'
    | 'watch'
    | 'readBarrier'
    | 'leaderContact'
    | 'notOpenBecause'
    | 'opens'
    | 'remote'
    | 'propose'
    | 'underWay'
    | 'reign'
    | 'federation'
    | 'clock'
    | 'metrics'
    | 'settings'
    | 'logger'
  > {
  readonly group: Group;
  readonly archives: Archives;
  readonly primary: PrimaryPort;
  readonly runInDatacenter: RunInDatacenter;
  /** Asks the leader, which is another server: one try. Rejects with LeaderAway when nothing was done. */
  readonly runAtLeader: RunAtLeader;
  /** As `Archives.beginRestore` there; likewise. */
  readonly beginRestoreAtLeader: (call: Call) => Promise<RestoreIntake>;
}

type Right = 'acl:write' | 'operator:read' | 'operator:write' | 'snapshot:read' | 'snapshot:write';

/** Between two tries, unless the leader changes before. */
const PAUSE_MS = 100;
/** So long the whole group may take to have what was restored. */
export const RESTORE_FINISH_MS = 600_000;
/** So long all datacenters may take to have another primary. */
const MOVE_MAX_MS = 600_000;

/** Opens the operators' door. */
export function createOperator(deps: OperatorDeps): OperatorDoor {
  return new CheckedOperator(deps);
}

class CheckedOperator implements OperatorDoor {
  readonly #deps: OperatorDeps;
  readonly #callers: CallerResolver;
  readonly #positions: PositionWaiters;
  readonly #indexes: GoalWaiters<number>;
  readonly #moving: MovingPrimary;

  constructor(deps: OperatorDeps) {
    const { view, clock, watch } = deps;
    this.#deps = deps;
    this.#callers = new CallerResolver(deps);
    this.#positions = new PositionWaiters(view, clock);
    const arrives = (place: Position, limitMs: number): Promise<boolean> =>
      this.#positions.arrives(place, limitMs);
    this.#moving = new MovingPrimary({ ...deps, arrives });
    const isReached = (wanted: number): boolean => view.index() >= wanted;
    this.#indexes = new GoalWaiters({ clock, isReached });
    watch.onApplied((event) => {
      this.#callers.onApplied(event);
      this.#positions.onApplied();
      this.#indexes.onApplied();
    });
  }

  run<Name extends OperatorName>(
    name: Name,
    input: OperatorInput<Name>,
    call: Call,
  ): Promise<OperatorOutput<Name>> {
    const { datacenter } = call;
    const { isOfAll, isKnownEverywhere } = OPERATOR_TABLE[name];
    if (datacenter !== undefined && this.#isOther(datacenter) && isOfAll) {
      return this.#runThere(datacenter, name, { input, call });
    }
    const attempt = async (isLeader: boolean): Promise<OperatorOutput<Name>> => {
      const isKnownHere = call.consistency === 'stale' && isKnownEverywhere;
      if (isLeader || isKnownHere) return await this.#runHere(name, input, call);
      await this.#requireOfCarried(rightsOf(name), call);
      return await this.#deps.runAtLeader(name, input, call);
    };
    return this.#tried(call, attempt, isReadOfOperators(name));
  }

  /** Whatever it names, the call has come to where it was sent. */
  runForDatacenter<Name extends OperatorName>(
    name: Name,
    input: OperatorInput<Name>,
    call: Call,
  ): Promise<OperatorOutput<Name>> {
    if (OPERATOR_TABLE[name].isOfAll)
      return this.run(name, input, { ...call, datacenter: undefined });
    throw new AclError('unavailable', 'the other datacenter does not do this for others');
  }

  async runForOther<Name extends OperatorName>(
    name: Name,
    input: OperatorInput<Name>,
    call: Call,
  ): Promise<OperatorOutput<Name>> {
    if (!this.#deps.leaderContact().isLeader) throw new LeaderAway();
    return await this.#runHere(name, input, call);
  }

  save(call: Call): Promise<SavedArchive> {
    return this.#tried(call, async () => {
      const { view, leaderContact, archives, logger } = this.#deps;
      const by = await this.#require('snapshot:read', call);
      logger.info({ name: 'snapshot-save', by }, 'operator acted');
      const { knownLeader, lastContactMs } = leaderContact();
      const { chunks, close } = archives.save();
      const meta = { index: view.index(), position: view.position(), knownLeader, lastContactMs };
      return { chunks, close, meta };
    });
  }

  beginRestore(call: Call): Promise<RestoreIntake> {
    return this.#tried(call, (isLeader) =>
      isLeader ? this.#beginRestoreHere(call) : this.#beginRestoreElsewhere(call),
    );
  }

  async beginRestoreForOther(call: Call): Promise<RestoreIntake> {
    if (!this.#deps.leaderContact().isLeader) throw new LeaderAway();
    return await this.#beginRestoreHere(call);
  }

  /** At its end this server has what was restored, too, if that does not take long. */
  async #beginRestoreElsewhere(call: Call): Promise<RestoreIntake> {
    await this.#requireOfCarried(['snapshot:write'], call);
    const intake = await this.#deps.beginRestoreAtLeader(call);
    return {
      add: (chunk) => intake.add(chunk),
      finish: async () => {
        // An archive takes its time: the right may be gone by now.
        await this.#requireOfCarried(['snapshot:write'], call);
        const restored = await intake.finish();
        await this.#indexes.reached(restored.index, CATCH_UP_MS);
        return restored;
      },
      abandon: () => intake.abandon(),
    };
  }

  async #beginRestoreHere(call: Call): Promise<RestoreIntake> {
    const { archives, clock, logger } = this.#deps;
    const by = await this.#require('snapshot:write', { ...call, consistency: 'default' });
    logger.warn({ name: 'snapshot-restore', by }, 'operator acted');
    const intake = await archives.beginRestore(() => this.#requireStill(['snapshot:write'], call));
    const inTime = { what: 'restore', limitMs: RESTORE_FINISH_MS } as const;
    return {
      add: (chunk) => intake.add(chunk),
      finish: () => answeredInTime(clock, inTime, () => intake.finish()),
      abandon: () => intake.abandon(),
    };
  }

  async #runHere<Name extends OperatorName>(
    name: Name,
    input: OperatorInput<Name>,
    call: Call,
  ): Promise<OperatorOutput<Name>> {
    const { clock, group, logger, reign, settings } = this.#deps;
    const { right, isOfAll } = OPERATOR_TABLE[name];
    const isChange = right === 'operator:write';
    // Nothing is changed on account of rights that may be of the past.
    const asked: Call = isChange ? { ...call, consistency: 'default' } : call;
    const term = isChange && isOfAll ? await reign() : undefined;
    const rights = rightsOf(name);
    let by = ANYBODY;
    for (const each of rights) by = await this.#require(each, asked);
    if (isChange && isOfAll) await this.#requireGlobalToken(call);
    const requireAllowed = (): void => this.#requireStill(rights, call);
    const asker = { by, call, reign: term, requireAllowed };
    const around = { group, moving: this.#moving, asker };
    const logged = loggable(this.#deps.view, input);
    // An entry has secrets in it.
    const act = { name, input: name === 'divergence-take' ? {} : logged(input), by };
    try {
      const answer = async () => ANSWER_BY_NAME[name](around, input);
      // What is being decided about the caller may have its answer before this has one.
      const allowed = () =>
        untilNotOvertaken({ clock, limitMs: settings.leaderWaitMs }, () => {
          requireAllowed();
          return answer();
        });
      // What asks other datacenters has times of its own for each question.
      const limitMs = isOfAll ? MOVE_MAX_MS : WRITE_MAX_MS;
      const inTime = { what: 'change', limitMs } as const;
      const output = await (isChange ? answeredInTime(clock, inTime, allowed) : answer());
      if (isChange) logger.info(act, 'operator acted');
      return output;
    } catch (error) {
      // It may have come about in part, or be known to nobody.
      const failed = logged(messageOf(error));
      if (isChange) logger.info({ ...act, failed }, 'operator acted');
      throw error;
    }
  }

  /** The secret of a local token stays in its datacenter, where it could do nothing about the others. */
  async #requireGlobalToken({ secret }: Call): Promise<void> {
    const { settings } = this.#deps;
    if (secret === undefined || !(await bearsLocalToken(this.#deps, secret))) return;
    throw new AclError(
      'permission-denied',
      `Permission denied: the token is local to datacenter ${settings.datacenter}, and this concerns all datacenters: use a global token`,
    );
  }

  async #runThere<Name extends OperatorName>(
    datacenter: string,
    name: Name,
    { input, call }: { readonly input: OperatorInput<Name>; readonly call: Call },
  ): Promise<OperatorOutput<Name>> {
    const { federation, runInDatacenter } = this.#deps;
    requireKnownDatacenter(federation, datacenter);
    await this.#requireGlobalToken(call);
    return await runInDatacenter(datacenter, name, { input, call });
  }

  #isOther(datacenter: string): boolean {
    return datacenter !== '' && datacenter !== this.#deps.settings.datacenter;
  }

  /**
   * Tries again, within bounds, while it is certain that nothing was done for want of a leader; what changes nothing,
   * also where the answer is lost.
   */
  async #tried<Output>(
    call: Call,
    attempt: (isLeader: boolean) => Promise<Output>,
    isRead = false,
  ): Promise<Output> {
    const { clock, leaderContact, remote, notOpenBecause, opens, settings, federation } =
      this.#deps;
    if (notOpenBecause() !== undefined) await opens(settings.leaderWaitMs);
    const reason = notOpenBecause();
    if (reason !== undefined) throw new AclError('unavailable', reason);
    requireOwnDatacenter(call.datacenter, settings.datacenter, federation.datacenters());
    const deadlineMs = clock.monotonicMs() + settings.leaderWaitMs;
    for (;;) {
      try {
        return await attempt(leaderContact().isLeader);
      } catch (error) {
        const leftMs = deadlineMs - clock.monotonicMs();
        const mayTryAgain = error instanceof LeaderAway || (isRead && isUnknown(error));
        if (!mayTryAgain || leftMs <= 0) throw error;
        await remote.leaderChanged(Math.min(leftMs, PAUSE_MS));
      }
    }
  }

  /**
   * The accessor id of the caller, who has the right; everybody has it while ACLs are off. Throws
   * 'permission-denied'.
   */
  async #require(right: Right, call: Call): Promise<string> {
    const { readBarrier } = this.#deps;
    await freshness({ readBarrier, positions: this.#positions }, call);
    return this.#requireNow(right, call);
  }

  /**
   * By the settings of this server, too: a leader whose ACLs are off, or whose default policy allows, allows nobody
   * what the server that was asked does not. The leader decides besides, so a look at what is here is enough for a
   * stale call.
   */
  async #requireOfCarried(rights: readonly Right[], call: Call): Promise<void> {
    if (!this.#deps.settings.aclEnabled) return;
    for (const right of rights) await this.#require(right, call);
  }

  /** At the leader, right before a change goes into the log. Throws as `#require` and `UnderWay.requireQuiet` do. */
  #requireStill(rights: readonly Right[], call: Call): void {
    this.#deps.underWay.requireQuiet(() => this.#callers.rootsOf(call.secret));
    for (const right of rights) this.#requireNow(right, call);
  }

  /** By the state as it is at this server. */
  #requireNow(right: Right, call: Call): string {
    const { settings, metrics } = this.#deps;
    if (!settings.aclEnabled) return ANYBODY;
    const caller = this.#callers.resolve(call.secret);
    const [resource, access] = right.split(':') as [
      'acl' | 'operator' | 'snapshot',
      'read' | 'write',
    ];
    const query = { resource, access, segment: '', namespace: DEFAULT_NAMESPACE } as const;
    if (caller.authorizer.decide(query) === 'allow') return caller.token.accessorId;
    metrics.count('acl.denied', { reason: 'permission-denied' });
    if (resource === 'operator') throw permissionDenied(caller, right);
    // Whoever takes the state takes every secret in it: there is no lesser right to it.
    throw permissionDenied(caller, 'acl:write', { decidedIn: DEFAULT_NAMESPACE });
  }
}

/** All of them are asked for. */
function rightsOf(name: OperatorName): readonly Right[] {
  const { right, writesObjects } = OPERATOR_TABLE[name];
  return writesObjects ? [right, 'acl:write'] : [right];
}

/** Stands for the caller while ACLs are off. */
const ANYBODY = '';
