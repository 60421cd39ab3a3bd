// `conclave operator autopilot …`: how the leader looks after the group, and how well its servers do.

import type { Command } from 'commander';
import type { CallInput } from '../../../client/call-types.ts';
import { addCasFlag, addGroup, addLeaf, casOf, wholeNumber } from '../../command-line.ts';
import { CommandFailed } from '../../failed.ts';
import type { Session } from '../../session.ts';
import { autopilotConfigurationParts, autopilotStateParts } from '../../show/operator.ts';
import type { Surroundings } from '../../surroundings.ts';
import { UsageError } from '../../usage-error.ts';
import { unknownIn } from '../../writes.ts';

type Body = CallInput<'operator.autopilot-set-configuration'>['body'];

interface ChangeOptions {
  readonly cleanupDeadServers?: string;
  readonly lastContactThreshold?: string;
  readonly maxTrailingLogs?: number;
  readonly minQuorum?: number;
  readonly serverStabilizationTime?: string;
  readonly cas?: number;
}

/** Adds `autopilot` and its commands to `operator`. */
export function addAutopilotCommands(operator: Command, surroundings: Surroundings): void {
  const autopilot = addGroup(operator, 'autopilot', 'how the leader looks after the group');
  addLeaf(autopilot, surroundings, {
    name: 'get-config',
    says: 'show the configuration',
    run: getConfiguration,
  });
  addLeaf<ChangeOptions>(autopilot, surroundings, {
    name: 'set-config',
    says: 'change the configuration; what no flag mentions stays as it is',
    flags: addChangeFlags,
    run: setConfiguration,
  });
  addLeaf(autopilot, surroundings, {
    name: 'state',
    says: 'show how well each server does',
    run: showState,
  });
}

function addChangeFlags(command: Command): void {
  command
    .option('--cleanup-dead-servers <true|false>', 'remove failed servers by itself')
    .option('--last-contact-threshold <duration>', 'unhealthy is who was not heard of for longer')
    .option('--max-trailing-logs <count>', 'unhealthy is who lacks more log entries', wholeNumber)
    .option('--min-quorum <count>', 'voters that clean-up always leaves', wholeNumber)
    .option('--server-stabilization-time <duration>', 'so long a new server must be healthy first');
  addCasFlag(command);
}

async function getConfiguration(session: Session): Promise<void> {
  const { value } = await session.client.operator.autopilotConfiguration();
  await session.show(value, () => autopilotConfigurationParts(value));
}

async function setConfiguration(session: Session, options: ChangeOptions): Promise<void> {
  const { cas: _, ...changes } = options;
  const wanted = wantedOf(changes);
  const { value: current } = await session.client.operator.autopilotConfiguration();
  const body: Body = {
    ...unknownIn('operator.autopilot-configuration', current),
    CleanupDeadServers: current.CleanupDeadServers,
    LastContactThreshold: current.LastContactThreshold,
    MaxTrailingLogs: current.MaxTrailingLogs,
    MinQuorum: current.MinQuorum,
    ServerStabilizationTime: current.ServerStabilizationTime,
    ...wanted,
  };
  const { value } = await session.client.operator.autopilotSetConfiguration({
    query: { cas: casOf(options, current) },
    body,
  });
  if (!value) {
    throw new CommandFailed(
      'somebody else changed the configuration meanwhile: nothing was changed',
    );
  }
  await session.done(value, 'Configuration updated.');
}

/** The fields that flags mention. Throws UsageError when there are none. */
function wantedOf(options: Omit<ChangeOptions, 'cas'>): Partial<Body> {
  const wanted = {
    CleanupDeadServers: flagOf(options.cleanupDeadServers),
    LastContactThreshold: options.lastContactThreshold,
    MaxTrailingLogs: options.maxTrailingLogs,
    MinQuorum: options.minQuorum,
    ServerStabilizationTime: options.serverStabilizationTime,
  };
  const given = Object.entries(wanted).filter(([, value]) => value !== undefined);
  if (given.length === 0) throw new UsageError('say what to change: no flag names a setting');
  return Object.fromEntries(given) as Partial<Body>;
}

function flagOf(text: string | undefined): boolean | undefined {
  if (text === undefined || text === 'true' || text === 'false') return text && text === 'true';
  throw new UsageError(
    `--cleanup-dead-servers: expected true or false, not ${JSON.stringify(text)}`,
  );
}

async function showState(session: Session): Promise<void> {
  const { value } = await session.client.operator.autopilotState();
  await session.show(value, (colors) => autopilotStateParts(value, colors));
}
