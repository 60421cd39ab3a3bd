// What operators send and get, with the names of the wire. render-operator.ts writes the answers.

import { type Static, Type } from 'typebox';
import { answer, body, count, duration, flag, nullable, readOnly, text } from './schema.ts';

const index = Type.Integer({ description: 'Counts the changes of the configuration.' });

const RaftServer = answer('RaftServer', {
  ID: Type.String(),
  Node: Type.String(),
  Address: text('Where the other servers reach it: `host:port`.'),
  Leader: Type.Boolean(),
  ProtocolVersion: Type.String(),
  Voter: Type.Boolean(),
  LastIndex: Type.Integer({
    description: 'How far its log is known to reach; 0 where this server cannot know.',
  }),
});

export const RaftConfiguration = answer('RaftConfiguration', {
  Servers: Type.Array(RaftServer),
  Index: Type.Integer({ description: 'The log index up to which this was applied.' }),
});

export const Transferred = answer('Transferred', { Success: Type.Boolean() });

export const AutopilotConfiguration = answer('AutopilotConfiguration', {
  CleanupDeadServers: Type.Boolean(),
  LastContactThreshold: Type.String(),
  MaxTrailingLogs: Type.Integer(),
  MinQuorum: Type.Integer(),
  ServerStabilizationTime: Type.String(),
  CreateIndex: index,
  ModifyIndex: index,
});

export const AutopilotConfigurationBody = body('AutopilotConfigurationInput', {
  CleanupDeadServers: flag('Remove failed servers while the others can spare them. Default: true.'),
  LastContactThreshold: duration(
    'A server not heard of for longer is unhealthy. Default: `200ms`.',
  ),
  MaxTrailingLogs: count('A server that lacks more entries is unhealthy. Default: 250.'),
  MinQuorum: count('Clean-up leaves at least so many voters. Default: 0.'),
  ServerStabilizationTime: duration(
    'So long a server must be healthy before it becomes a voter. Default: `10s`.',
  ),
  RedundancyZoneTag: text('Accepted where it is empty: there are no zones here.'),
  DisableUpgradeMigration: flag('Accepted where it is false: nothing is migrated here.'),
  UpgradeVersionTag: text('Accepted where it is empty: nothing is migrated here.'),
  CreateIndex: readOnly('Set by the service.'),
  ModifyIndex: readOnly('Set by the service; `cas` in the query compares it.'),
});
export type AutopilotConfigurationBody = Static<typeof AutopilotConfigurationBody>;

const health = {
  ID: Type.String(),
  Name: Type.String(),
  Address: Type.String(),
  Version: Type.String(),
  LastContact: nullable(text('How long ago the leader heard of it; null where it never did.')),
  LastTerm: Type.Integer(),
  LastIndex: Type.Integer(),
  Healthy: Type.Boolean(),
  StableSince: text('Since when it has been as healthy, or as unhealthy, as it is.'),
};

const standing = text('`alive` or `failed`.');

const ServerHealth = answer('ServerHealth', {
  ...health,
  SerfStatus: standing,
  Leader: Type.Boolean(),
  Voter: Type.Boolean(),
});

export const ServersHealth = answer('ServersHealth', {
  Healthy: Type.Boolean(),
  FailureTolerance: Type.Integer({
    description: 'So many voters can fail before the group stops taking writes.',
  }),
  Servers: Type.Array(ServerHealth),
});

const AutopilotServer = answer('AutopilotServer', {
  ...health,
  NodeStatus: standing,
  Status: text('`leader`, `voter` or `non-voter`.'),
  NodeType: text('What it shall be: always `voter`.'),
  ReadsFeatureLevel: nullable(
    Type.Integer({
      description: 'Up to which level it reads the log; null where that is not known.',
    }),
  ),
  Meta: Type.Record(Type.String(), Type.String()),
});

export const AutopilotState = answer('AutopilotState', {
  Healthy: Type.Boolean(),
  FailureTolerance: Type.Integer(),
  OptimisticFailureTolerance: Type.Integer({ description: 'The same as FailureTolerance.' }),
  Servers: Type.Record(Type.String(), AutopilotServer),
  Leader: text('The id of the leader.'),
  Voters: Type.Array(Type.String()),
  FeatureLevel: Type.Object({
    Active: Type.Integer({ description: 'The level that the log of the datacenter uses.' }),
    Readable: Type.Integer({ description: 'The level that the release of the leader reads.' }),
    WaitsFor: Type.Array(Type.String(), {
      description:
        'Servers and datacenters that must read the latter before the former rises to it.',
    }),
  }),
});

export const Restored = answer('Restored', {
  Index: Type.Integer({ description: 'The index of the datacenter from now on.' }),
});
