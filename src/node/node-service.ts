// The service of one node: its operations over the state, the way to the leader, and what this node does
// while it leads itself. Everything that runs is closed by the closer.

import type { Closer } from '../../cluster/base/closer.ts';
import type { Member } from '../../cluster/member/group-member.ts';
import { createAuthMethods } from '../auth-methods/auth-method-types.ts';
import type { MetricsRegistry } from '../http/metrics.ts';
import { createOperations, type Door } from '../service/create-operations.ts';
import type { ServiceDeps } from '../service/deps.ts';
import { ensureBuiltins } from '../service/duties.ts';
import { LeaderAway } from '../service/remote.ts';
import { trackingWrites } from '../service/tracking-writes.ts';
import { UnderWay } from '../service/under-way.ts';
import type { Command } from '../state/commands.ts';
import { GLOBAL_LOG_LEVEL } from '../state/feature-levels.ts';
import type { StateMachine } from '../state/machine.ts';
import type { Outcome } from '../state/outcome.ts';
import {
  type AnsweringDatacentersOptions,
  answeringDatacentersWith,
} from './answer-datacenters.ts';
import { type AnsweringOptions, answeringWith } from './answer-questions.ts';
import type { ClockWatch } from './clock-watch.ts';
import { DATACENTER_METHOD } from './datacenter-line.ts';
import { serviceSettingsOf } from './derive-settings.ts';
import { FeatureLevel } from './feature-level.ts';
import { hasWritten } from './federation-role.ts';
import { federationPlanOf } from './federation-settings.ts';
import { Forwarding, OPERATION_METHOD } from './forwarding.ts';
import { CLOCK_METHOD, GroupClock } from './group-clock.ts';
import { LeaderDuties } from './leader-duties.ts';
import { type Lead, Leadership } from './leadership.ts';
import { commitTimesIn, countersIn } from './node-metrics.ts';
import { NodeFederation } from './node-federation.ts';
import { Opening } from './opening.ts';
import type { Platform } from './platform.ts';
import { passBarrier, propose } from './proposer.ts';
import { answeringReign, passReignBarrier, REIGN_METHOD } from './reign-barrier.ts';
import { resetIndexOf } from './reset-index.ts';
import type { Settings } from './settings.ts';
import { SETTINGS_METHOD, SettingsCompared } from './settings-compared.ts';

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

export interface NodeService {
  readonly deps: ServiceDeps;
  readonly door: Door;
  readonly forwarding: Forwarding;
  readonly leadership: Leadership;
  readonly duties: LeaderDuties;
  readonly opening: Opening;
  readonly federation: NodeFederation;
  readonly level: FeatureLevel;
}

/** Calls that one connection between servers carries at once. */
const FORWARDED_MAX = 4_096;

export function openNodeService(options: NodeServiceOptions, closer: Closer): NodeService {
  const { settings, platform, member, machine, clocks } = options;
  const { clock, random, logger } = platform;
  const countMax = Math.min(FORWARDED_MAX, settings['limits.pending_writes_max']);
  const plan = federationPlanOf(settings);
  const { ackTimeoutMs } = plan;
  const forwarding = new Forwarding({ line: lineOf(member), clock, countMax, ackTimeoutMs });
  closer.defer(() => forwarding.close());
  const underWay = new UnderWay(machine);
  const federation: NodeFederation = new NodeFederation(
    {
      ...{ platform, member, machine, countMax, clusterId: options.clusterId },
      plan,
      propose: (command) =>
        underWay.during(command.change, () => propose(member, level.readable(command))),
      mayBegin: () => machine.usesLevel >= GLOBAL_LOG_LEVEL,
    },
    closer,
  );
  const level: FeatureLevel = new FeatureLevel({
    ...{ clock, logger, reads: options.reads },
    uses: () => machine.usesLevel,
    members: () => member.members(),
    datacenters: () => federation.readers(),
    isReigning: () => leadership.isReigning,
    propose: (command) => propose(member, command),
    onRaised: () => federation.begin(),
  });
  closer.defer(() => level.close());
  const onLeaderChanged = (listener: () => void) => member.onLeaderChanged(listener);
  const groupClock = new GroupClock({ member, clock, clocks, level: () => machine.usesLevel });
  const deps = depsOf(options, {
    forwarding,
    groupClock,
    opening: () => opening,
    leadership: () => leadership,
    federation,
    level,
    underWay,
  });
  const duties = new LeaderDuties(deps);
  const compared = new SettingsCompared({ settings, member, clock, random, logger });
  const leadership: Leadership = new Leadership({
    lead: () => leadOf(member),
    onLeaderChanged,
    prepare: async () => {
      await level.raise();
      await federation.begin();
      // A secondary takes them from the primary.
      if (federation.isPrimary) await ensureBuiltins(deps);
    },
    onReign: (term) => {
      duties.start();
      compared.start();
      federation.onReign(term);
      opening.look();
    },
    onReignOver: () => {
      federation.onReignOver();
      duties.stop();
      compared.stop();
    },
    reignWaitMs: deps.settings.leaderWaitMs,
    clock,
    logger,
  });
  closer.defer(() => duties.close());
  closer.defer(() => compared.close());
  closer.defer(() => leadership.close());
  const readBarrier = () => passBarrier(member);
  const opening = new Opening({
    standing: () => member.standing(),
    onLeaderChanged,
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
  closer.defer(() => opening.close());
  const door = createOperations(deps);
  member.serve(CLOCK_METHOD, async () => groupClock.answer());
  member.serve(SETTINGS_METHOD, async ({ payload }) => compared.answer(payload));
  serveOthers({ door, countMax, random, logger }, { member, leadership, federation });
  return { deps, door, forwarding, leadership, duties, opening, federation, level };
}

/** What other servers ask: of the own datacenter, and of others. */
function serveOthers(
  answering: AnsweringDatacentersOptions & AnsweringOptions,
  {
    member,
    leadership,
    federation,
  }: Pick<NodeServiceOptions, 'member'> & Pick<NodeService, 'leadership' | 'federation'>,
): void {
  const answer = answeringWith(answering);
  member.serve(OPERATION_METHOD, ({ payload }) => answer(payload));
  member.serve(REIGN_METHOD, answeringReign(leadership));
  const answerOther = answeringDatacentersWith(answering);
  federation.serve(DATACENTER_METHOD, ({ payload, from }) => answerOther(payload, from.datacenter));
}

interface Parts {
  readonly forwarding: Forwarding;
  readonly groupClock: GroupClock;
  /** Both are made after what they are made with. */
  readonly opening: () => Opening;
  readonly leadership: () => Leadership;
  readonly federation: NodeFederation;
  readonly level: FeatureLevel;
  readonly underWay: UnderWay;
}

function depsOf(options: NodeServiceOptions, parts: Parts): ServiceDeps {
  const { settings, platform, member, machine, metrics } = options;
  const { forwarding, groupClock, opening, leadership, federation, level, underWay } = parts;
  const { clock, random, logger, https } = platform;
  const timed = commitTimesIn(metrics, clock);
  const isSoleVoter = soleVoterOf(member);
  const deps: Omit<ServiceDeps, 'underWay'> = {
    view: machine,
    watch: machine.watch,
    propose: async (command: Command, reign?: number) => {
      if (reign !== undefined && !leadership().isReign(reign)) throw new LeaderAway();
      return federation.admit(command.change, () =>
        timed(() => propose(member, level.readable(command))),
      );
    },
    // A leader whom nobody else can elect away has applied whatever it answered.
    readBarrier: () => (leadership().isReigning && isSoleVoter() ? undefined : passBarrier(member)),
    leaderContact: () => leadership().contact(),
    reign: () => leadership().reign(),
    notOpenBecause: () => opening().notOpenBecause(),
    opens: (limitMs) => opening().opens(limitMs),
    remote: forwarding,
    federation,
    takeResetIndex: async () => resetIndexOf(platform.takeBootstrapReset()),
    authMethods: createAuthMethods({ http: https, clock, random, logger }),
    clock,
    agreedMs: () => groupClock.agreedMs(),
    random,
    logger,
    metrics: countersIn(metrics),
    settings: serviceSettingsOf(settings),
  };
  return trackingWrites(deps, underWay);
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
