// The replica with its log and the register machine: all of cluster/ but the transport and the member.
// Who belongs to the group is founded on the disks before the first start, as the member would do it.

import { readClusterId, writeFounding } from '../../../cluster/log/cluster-identity.ts';
import { DurableLog, readGeneration } from '../../../cluster/log/durable-log.ts';
import { decodeWitness } from '../../../cluster/log/log-entry.ts';
import { encodeMembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type { Message } from '../../../cluster/raft/message.ts';
import type { GroupLimits, GroupTiming } from '../../../cluster/replica/group-limits.ts';
import { encodeGroupContext, type MemberRecord } from '../../../cluster/replica/group-record.ts';
import type { GroupReplica } from '../../../cluster/replica/group-replica.ts';
import { openRaftReplica } from '../../../cluster/replica/raft-replica.ts';
import type { ReplicaStatus } from '../../../cluster/replica/replica.ts';
import type { SimStore } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { LeavingFrame } from '../world/sim-net.ts';
import type { SimProcess } from '../world/sim-process.ts';
import type { World } from '../world/world.ts';
import { CARRIER_PORT, Carrier, messagesInFrame } from './carrier.ts';
import {
  GROUP_ROW,
  RegisterMachine,
  type RegisterOutcome,
  WITNESS_ROW,
} from './register-machine.ts';
import {
  type LiveNode,
  LOG_STORE,
  type StoredStanding,
  type Subject,
  stateStoreName,
} from './subject.ts';

/** A replica that is up, with what a client asks of it. */
export interface LiveReplica extends LiveNode {
  readonly replica: GroupReplica<RegisterOutcome>;
  readonly machine: RegisterMachine;
}

export interface ReplicaSubjectOptions {
  readonly world: World;
  /** The hosts that found the group. */
  readonly founderCount: number;
  readonly timing: GroupTiming;
  readonly limits: Partial<GroupLimits>;
}

const CLUSTER_ID = '0c0c0c0c-0000-4000-8000-000000000001';
/** A host's node gets another number with every new disk. */
const DISK_STEP = 100;

export class ReplicaSubject implements Subject {
  readonly name = 'replica';
  readonly timing: GroupTiming;
  readonly #options: ReplicaSubjectOptions;

  constructor(options: ReplicaSubjectOptions) {
    this.#options = options;
    this.timing = options.timing;
  }

  nodeOf(host: SimHost): number {
    return host.number + DISK_STEP * (host.diskNumber - 1);
  }

  hostOf(node: number): SimHost | undefined {
    return this.#options.world.hosts.find((host) => host.number === node % DISK_STEP);
  }

  recordOf(host: SimHost): MemberRecord {
    const node = this.nodeOf(host);
    return {
      node,
      id: `id-${node}`,
      name: host.name,
      address: { host: host.name, port: CARRIER_PORT },
      httpAddress: '',
      version: 'sim',
    };
  }

  messagesIn({ frame }: LeavingFrame): readonly Message[] {
    return messagesInFrame(frame);
  }

  standingIn({ synced }: SimStore): StoredStanding | undefined {
    const row = synced.get(WITNESS_ROW);
    if (row === undefined) return undefined;
    return { appliedEntry: decodeWitness(row), groupRecord: synced.get(GROUP_ROW) };
  }

  async start(
    host: SimHost,
    process: SimProcess,
    onExit: (cause: Error) => void,
  ): Promise<LiveReplica> {
    const { timing, limits } = this.#options;
    const { clock, random, logger } = process;
    const nodeId = this.nodeOf(host);
    const logKv = await host.openKv(LOG_STORE, process, onExit);
    const isFounder = host.number <= this.#options.founderCount && host.diskNumber === 1;
    if (isFounder && readClusterId(logKv) === undefined) {
      await writeFounding(logKv, { clusterId: CLUSTER_ID, payloads: this.#foundingPayloads() });
    }
    const generation = readGeneration(logKv);
    for (const name of host.disk.storeNames) {
      if (name !== LOG_STORE && name !== stateStoreName(generation)) host.disk.drop(name);
    }
    const stateKv = await host.openKv(stateStoreName(generation), process, onExit);
    const machine = new RegisterMachine(stateKv, generation, {
      open: (each) => {
        host.disk.drop(stateStoreName(each));
        return host.openKv(stateStoreName(each), process, onExit);
      },
      discard: async (each, kv) => {
        await kv.close();
        host.disk.drop(stateStoreName(each));
      },
    });
    const log = await DurableLog.open(logKv, machine.appliedEntry);
    const carrier: Carrier = new Carrier({
      net: host.netOf(process),
      clock,
      self: nodeId,
      host: host.name,
      hostOf: (node) => this.hostOf(node)?.name,
      onMessage: (message) => replica.receive(message),
      onLinkClosed: (node) => replica.linkClosed(node),
      beginSnapshot: (message) => replica.beginSnapshot(message),
    });
    const replica: GroupReplica<RegisterOutcome> = openRaftReplica({
      nodeId,
      log,
      machine,
      send: (to, message) => carrier.send(to, message),
      sendSnapshot: (to, message, snapshot) => carrier.sendSnapshot(to, message, snapshot),
      clock,
      random,
      logger,
      onFatal: onExit,
      timing,
      limits,
    });
    await carrier.listen();
    let last: ReplicaStatus | undefined;
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      await replica.close();
      last = replica.status();
      carrier.close();
      await machine.close();
      await logKv.close();
    };
    return {
      replica,
      machine,
      status: () => last ?? replica.status(),
      transferLeadership: (to) => replica.transferLeadership(this.nodeOf(to)),
      close: () => {
        closing ??= close();
        return closing;
      },
    };
  }

  #foundingPayloads(): readonly Uint8Array[] {
    const { world, founderCount } = this.#options;
    return world.hosts.slice(0, founderCount).map((host) => {
      const record = { ...this.recordOf(host), node: host.number };
      return encodeMembershipChange({
        transition: 'auto',
        changes: [{ kind: 'add-voter', node: host.number }],
        context: encodeGroupContext({ members: [record] }),
      });
    });
  }
}
