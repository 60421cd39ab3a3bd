// The audit log of one node: opened before anybody can ask, closed after the last answer.

import type { Closer } from '../../cluster/base/closer.ts';
import { messageOf } from '../../cluster/base/message-of.ts';
import type { Member } from '../../cluster/member/group-member.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import { AuditedDoors } from '../audit/audited-doors.ts';
import type { MetricsRegistry } from '../http/figures/metrics.ts';
import type { HttpParts } from '../http/parts.ts';
import type { StateView } from '../state/view.ts';
import type { Platform } from './platform.ts';
import { type Settings, SettingsError } from './settings/settings.ts';

export interface AuditOptions {
  readonly settings: Settings;
  readonly platform: Platform;
  readonly view: StateView;
  readonly group: Pick<Member<unknown>, 'members'>;
  readonly metrics: MetricsRegistry;
}

export interface Audit {
  readonly doors: AuditedDoors;
  readonly trail: AuditTrail;
}

/** Undefined where `audit.file` names none. Rejects with SettingsError where the file cannot be written. */
export async function openAudit(
  { settings, platform, view, group, metrics }: AuditOptions,
  closer: Closer,
): Promise<Audit | undefined> {
  const { auditFile: file, clock, logger } = platform;
  if (file === undefined) return undefined;
  const trail = new AuditTrail({
    ...{ file, clock, logger },
    node: settings.node_name,
    datacenter: settings.datacenter,
    rotateBytes: settings['audit.rotate_bytes'],
    isRequired: settings['audit.required'],
  });
  try {
    await trail.open();
  } catch (error) {
    await file.close();
    throw new SettingsError(`audit.file: ${messageOf(error)}`);
  }
  closer.defer(() => trail.close());
  exportAuditMetrics(metrics, trail);
  const servers = () => group.members().map(({ id }) => id);
  return { trail, doors: new AuditedDoors(trail, { view, servers }) };
}

/** What HTTP asks: the doors themselves, or those that leave a record of who changed what through them. */
export function doorsFor(
  audit: Audit | undefined,
  { operations, operator }: Pick<HttpParts, 'operations' | 'operator'>,
): Pick<HttpParts, 'operations' | 'operator' | 'unrecorded' | 'recorded'> {
  if (audit === undefined) return { operations, operator };
  const { doors } = audit;
  return {
    operations: doors.operations(operations),
    operator: doors.operator(operator),
    unrecorded: { operations, onFailed: doors.failed.bind(doors) },
    recorded: doors.changed.bind(doors),
  };
}

function exportAuditMetrics(metrics: MetricsRegistry, trail: AuditTrail): void {
  const records = metrics.counter('conclave.audit.records');
  const lost = metrics.counter('conclave.audit.lost');
  const failing = metrics.gauge('conclave.audit.failing');
  let told = trail.figures;
  metrics.onCollect(() => {
    const now = trail.figures;
    records.add(now.written - told.written);
    lost.add(now.lost - told.lost);
    failing.set(Number(now.isFailing));
    told = now;
  });
}
