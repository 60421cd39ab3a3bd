// The figures of the federation, on every server what it knows: its leader knows most. Labels are names of
// datacenters, of which there are few.

import type { DatacenterState } from '../../../api/render/shown-federation.ts';
import type { GaugeBehind } from '../../../http/figures/metric-descriptions.ts';
import type { MetricsRegistry } from '../../../http/figures/metrics.ts';
import { countIn } from '../../../state/global-log/replication.ts';
import type { StateView } from '../../../state/view.ts';
import type { NodeFederation } from '../node-federation.ts';

const PREFIX = 'conclave.federation.';
const MS_OF_SECOND = 1000;
/** Of which nothing can be said that would be worth an alarm. */
const SILENT: ReadonlySet<DatacenterState> = new Set(['unknown', 'removed']);

export function exportFederationMetrics(
  registry: MetricsRegistry,
  federation: NodeFederation,
  view: StateView,
): void {
  const gauge = (name: GaugeBehind<typeof PREFIX>, read: () => number): void => {
    const shown = registry.gauge(`${PREFIX}${name}`);
    registry.onCollect(() => shown.set(read()));
  };
  gauge('is_primary', () => Number(federation.isPrimary));
  gauge('takes_writes', () => Number(federation.closedBecause() === undefined));
  gauge('divergent_entries', () => countIn(view.replication()?.divergent));
  gauge('gone_entries', () => countIn(view.replication()?.gone));
  gauge('epoch', () => federation.primary().epoch);
  gauge('position', () => view.position().seq);
  gauge('log_bytes', () => view.keptEntries()?.bytes ?? 0);
  gauge('log_entries', () => {
    const kept = view.keptEntries();
    return kept === undefined ? 0 : kept.head.seq + 1 - kept.first;
  });
  gauge('dropped_slots', () => federation.alarms().length);
  gauge('forwarded_calls', () => federation.line.count);
  registry.onCollect(() => showDatacenters(registry, federation));
}

function showDatacenters(registry: MetricsRegistry, federation: NodeFederation): void {
  const { datacenters, head, majority } = federation.status();
  registry.gauge(`${PREFIX}head`).set(head.seq);
  registry.gauge(`${PREFIX}majority`).set(majority?.seq ?? Number.NaN);
  for (const { name: datacenter, state, ...shown } of datacenters) {
    const { differences, lagBytes, lagEntries, lagMs } = shown;
    const set = (name: GaugeBehind<typeof PREFIX>, value: number | undefined): void =>
      registry.gauge(`${PREFIX}${name}`, { datacenter }).set(value ?? Number.NaN);
    set('lag_entries', lagEntries);
    set('lag_bytes', lagBytes);
    set('differences', state === 'removed' ? undefined : differences);
    set('lag_seconds', lagMs === undefined ? undefined : lagMs / MS_OF_SECOND);
    set('is_live', SILENT.has(state) ? undefined : Number(state === 'live' || state === 'primary'));
  }
}
