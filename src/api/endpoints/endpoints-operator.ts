// What operators ask of the group of servers: who belongs to it, who leads, how well each does, and the
// whole state as an archive; and of the datacenters: which one writes what all share. Operators of deployed servers
// know the paths and the fields. These are no operations on stored objects; src/service/operators/operator.ts runs
// them.

import { Type } from 'typebox';
import {
  AutopilotConfiguration,
  AutopilotConfigurationBody,
  AutopilotState,
  RaftConfiguration,
  Restored,
  ServersHealth,
  Transferred,
} from '../bodies/operator-schemas.ts';
import {
  Divergence,
  MovePrimaryBody,
  Primary,
  PrimaryMoved,
  Resubmitted,
} from '../bodies/primary-schemas.ts';
import { archive, done } from '../bodies/schema.ts';
import { type Endpoint, endpoint } from './endpoint.ts';

function look<
  const Part extends Pick<Endpoint, 'path' | 'summary' | 'query' | 'answer' | 'alsoAnswers'>,
>(part: Part) {
  return endpoint({
    kind: 'plain',
    method: 'GET',
    access: 'operator:read',
    namespaced: false,
    ...part,
  });
}

function act<
  const Part extends Pick<Endpoint, 'method' | 'path' | 'summary' | 'query' | 'answer' | 'body'>,
>(part: Part) {
  return endpoint({ kind: 'control', access: 'operator:write', namespaced: false, ...part });
}

const transferLeader = {
  path: '/v1/operator/raft/transfer-leader',
  query: { id: 'The id of the server that shall lead; without it any voter that is up to date.' },
  answer: Transferred,
} as const;

/** Those that take and give JSON, by name. */
export const OPERATOR_ENDPOINTS = {
  'operator.raft-configuration': look({
    path: '/v1/operator/raft/configuration',
    summary: 'The servers of the group, as its leader knows them; with `stale` as this one does.',
    answer: RaftConfiguration,
  }),
  'operator.raft-remove-peer': act({
    method: 'DELETE',
    path: '/v1/operator/raft/peer',
    summary: 'Remove a server from the group. Exactly one of `id` and `address` names it.',
    query: { id: 'The id of the server.', address: 'Its cluster address, `host:port`.' },
    answer: done('The server is no longer in the group.'),
  }),
  'operator.raft-transfer-leader': act({
    method: 'POST',
    summary: 'Hand leadership over to another server.',
    ...transferLeader,
  }),
  'operator.raft-transfer-leader-by-put': act({
    method: 'PUT',
    summary: 'The same as POST.',
    ...transferLeader,
  }),
  'operator.autopilot-configuration': look({
    path: '/v1/operator/autopilot/configuration',
    summary: 'How the leader looks after the group.',
    answer: AutopilotConfiguration,
  }),
  'operator.autopilot-set-configuration': act({
    method: 'PUT',
    path: '/v1/operator/autopilot/configuration',
    summary:
      'Replace how the leader looks after the group; a field that is absent gets its default.',
    query: { cas: 'Only if the ModifyIndex of the configuration is this one.' },
    body: {
      schema: AutopilotConfigurationBody,
      label: 'Error parsing autopilot config',
      required: true,
    },
    answer: Type.Boolean({
      description: 'False: the ModifyIndex was another one, and nothing was changed.',
    }),
  }),
  'operator.autopilot-health': look({
    path: '/v1/operator/autopilot/health',
    summary: 'Whether every server does well, in the eyes of the leader.',
    answer: ServersHealth,
    alsoAnswers: { status: 429, says: 'At least one server does not do well.' },
  }),
  'operator.autopilot-state': look({
    path: '/v1/operator/autopilot/state',
    summary: 'The same in more detail; always 200.',
    answer: AutopilotState,
  }),
  'operator.primary': look({
    path: '/v1/operator/primary',
    summary: 'Which datacenter writes what all share, as the datacenter that is asked knows it.',
    answer: Primary,
  }),
  'operator.move-primary': act({
    method: 'PUT',
    path: '/v1/operator/primary',
    summary: 'Make another datacenter the primary: hand it over, have it elected, or force it.',
    body: { schema: MovePrimaryBody, label: 'Error parsing the move', required: true },
    answer: PrimaryMoved,
  }),
  'operator.divergence': look({
    path: '/v1/operator/divergence',
    summary: 'Entries that this datacenter wrote as primary and that no later primary has.',
    query: { limit: 'At most so many entries, up to 1000; 100 by default.' },
    answer: Divergence,
  }),
  'operator.resubmit-divergent': act({
    method: 'PUT',
    path: '/v1/operator/divergence',
    summary: 'Have the primary make one of these changes anew. Needs acl:write as well.',
    query: {
      position: 'Which entry: `epoch.seq`.',
      cas: 'The ModifyIndex of the object that the change is put over; needed where it is there. 0: it is not, and shall be made anew.',
    },
    answer: Resubmitted,
  }),
  'operator.discard-divergent': act({
    method: 'DELETE',
    path: '/v1/operator/divergence',
    summary: 'Forget one of these entries, or all of them.',
    query: { position: 'Which entry: `epoch.seq`.', all: 'Present: all of them.' },
    answer: done('What was named is forgotten.'),
  }),
};

/** Those whose body or answer is an archive. */
export const SNAPSHOT_ENDPOINTS = {
  'snapshot.save': endpoint({
    kind: 'plain',
    method: 'GET',
    path: '/v1/snapshot',
    summary: 'The whole state of this datacenter as of one moment, as an archive with checksums.',
    access: 'acl:write',
    namespaced: false,
    answer: archive('The archive; what it ends with tells that it is whole.'),
    archive: 'answer',
  }),
  'snapshot.restore': endpoint({
    kind: 'control',
    method: 'PUT',
    path: '/v1/snapshot',
    summary: 'Replace the state of every server of this datacenter by that of an archive.',
    access: 'acl:write',
    namespaced: false,
    answer: Restored,
    archive: 'body',
  }),
};

export type OperatorEndpointName = keyof typeof OPERATOR_ENDPOINTS;
export type SnapshotEndpointName = keyof typeof SNAPSHOT_ENDPOINTS;
