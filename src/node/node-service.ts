// The service of one node: its operations over the state, the way to the leader, and what this node does
// while it leads itself. Everything that runs is closed by the closer.

import type { Closer } from '../../cluster/base/closer.ts';
import type { Member } from '../../cluster/member/group-member.ts';
import { createAuthMethods } from '../auth-methods/auth-method-types.ts';
import type { MetricsRegistry } from '../http/figures/metrics.ts';
import { createOperations, type Door } from '../service/create-operations.ts';
import type { ServiceDeps } from '../service/deps.ts';
import { ensureBuiltins } from '../service/duties/duties.ts';
import { LeaderAway } from '../service/remote.ts';
import { trackingWrites } from '../service/writes/tracking-writes.ts';
import { UnderWay } from '../service/writes/under-way.ts';
import type { Command } from '../state/commands/commands.ts';
import { GLOBAL_LOG_LEVEL } from '../state/commands/feature-levels.ts';
import type { Outcome } from '../state/commands/outcome.ts';
import type { StateMachine } from '../state/machine.ts';
import { answeringWith } from './calls/answer-questions.ts';
import { Forwarding, OPERATION_METHOD } from './calls/forwarding.ts';
import { answeringDatacentersWith } from './federation/calls/answer-datacenters.ts';
import { DATACENTER_METHOD } from './federation/calls/datacenter-line.ts';
import { hasWritten } from './federation/federation-role.ts';
import { NodeFederation } from './federation/node-federation.ts';
import { commitTimesIn, countersIn } from './node-metrics.ts';
import { Opening } from './opening.ts';
import type { Platform } from './platform.ts';
import type { ClockWatch } from './reign/clock-watch.ts';
import { FeatureLevel } from './reign/feature-level.ts';
import { CLOCK_METHOD, GroupClock } from './reign/group-clock.ts';
import { LeaderDuties } from './reign/leader-duties.ts';
import { type Lead, Leadership } from './reign/leadership.ts';
import { passBarrier, propose } from './reign/proposer.ts';
import { answeringReign, passReignBarrier, REIGN_METHOD } from './reign/reign-barrier.ts';
import { SETTINGS_METHOD, SettingsCompared } from './reign/settings-compared.ts';
import { serviceSettingsOf } from './settings/derive-settings.ts';
import { type FederationPlan, federationPlanOf } from './settings/federation-settings.ts';
import { resetIndexOf } from './settings/reset-index.ts';
import type { Settings } from './settings/settings.ts';

export interface NodeServiceOptions {
  readonly settings: Settings;
  readonly platform: Platform;
  readonly member: Member<Outcome>;
  readonly machine: StateMachine;
  readonly clusterId: () => string | undefined;
  readonly metrics: MetricsRegistry;
  /** Up to which feature level the program reads. */
  readonly reads: number;
  readonly clocks: ClockWatch;
}

/** Calls that one connection between servers carries at once. */
const FORWARDED_MAX = 4_096;

export class NodeService {
  readonly forwarding: Forwarding;
  readonly federation: NodeFederation;
  readonly level: FeatureLevel;
  readonly deps: ServiceDeps;
  readonly duties: LeaderDuties;
  readonly leadership: Leadership;
  readonly opening: Opening;
  readonly door: Door;
  readonly #options: NodeServiceOptions;
  readonly #plan: FederationPlan;
  /** Calls of one sort that wait at once. */
  readonly #countMax: number;
  readonly #underWay: UnderWay;
  readonly #groupClock: GroupClock;
  readonly #compared: SettingsCompared;

  constructor(options: NodeServiceOptions, closer: Closer) {
    const { settings, platform, member, machine, clocks } = options;
    const { clock, random, logger } = platform;
    this.#options = options;
    this.#plan = federationPlanOf(settings);
    this.#countMax = Math.min(FORWARDED_MAX, settings['limits.pending_writes_max']);
    this.#underWay = new UnderWay(machine);
    this.forwarding = this.#newForwarding();
    closer.defer(() => this.forwarding.close());
    this.federation = this.#newFederation(closer);
    this.level = this.#newLevel();
    closer.defer(() => this.level.close());
    this.#groupClock = new GroupClock({ member, clock, clocks, level: () => machine.usesLevel });
    this.deps = this.#newDeps();
    this.duties = new LeaderDuties(this.deps);
    this.#compared = new SettingsCompared({ settings, member, clock, random, logger });
    this.leadership = this.#newLeadership();
    closer.defer(() => this.duties.close());
    closer.defer(() => this.#compared.close());
    closer.defer(() => this.leadership.close());
    this.opening = this.#newOpening();
    closer.defer(() => this.opening.close());
    this.door = createOperations(this.deps);
    this.#serveOthers();
  }

  #newForwarding(): Forwarding {
    const { platform, member } = this.#options;
    const { ackTimeoutMs } = this.#plan;
    const bounds = { countMax: this.#countMax, ackTimeoutMs };
    return new Forwarding({ line: lineOf(member), clock: platform.clock, ...bounds });
  }

  #newFederation(closer: Closer): NodeFederation {
    const { platform, member, machine, clocks, clusterId } = this.#options;
    const options = {
      ...{ platform, member, machine, clocks, clusterId },
      ...{ plan: this.#plan, countMax: this.#countMax },
      propose: (command: Command) =>
        this.#underWay.during(command.change, () => this.#propose(command)),
      mayBegin: () => machine.usesLevel >= GLOBAL_LOG_LEVEL,
      hasCaughtUp: () => this.opening.hasCaughtUp,
    };
    return new NodeFederation(options, closer);
  }

  #newLevel(): FeatureLevel {
    const { platform, member, machine, reads } = this.#options;
    const { clock, logger } = platform;
    return new FeatureLevel({
      ...{ clock, logger, reads },
      uses: () => machine.usesLevel,
      members: () => member.members(),
      datacenters: () => this.federation.readers(),
      isReigning: () => this.leadership.isReigning,
      propose: (command) => propose(member, command),
      beginLog: () => this.federation.begin(),
    });
  }

  #newLeadership(): Leadership {
    const { platform, member } = this.#options;
    const { clock, logger } = platform;
    return new Leadership({
      lead: () => leadOf(member),
      onLeaderChanged: (listener) => member.onLeaderChanged(listener),
      prepare: async () => {
        await this.level.begin();
        // A secondary takes them from the primary.
        if (this.federation.isPrimary) await ensureBuiltins(this.deps);
      },
      onReign: (term) => {
        this.duties.start();
        this.#compared.start();
        this.federation.onReign(term);
        this.opening.look();
      },
      onReignOver: () => {
        this.federation.onReignOver();
        this.duties.stop();
        this.#compared.stop();
      },
      reignWaitMs: this.deps.settings.leaderWaitMs,
      clock,
      logger,
    });
  }

  #newOpening(): Opening {
    const { platform, member, machine } = this.#options;
    const { clock, logger } = platform;
    const { federation, forwarding, leadership, level } = this;
    const plan = this.#plan;
    const readBarrier = () => passBarrier(member);
    return new Opening({
      standing: () => member.standing(),
      onLeaderChanged: (listener) => member.onLeaderChanged(listener),
      isPrimary: () => federation.isPrimary,
      // What it began as it stays, whatever its settings say by now.
      isWitness: () =>
        machine.replication()?.isWitness ?? (plan.isWitness && !hasWritten(machine.position())),
      hasGlobalLog: () => machine.position().seq > 0,
      nothingComesBecause: () => level.keptFrom(federation.logLevel) ?? federation.lastFailure,
      overruledSettings: () => federation.overruled,
      hasBuiltins: () => machine.totals().namespaces > 0,
      catchUp: () => passReignBarrier({ leadership, forwarding, readBarrier }),
      clock,
      logger,
    });
  }

  #newDeps(): ServiceDeps {
    const { settings, platform, member, machine, metrics } = this.#options;
    const { clock, random, logger, https } = platform;
    const timed = commitTimesIn(metrics, clock);
    const isSoleVoter = soleVoterOf(member);
    const deps: Omit<ServiceDeps, 'underWay'> = {
      view: machine,
      watch: machine.watch,
      propose: async (command: Command, reign?: number) => {
        if (reign !== undefined && !this.leadership.isReign(reign)) throw new LeaderAway();
        return this.federation.admit(command.change, () => timed(() => this.#propose(command)));
      },
      // A leader whom nobody else can elect away has applied whatever it answered.
      readBarrier: () =>
        this.leadership.isReigning && isSoleVoter() ? undefined : passBarrier(member),
      leaderContact: () => this.leadership.contact(),
      reign: () => this.leadership.reign(),
      notOpenBecause: () => this.opening.notOpenBecause(),
      opens: (limitMs) => this.opening.opens(limitMs),
      remote: this.forwarding,
      federation: this.federation,
      takeResetIndex: (secret) =>
        resetIndexOf(secret, (isForAsker) => platform.takeBootstrapReset(isForAsker)),
      authMethods: createAuthMethods({ http: https, clock, random, logger }),
      clock,
      agreedMs: () => this.#groupClock.agreedMs(),
      random,
      logger,
      metrics: countersIn(metrics),
      settings: serviceSettingsOf(settings),
    };
    return trackingWrites(deps, this.#underWay);
  }

  /** In words that everybody reads. */
  #propose(command: Command): Promise<Outcome> {
    return propose(this.#options.member, this.level.readable(command));
  }

  /** What other servers ask: of the own datacenter, and of others. */
  #serveOthers(): void {
    const { platform, member } = this.#options;
    const { random, logger } = platform;
    const answering = { door: this.door, countMax: this.#countMax, random, logger };
    const answer = answeringWith(answering);
    member.serve(CLOCK_METHOD, async () => this.#groupClock.answer());
    member.serve(SETTINGS_METHOD, async ({ payload }) => this.#compared.answer(payload));
    member.serve(OPERATION_METHOD, ({ payload }) => answer(payload));
    member.serve(REIGN_METHOD, answeringReign(this.leadership));
    const answerOther = answeringDatacentersWith(answering);
    this.federation.serve(DATACENTER_METHOD, ({ payload, from }) =>
      answerOther(payload, from.datacenter),
    );
  }
}

function lineOf(member: Member<Outcome>) {
  return {
    self: member.node,
    leader: () => {
      const at = member.standing();
      if (at.kind !== 'member' || at.leader === undefined) return undefined;
      return { node: at.leader.node, term: at.term };
    },
    call: member.call.bind(member),
    onLeaderChanged: member.onLeaderChanged.bind(member),
  };
}

function leadOf(member: Member<Outcome>): Lead {
  const at = member.standing();
  if (at.kind !== 'member') return NO_LEAD;
  const { isLeader, leader, lastContactMs, term } = at;
  return { isSelf: isLeader, isKnown: isLeader || leader !== undefined, lastContactMs, term };
}

const NO_LEAD: Lead = { isSelf: false, isKnown: false, lastContactMs: undefined, term: 0 };

/** Whether nobody else has a vote, without looking through the record each time. */
function soleVoterOf(member: Member<Outcome>): () => boolean {
  let seen: unknown;
  let isSole = false;
  return () => {
    const record = member.groupRecord();
    if (record === seen) return isSole;
    seen = record;
    const { voters, votersOutgoing } = record.membership;
    isSole = votersOutgoing.length === 0 && voters.length === 1 && voters[0] === member.node;
    return isSole;
  };
}
