// Corners that a long series of runs must have been in: lines that the product logs, and what the
// simulator notes itself. A mark that is not hit any more says that a corner is not simulated any more.

import { MARKS } from './checks/federation/federation-checks.ts';
import { MARKS as STAGE_MARKS } from './run/datacenters-stage.ts';
import type { SubjectName } from './run/run-options.ts';
import { MARKS as CLIENT_MARKS } from './workload/datacenters/datacenters-workload.ts';
import { MARKS as SESSION_MARKS } from './workload/datacenters/global/global-sessions.ts';
import { MARKS as ARCHIVE_MARKS } from './workload/datacenters/operators/archive-keeper.ts';
import { MARKS as COPY_MARKS } from './workload/datacenters/operators/copy-keeper.ts';
import { MARKS as KEEPER_MARKS } from './workload/datacenters/operators/datacenter-keeper.ts';
import { MARKS as FORK_MARKS } from './workload/datacenters/operators/fork-keeper.ts';
import { MARKS as LEVEL_MARKS } from './workload/datacenters/operators/level-operator.ts';
import { MARKS as PAIR_MARKS } from './workload/datacenters/operators/pair-keeper.ts';
import { MARKS as MOVER_MARKS } from './workload/datacenters/operators/primary-mover.ts';

const RAFT = [
  'became-leader',
  'quorum-lost',
  'vote-ignored-by-lease',
  'log-conflict',
  'transfer-caught-up',
  'campaign-barred-by-change',
  'auto-leave-started',
  'a snapshot is being sent',
  'the process stood still',
  'the disk does not answer',
].map((message) => `says: ${message}`);

const FEDERATION = [
  'says: a snapshot is being sent',
  'killed while it takes in: entries',
  'killed while it takes in: snapshot',
  ...Object.values(MARKS),
  ...Object.values(CLIENT_MARKS),
  ...Object.values(SESSION_MARKS),
  ...Object.values(MOVER_MARKS),
  ...Object.values(LEVEL_MARKS),
  ...Object.values(KEEPER_MARKS),
  ...Object.values(ARCHIVE_MARKS),
  ...Object.values(FORK_MARKS),
  ...Object.values(STAGE_MARKS),
  ...Object.values(COPY_MARKS),
  ...Object.values(PAIR_MARKS),
  'a primary was handed over',
  'a primary was elected',
  'a primary was forced',
];

const WORLD = ['a node ended itself', 'a node refused to start'];

export const EXPECTED_MARKS: Readonly<Record<SubjectName, readonly string[]>> = {
  replica: [...RAFT, ...WORLD],
  node: [...RAFT, ...WORLD],
  datacenters: [...FEDERATION],
};
