// The operators' door of one node: what the group can be told here, and how the leader is asked.

import type { Closer } from '../../../cluster/base/closer.ts';
import { openArchives } from '../../service/operators/archives.ts';
import { createOperator } from '../../service/operators/operator.ts';
import type { Operator } from '../../service/operators/operator-operations.ts';
import {
  answeringOperatorsWith,
  beginRestoreBy,
  OPERATOR_ELSEWHERE_METHOD,
  OPERATOR_METHOD,
  runAtLeaderBy,
  runInDatacenterBy,
} from '../calls/operator-remote.ts';
import type { NodeService } from '../node-service.ts';
import type { OpenGroup } from '../open-group.ts';
import type { Platform } from '../platform.ts';
import { groupOf } from './operator-port.ts';

export interface OperatorsOptions {
  readonly platform: Platform;
  /** The version of the program. */
  readonly version: string;
  readonly group: OpenGroup;
  readonly service: NodeService;
}

export function openOperators(options: OperatorsOptions, closer: Closer): Operator {
  const { platform, version: release, group, service } = options;
  const { clock, random, logger } = platform;
  const { member, machine, clusterId } = group;
  const { deps, forwarding, level } = service;
  const door = createOperator({
    ...deps,
    group: groupOf(member, () => level.status()),
    primary: service.federation.primaryPort(),
    runInDatacenter: runInDatacenterBy(service.federation.line),
    archives: openArchives({ ...deps, machine, clusterId, release }),
    runAtLeader: runAtLeaderBy(forwarding),
    beginRestoreAtLeader: beginRestoreBy(forwarding),
  });
  const answering = answeringOperatorsWith({ door, clock, random, logger });
  closer.defer(() => answering.close());
  member.serve(OPERATOR_METHOD, ({ payload }) => answering.answer(payload));
  const answerDatacenter = answering.answerDatacenter.bind(answering);
  service.federation.serve(OPERATOR_ELSEWHERE_METHOD, ({ payload }) => answerDatacenter(payload));
  return door;
}
