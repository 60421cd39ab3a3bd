// The group of servers on the screen: who belongs to it, how far each log reaches, how each does.

import type { Colors } from 'picocolors/types.js';
import type { CallOutput } from '../../client/call-types.ts';
import { field, list, type Part } from './block.ts';
import { timeText } from './common.ts';
import type { Column } from './table.ts';

type Peer = CallOutput<'operator.raft-configuration'>['Servers'][number];
type Configuration = CallOutput<'operator.autopilot-configuration'>;
type State = CallOutput<'operator.autopilot-state'>;

/** The columns in the order that people know, with how far each trails the leader. */
export function peerColumns(peers: readonly Peer[]): readonly Column<Peer>[] {
  const leader = peers.find(({ Leader }) => Leader);
  return [
    { heading: 'Node', cell: ({ Node }) => Node },
    { heading: 'ID', cell: ({ ID }) => ID },
    { heading: 'Address', cell: ({ Address }) => Address },
    { heading: 'State', cell: stateOf },
    { heading: 'Voter', cell: ({ Voter }) => String(Voter) },
    { heading: 'RaftProtocol', cell: ({ ProtocolVersion }) => ProtocolVersion },
    { heading: 'Commit Index', cell: ({ LastIndex }) => (LastIndex === 0 ? '' : `${LastIndex}`) },
    { heading: 'Trails Leader By', cell: (peer) => trailText(peer, leader) },
  ];
}

function stateOf({ Leader, Voter }: Peer): string {
  if (Leader) return 'leader';
  return Voter ? 'follower' : 'learner';
}

/** Empty where it is the leader itself, or where one of the two indexes is not known. */
function trailText(peer: Peer, leader: Peer | undefined): string {
  if (leader === undefined || peer.Leader || peer.LastIndex === 0) return '';
  const count = Math.max(0, leader.LastIndex - peer.LastIndex);
  return count === 1 ? '1 commit' : `${count} commits`;
}

export function autopilotConfigurationParts(configuration: Configuration): readonly Part[] {
  return [
    field('CleanupDeadServers', configuration.CleanupDeadServers),
    field('LastContactThreshold', configuration.LastContactThreshold),
    field('MaxTrailingLogs', configuration.MaxTrailingLogs),
    field('MinQuorum', configuration.MinQuorum),
    field('ServerStabilizationTime', configuration.ServerStabilizationTime),
    field('Modify Index', configuration.ModifyIndex),
  ];
}

export function autopilotStateParts(state: State, colors: Colors): readonly Part[] {
  const servers = Object.values(state.Servers);
  return [
    healthPart(state, colors),
    field('Failure Tolerance', state.FailureTolerance),
    field('Leader', state.Leader === '' ? 'none' : state.Leader),
    list('Voters', state.Voters),
    field('Feature Level', levelText(state.FeatureLevel)),
    ...servers.map((server) => list(`Server ${server.Name}`, serverLines(server))),
  ];
}

function levelText({ Active, Readable, WaitsFor }: State['FeatureLevel']): string {
  if (Active >= Readable) return String(Active);
  return `${Active} (${Readable} waits for ${WaitsFor.join(', ')})`;
}

function healthPart({ Healthy, Servers }: State, colors: Colors): Part {
  if (Healthy) return field('Healthy', true);
  const names = Object.values(Servers)
    .filter((server) => !server.Healthy)
    .map(({ Name }) => Name);
  return { kind: 'styled', name: 'Healthy', value: colors.red('false'), rest: names.join(', ') };
}

function serverLines(server: State['Servers'][string]): readonly string[] {
  const contact = server.LastContact ?? 'never';
  return [
    `ID: ${server.ID}`,
    `Address: ${server.Address}`,
    `Version: ${server.Version}`,
    `Status: ${server.Status}`,
    `Node Status: ${server.NodeStatus}`,
    `Healthy: ${server.Healthy}`,
    `Last Contact: ${contact}`,
    `Last Term: ${server.LastTerm}`,
    `Last Index: ${server.LastIndex}`,
    `Stable Since: ${timeText(server.StableSince)}`,
  ];
}
