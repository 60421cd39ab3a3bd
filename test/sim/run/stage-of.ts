// The stage of each subject.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import { NodeSubject } from '../subject/node-subject.ts';
import { ReplicaSubject } from '../subject/replica-subject.ts';
import type { Subject } from '../subject/subject.ts';
import { AclWorkload } from '../workload/acl-workload.ts';
import { GroupKeeper } from '../workload/group-keeper.ts';
import { RegisterWorkload } from '../workload/register-workload.ts';
import { ServerKeeper } from '../workload/server-keeper.ts';
import { datacentersStage } from './datacenters-stage.ts';
import { SimGroup } from './sim-group.ts';
import { Site } from './site.ts';
import type { Stage, StageParts } from './stage.ts';

export function stageOf(parts: StageParts): Stage {
  switch (parts.options.subject) {
    case 'replica':
      return replicaStage(parts);
    case 'node':
      return nodeStage(parts);
    case 'datacenters':
      return datacentersStage(parts);
    default:
      return unreachable(parts.options.subject);
  }
}

function soleSite(
  { world, violations }: StageParts,
  { subject, group }: { readonly subject: Subject; readonly group: SimGroup },
): Site {
  return new Site({ hosts: world.hosts, subject, group, violations });
}

function nodeStage(parts: StageParts): Stage {
  const { world, violations, options } = parts;
  const { timing, limits, hostCount, clientLossRate } = options;
  const { keptCount } = limits;
  const subject = new NodeSubject({
    ...{ hosts: world.hosts, founderCount: hostCount, timing, keptCount },
  });
  const group = new SimGroup({ world, subject, violations, clientLossRate });
  const site = soleSite(parts, { subject, group });
  const { clientCount, keyCount, thinkMs, weights } = options;
  const { write, cas, read, stale } = weights;
  return {
    sites: [site],
    group,
    keeper: new ServerKeeper({
      ...{ world, group, hosts: world.hosts },
      removals: {
        ...{ subject, everyMs: 4 * timing.tickMs * timing.electionTicks },
        isOut: (host) => site.isOut(host),
        onLosing: (host) => site.checks.onLosing(host),
      },
    }),
    workload: new AclWorkload({
      world,
      group,
      violations,
      clientCount,
      keyCount,
      thinkMs,
      timeoutMs: 8000,
      weights: {
        create: write,
        update: write + cas,
        delete: write / 2,
        read,
        stale,
        present: read,
        authorize: read,
      },
      committed: () => site.checks.committed.map(({ entry }) => entry),
      committedTerm: () => site.checks.committed.at(-1)?.entry.term ?? 0,
      digestAt: (index) => site.checks.digestAt(index),
    }),
  };
}

function replicaStage(parts: StageParts): Stage {
  const { world, violations, options } = parts;
  const { timing, limits, hostCount, clientLossRate, demotionRate, patienceMs } = options;
  const electionMs = timing.tickMs * timing.electionTicks;
  const subject = new ReplicaSubject({ world, founderCount: hostCount, timing, limits });
  const group = new SimGroup({ world, subject, violations, clientLossRate });
  const site = soleSite(parts, { subject, group });
  const { clientCount, keyCount, thinkMs, weights } = options;
  return {
    sites: [site],
    group,
    keeper: new GroupKeeper({ world, group, subject, everyMs: electionMs / 2, demotionRate }),
    workload: new RegisterWorkload({
      world,
      group,
      subject,
      violations,
      clientCount,
      keyCount,
      thinkMs,
      patienceMs,
      probeMs: 3 * electionMs,
      weights,
      committed: () => site.checks.committed.map(({ entry }) => entry),
    }),
  };
}
