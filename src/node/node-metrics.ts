// The figures of a node beside those of its requests: the log, the state, the duties, the process.

import type { Replica } from '../../cluster/replica/replica.ts';
import type { MetricsRegistry } from '../http/metrics.ts';
import { COUNTER_NAMES, type Metrics } from '../service/metrics.ts';
import type { Outcome } from '../state/outcome.ts';
import type { StateView } from '../state/view.ts';
import type { LeaderDuties } from './leader-duties.ts';

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

export interface NodeFigures {
  readonly replica: Replica<Outcome>;
  readonly view: StateView;
  readonly duties: LeaderDuties;
}

/** Shows the node's figures; they are asked for only when somebody looks. */
export function exportNodeMetrics(registry: MetricsRegistry, figures: NodeFigures): void {
  const gauge = (name: string, read: () => number): void => {
    const shown = registry.gauge(`${PREFIX}${name}`);
    registry.onCollect(() => shown.set(read()));
  };
  const { replica, view, duties } = figures;
  gauge('raft.applied_index', () => replica.status().appliedIndex);
  gauge('raft.last_index', () => replica.status().lastIndex);
  gauge('raft.state.leader', () => (replica.status().standing === 'leader' ? 1 : 0));
  gauge(
    'raft.pending_writes',
    () => replica.status().queuedCount + replica.status().unappliedCount,
  );
  gauge('state.index', () => view.index());
  gauge('state.tokens', () => view.totals().tokens);
  gauge('state.local_tokens', () => view.totals().localTokens);
  gauge('state.policies', () => view.totals().policies);
  gauge('state.roles', () => view.totals().roles);
  gauge('state.auth_methods', () => view.totals().authMethods);
  gauge('state.namespaces', () => view.totals().namespaces);
  gauge('acl.token.void_backlog', () => duties.backlog);
  gauge('process.resident_memory_bytes', () => process.memoryUsage.rss());
}
