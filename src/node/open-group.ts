// Opens this node's databases and makes it a member of its group: alone, with those it founds it with,
// or with those it joins. Which of them, the settings say; how, is the member's matter.

import { must } from '../../cluster/base/assert.ts';
import type { Closer } from '../../cluster/base/closer.ts';
import { readClusterId } from '../../cluster/log/cluster-identity.ts';
import { DurableLog } from '../../cluster/log/durable-log.ts';
import type { Member } from '../../cluster/member/group-member.ts';
import { openMember } from '../../cluster/member.ts';
import type { Outcome } from '../state/commands/outcome.ts';
import { StateMachine } from '../state/machine.ts';
import { dropOtherGenerations, generationsOf, requireLogOfState } from './generations.ts';
import type { Platform } from './platform.ts';
import { groupPlanOf } from './settings/cluster-settings.ts';
import type { Settings } from './settings/settings.ts';

export interface GroupOptions {
  readonly settings: Settings;
  readonly platform: Platform;
  /** The version of the program. */
  readonly version: string;
  /** Up to which feature level it reads. */
  readonly reads: number;
  readonly onFatal: (cause: Error) => void;
  /** `host:port` that people are shown; empty before it listens. */
  readonly httpAddress: () => string;
  /** Called with the time of commands that are about to be applied. */
  readonly onCommandTime: (timeMs: number) => void;
}

export interface OpenGroup {
  readonly member: Member<Outcome>;
  /** The id that its founder gave the group; undefined while this node belongs to none. */
  readonly clusterId: () => string | undefined;
  readonly machine: StateMachine;
}

/** So large may the entries be on average that stay in the log for others. */
const TRAILING_BYTES = 16 * 1024;

/** What it opens it leaves to the closer. Rejects with what failed. */
export async function openGroup(options: GroupOptions, closer: Closer): Promise<OpenGroup> {
  const { settings, platform, version, reads, onFatal, httpAddress } = options;
  const { net, clock, random, logger, nodeId: id } = platform;
  const { node_name: name, datacenter } = settings;
  const logKv = await platform.openKv('log', 0, onFatal);
  closer.defer(() => logKv.close());
  await requireLogOfState(platform, logKv);
  let machine: StateMachine | undefined;
  const openMachine = async (generation: number): Promise<StateMachine> => {
    machine = await openState(options, generation);
    closer.defer(() => machine?.close());
    requireOwnState(machine, datacenter);
    // Before the member begins: from then on it may take in another one beside this.
    const { appliedEntry } = machine;
    await dropOtherGenerations(platform, generation, () => DurableLog.open(logKv, appliedEntry));
    return machine;
  };
  const member = await openMember<Outcome>({
    ...groupSettingsOf(settings),
    ...{ net, clock, random, logger, onFatal, logKv, openMachine },
    federationId: () => machine?.replication()?.federationId || undefined,
    self: { id, name, datacenter, version, reads, httpAddress },
  });
  closer.defer(() => member.close());
  return {
    member,
    clusterId: () => readClusterId(logKv),
    machine: must(machine, 'the state that the member opened'),
  };
}

/** Throws for another datacenter's: none of its reigns could begin. Before anything is written. */
function requireOwnState(machine: Pick<StateMachine, 'replication'>, datacenter: string): void {
  const owner = machine.replication()?.datacenter ?? datacenter;
  if (owner === datacenter) return;
  throw new Error(
    `the data folder is of datacenter ${owner}, and this server is started as one of ${datacenter}: a ` +
      `datacenter keeps its name; start it with its own folder, or as ${owner}`,
  );
}

async function openState(
  { platform, onFatal, reads, onCommandTime }: GroupOptions,
  generation: number,
): Promise<StateMachine> {
  const kv = await platform.openKv('state', generation, onFatal);
  const generations = generationsOf(platform, generation, onFatal);
  try {
    return StateMachine.open(kv, { clock: platform.clock, generations, reads, onCommandTime });
  } catch (error) {
    await kv.close();
    throw error;
  }
}

function groupSettingsOf(settings: Settings) {
  const { heartbeatMs, electionMs, leaderWaitMs, ...plan } = groupPlanOf(settings);
  return {
    ...plan,
    groupTiming: {
      tickMs: heartbeatMs,
      heartbeatTicks: 1,
      electionTicks: Math.round(electionMs / heartbeatMs),
      readTimeoutMs: leaderWaitMs,
    },
    groupLimits: {
      pendingCountMax: settings['limits.pending_writes_max'],
      keptCount: settings['raft.trailing_logs'],
      keptBytesMax: settings['raft.trailing_logs'] * TRAILING_BYTES,
    },
  };
}
