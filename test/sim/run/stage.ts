// What a run puts on its world: a subject, the clients that fit it, and who looks after its membership.

import type { Violations } from '../checks/violations.ts';
import type { Subject } from '../subject/subject.ts';
import type { Workload } from '../workload/workload.ts';
import type { World } from '../world/world.ts';
import { NodeSubject } from '../subject/node-subject.ts';
import { ReplicaSubject } from '../subject/replica-subject.ts';
import { AclWorkload } from '../workload/acl-workload.ts';
import { GroupKeeper } from '../workload/group-keeper.ts';
import { RegisterWorkload } from '../workload/register-workload.ts';
import { ServerKeeper } from '../workload/server-keeper.ts';
import type { RunOptions } from './run-options.ts';
import { SimGroup } from './sim-group.ts';

/** Changes who belongs to the group while clients are at work. */
export interface Keeper {
  begin(): void;
  /** Asks for nothing more. */
  stop(): void;
  readonly changeCount: number;
}

export interface Stage {
  readonly subject: Subject;
  readonly group: SimGroup;
  readonly workload: Workload;
  readonly keeper: Keeper;
}

export interface StageParts {
  readonly world: World;
  readonly violations: Violations;
  readonly options: RunOptions;
  /** By log index: what the nodes' states came to, as far as it is known. */
  readonly digestAt: (index: number) => string | undefined;
}

export function stageOf(parts: StageParts): Stage {
  return parts.options.subject === 'node' ? nodeStage(parts) : replicaStage(parts);
}

function nodeStage({ world, violations, options, digestAt }: StageParts): Stage {
  const { timing, hostCount, clientLossRate } = options;
  const subject = new NodeSubject({ world, founderCount: hostCount, timing });
  const group = new SimGroup({ world, subject, violations, clientLossRate });
  const { clientCount, keyCount, thinkMs, weights } = options;
  const { write, cas, read, stale } = weights;
  return {
    subject,
    group,
    keeper: new ServerKeeper({ world, group }),
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
      digestAt,
    }),
  };
}

function replicaStage({ world, violations, options }: StageParts): Stage {
  const { timing, limits, hostCount, clientLossRate, demotionRate, patienceMs } = options;
  const electionMs = timing.tickMs * timing.electionTicks;
  const subject = new ReplicaSubject({ world, founderCount: hostCount, timing, limits });
  const group = new SimGroup({ world, subject, violations, clientLossRate });
  const { clientCount, keyCount, thinkMs, weights } = options;
  return {
    subject,
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
    }),
  };
}
