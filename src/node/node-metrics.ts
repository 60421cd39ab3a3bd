// The figures of a node beside those of its requests: the group and its log, the state, the duties, the
// process. Those that deployed dashboards look for have the names that they look for.

import type { Member } from '../../cluster/member/group-member.ts';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { GaugeBehind } from '../http/figures/metric-descriptions.ts';
import type { MetricsRegistry } from '../http/figures/metrics.ts';
import { COUNTER_NAMES, type Metrics } from '../service/metrics.ts';
import type { StateView } from '../state/view.ts';
import type { Forwarding } from './calls/forwarding.ts';
import type { Platform } from './platform.ts';
import type { ClockWatch } from './reign/clock-watch.ts';
import type { FeatureLevel } from './reign/feature-level.ts';
import type { LeaderDuties } from './reign/leader-duties.ts';
import type { LoopWatch } from './reign/loop-watch.ts';

const PREFIX = 'conclave.';

/** The service's counters, kept in the registry. All of them are there from the start, at zero. */
export function countersIn(registry: MetricsRegistry): Metrics {
  const plain = new Map(COUNTER_NAMES.map((name) => [name, registry.counter(`${PREFIX}${name}`)]));
  return {
    count: (name, labels, by) => {
      const counter = labels === undefined ? plain.get(name) : undefined;
      (counter ?? registry.counter(`${PREFIX}${name}`, labels)).add(by);
    },
  };
}

/** Counts what this node puts into the log, and how long it takes until it is applied. */
export function commitTimesIn(
  registry: MetricsRegistry,
  clock: Clock,
): <Output>(propose: () => Promise<Output>) => Promise<Output> {
  const applied = registry.counter(`${PREFIX}raft.apply`);
  const commitTime = registry.histogram(`${PREFIX}raft.commitTime`);
  return async (propose) => {
    const startedMs = clock.monotonicMs();
    const output = await propose();
    applied.add();
    commitTime.observe(clock.monotonicMs() - startedMs);
    return output;
  };
}

export interface NodeFigures {
  readonly member: Member<unknown>;
  readonly view: StateView;
  readonly duties: LeaderDuties;
  readonly forwarding: Forwarding;
  readonly loop: LoopWatch;
  readonly clocks: Pick<ClockWatch, 'behindMs' | 'behindPrimaryMs'>;
  readonly level: FeatureLevel;
}

/** Shows the node's figures; they are asked for only when somebody looks. */
export function exportNodeMetrics(registry: MetricsRegistry, figures: NodeFigures): void {
  const gauge = (name: GaugeBehind<typeof PREFIX>, read: () => number): void => {
    const shown = registry.gauge(`${PREFIX}${name}`);
    registry.onCollect(() => shown.set(read()));
  };
  const { member, view, duties, forwarding, loop, clocks, level } = figures;
  const is = (standing: string) => (): number => Number(member.status().standing === standing);
  gauge('server.isLeader', is('leader'));
  for (const standing of ['leader', 'follower', 'candidate', 'learner'] as const) {
    gauge(`raft.state.${standing}`, is(standing));
  }
  gauge('raft.term', () => member.status().term);
  gauge('raft.applied_index', () => member.status().appliedIndex);
  gauge('raft.commit_index', () => member.status().commitIndex);
  gauge('raft.last_index', () => member.status().lastIndex);
  gauge('raft.leader.lastContact', () => lastContactMs(member));
  gauge('raft.pending_writes', () => {
    const { queuedCount, unappliedCount } = member.status();
    return queuedCount + unappliedCount;
  });
  gauge('raft.forwarded_writes', () => forwarding.count);
  gauge('autopilot.healthy', () => Number(autopilotOf(member)?.isHealthy ?? Number.NaN));
  gauge('autopilot.failure_tolerance', () => autopilotOf(member)?.failureTolerance ?? Number.NaN);
  gauge('feature_level.active', () => level.status().uses);
  gauge('feature_level.readable', () => level.status().reads);
  gauge('feature_level.waits_for', () => level.status().waitsFor.length);
  gauge('state.index', () => view.index());
  gauge('state.tokens', () => view.totals().tokens);
  gauge('state.local_tokens', () => view.totals().localTokens);
  gauge('state.policies', () => view.totals().policies);
  gauge('state.roles', () => view.totals().roles);
  gauge('state.auth_methods', () => view.totals().authMethods);
  gauge('state.namespaces', () => view.totals().namespaces);
  gauge('acl.token.void_backlog', () => duties.backlog);
  gauge('process.resident_memory_bytes', () => process.memoryUsage.rss());
  gauge('process.loop_delay_p50_ms', () => loop.figures().p50Ms);
  gauge('process.loop_delay_p99_ms', () => loop.figures().p99Ms);
  gauge('process.loop_delay_max_ms', () => loop.figures().maxMs);
  gauge('clock.behind_ms', () => clocks.behindMs);
  gauge('clock.behind_primary_ms', () => clocks.behindPrimaryMs);
}

/**
 * On the leader: since it last heard those followers that make up a quorum with it, the quickest ones.
 * Elsewhere: since the leader was heard. NaN where there is nothing to tell.
 */
function lastContactMs(member: Member<unknown>): number {
  const at = member.standing();
  if (at.kind !== 'member') return Number.NaN;
  if (!at.isLeader) return at.lastContactMs ?? Number.NaN;
  const voters = member.members().filter(({ isVoter }) => isVoter);
  const heardMs = voters
    .filter(({ isSelf }) => !isSelf)
    .map((voter) => voter.lastContactMs ?? Number.POSITIVE_INFINITY)
    .sort((one, other) => one - other);
  const othersNeeded = Math.floor(voters.length / 2);
  const found = othersNeeded === 0 ? 0 : heardMs[othersNeeded - 1];
  return found === undefined || found === Number.POSITIVE_INFINITY ? Number.NaN : found;
}

/** Undefined where this server does not lead: no other knows. */
function autopilotOf(
  member: Member<unknown>,
): ReturnType<Member<unknown>['autopilotState']> | undefined {
  const at = member.standing();
  return at.kind === 'member' && at.isLeader ? member.autopilotState() : undefined;
}

/** How long each certificate is still good for, in seconds; below 0: it has ended. */
export function exportCertificateMetrics(
  registry: MetricsRegistry,
  { certificates, clock }: Pick<Platform, 'certificates' | 'clock'>,
): void {
  registry.onCollect(() => {
    for (const { setting, endMs } of certificates.ends()) {
      const left = registry.gauge(`${PREFIX}tls.certificate_seconds_left`, { setting });
      left.set(Math.floor((endMs - clock.wallMs()) / 1000));
    }
  });
}
