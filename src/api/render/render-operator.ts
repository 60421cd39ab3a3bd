// What operators read, as JSON. Durations are written as deployed servers write them; what is not known
// is null or the zero time, never a number that looks like one.

import { formatDuration } from '../../acl/values/duration.ts';
import { quoteValue } from './quote.ts';
import type {
  ShownAutopilot,
  ShownAutopilotState,
  ShownGroup,
  ShownServer,
} from './shown-operator.ts';

/** The version of the protocol that deployed servers of this kind speak. */
const PROTOCOL_VERSION = '3';
const ZERO_TIME = '0001-01-01T00:00:00Z';
const NS_OF_MS = 1_000_000;

export function renderRaftConfiguration({ servers, appliedIndex }: ShownGroup): string {
  return quoteValue({
    Servers: servers.map((server) => ({
      ID: server.id,
      Node: server.name,
      Address: server.address,
      Leader: server.isLeader,
      ProtocolVersion: PROTOCOL_VERSION,
      Voter: server.isVoter,
      LastIndex: server.lastIndex ?? 0,
    })),
    Index: appliedIndex,
  });
}

export function renderTransferred(): string {
  return quoteValue({ Success: true });
}

export function renderAutopilotConfiguration({ settings, index }: ShownAutopilot): string {
  return quoteValue({
    CleanupDeadServers: settings.cleanupDeadServers,
    LastContactThreshold: durationText(settings.lastContactThresholdMs),
    MaxTrailingLogs: settings.maxTrailingLogs,
    MinQuorum: settings.minQuorum,
    ServerStabilizationTime: durationText(settings.serverStabilizationTimeMs),
    CreateIndex: 1,
    ModifyIndex: index,
  });
}

export function renderServersHealth(state: ShownAutopilotState): string {
  return quoteValue({
    Healthy: state.isHealthy,
    FailureTolerance: state.failureTolerance,
    Servers: state.servers.map((server) => ({
      ...healthOf(server),
      SerfStatus: standingOf(server),
      Leader: server.isLeader,
      Voter: server.isVoter,
    })),
  });
}

export function renderAutopilotState(state: ShownAutopilotState): string {
  const { servers, failureTolerance, level } = state;
  return quoteValue({
    Healthy: state.isHealthy,
    FailureTolerance: failureTolerance,
    OptimisticFailureTolerance: failureTolerance,
    Servers: Object.fromEntries(
      servers.map((server) => [
        server.id,
        {
          ...healthOf(server),
          NodeStatus: standingOf(server),
          Status: server.isLeader ? 'leader' : server.isVoter ? 'voter' : 'non-voter',
          NodeType: 'voter',
          ReadsFeatureLevel: server.reads ?? null,
          Meta: {},
        },
      ]),
    ),
    Leader: servers.find(({ isLeader }) => isLeader)?.id ?? '',
    Voters: servers.filter(({ isVoter }) => isVoter).map(({ id }) => id),
    FeatureLevel: { Active: level.uses, Readable: level.reads, WaitsFor: level.waitsFor },
  });
}

export function renderRestored({ index }: { readonly index: number }): string {
  return quoteValue({ Index: index });
}

function healthOf(server: ShownServer): object {
  return {
    ID: server.id,
    Name: server.name,
    Address: server.address,
    Version: server.version,
    LastContact:
      server.lastContactMs === undefined ? null : durationText(Math.round(server.lastContactMs)),
    LastTerm: server.lastTerm,
    LastIndex: server.lastIndex ?? 0,
    Healthy: server.isHealthy,
    StableSince:
      server.stableSinceMs === undefined ? ZERO_TIME : new Date(server.stableSinceMs).toISOString(),
  };
}

function standingOf({ isAlive }: ShownServer): string {
  return isAlive ? 'alive' : 'failed';
}

function durationText(ms: number): string {
  return formatDuration(BigInt(Math.round(ms * NS_OF_MS)));
}
