// A group of nodes in one process, with a network that holds every message until it is told what to do
// with it, and disks that write at once or, with asyncStorage, when told to. The state machine keeps
// its whole history, so that any snapshot can be asked for again.

import { assert, must } from '../../../cluster/base/assert.ts';
import type { RaftConfig } from '../../../cluster/raft/config.ts';
import { LEVEL_OF_EVENT } from '../../../cluster/raft/events.ts';
import type { HardState } from '../../../cluster/raft/hard-state.ts';
import type { Entry } from '../../../cluster/raft/log/entry.ts';
import type { Snapshot } from '../../../cluster/raft/log/snapshot.ts';
import { changeStep, NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import { decodeMembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type {
  Message,
  MessageType,
  StorageAppendMessage,
  StorageApplyMessage,
} from '../../../cluster/raft/message.ts';
import { isWorker, type NodeId } from '../../../cluster/raft/node-id.ts';
import { createRaft } from '../../../cluster/raft/raft.ts';
import { RawNode } from '../../../cluster/raft/raw-node.ts';
import type { Refusal } from '../../../cluster/raft/refusal.ts';
import type { Raft } from '../../../cluster/raft/state.ts';
import { type DescribeOptions, describeEntry, describeMessage, describeReady } from './describe.ts';
import { MemoryStorage } from './memory-storage.ts';
import { Output } from './output.ts';
import { wordsFor } from './wording.ts';

/** Context of a change that was proposed in the old form, which transcripts name differently. */
export const OLD_FORM = new TextEncoder().encode('v1');

/** What a node is set up with; the group adds id, storage, randomness and observer. */
export type NodeOptions = Omit<RaftConfig, 'id' | 'storage' | 'random' | 'observe'>;

export const DEFAULT_OPTIONS: NodeOptions = {
  electionTicks: 3,
  heartbeatTicks: 1,
  maxMessageBytes: Number.POSITIVE_INFINITY,
  maxInflightMessages: 2 ** 31 - 1,
  preVote: false,
  checkQuorum: false,
  stepDownOnRemoval: false,
};

const REFUSAL_WORDS: Readonly<Record<Refusal, string>> = {
  'no-leader': 'raft proposal dropped',
  'not-a-member': 'raft proposal dropped',
  'transfer-in-progress': 'raft proposal dropped',
  'uncommitted-limit': 'raft proposal dropped',
  'forwarding-off': 'raft proposal dropped',
  'malformed-change': 'raft proposal dropped',
  'unknown-member': 'raft: cannot step as peer not found',
  'local-message': 'raft: cannot step raft local message',
  'message-without-term': 'message without a term',
};

/** One node with its disk, its state machine and its storage workers' queues. */
export interface GroupNode {
  readonly id: NodeId;
  readonly storage: MemoryStorage;
  options: NodeOptions;
  raft: Raft;
  node: RawNode;
  appendWork: StorageAppendMessage[];
  applyWork: StorageApplyMessage[];
  history: Snapshot[];
}

/** Whom messages are delivered to, or dropped for. */
export interface Recipient {
  readonly id: NodeId;
  readonly drop: boolean;
}

/** Which messages are meant. */
export interface MessageFilter {
  readonly type?: MessageType;
  readonly from?: NodeId;
}

export const DESCRIBE: DescribeOptions = {
  entryType: ({ type, data }) => {
    if (type === 'normal') return 'EntryNormal';
    const context = decodeMembershipChange(data)?.context ?? [];
    return context.length > 0 ? 'EntryConfChange' : 'EntryConfChangeV2';
  },
};

/** The text that a refused call prints. */
export function wordsForRefusal(refusal: Refusal): string {
  return REFUSAL_WORDS[refusal];
}

/** Nodes 1, 2, 3… and the messages between them. */
export class Group {
  readonly #random: (below: number) => number;
  readonly #fixed: Partial<NodeOptions>;
  readonly output = new Output();
  readonly nodes: GroupNode[] = [];
  /** Sent and neither delivered nor dropped, in the order of sending. */
  network: Message[] = [];

  /** Without a source of randomness all election timeouts are the shortest. What is `fixed` holds for every node. */
  constructor(random: (below: number) => number = () => 0, fixed: Partial<NodeOptions> = {}) {
    this.#random = random;
    this.#fixed = fixed;
  }

  node(id: NodeId): GroupNode {
    return must(this.nodes[id - 1], `node ${id}`);
  }

  /** Adds a node whose disk holds `snapshot` and nothing else. */
  add(options: NodeOptions, snapshot: Snapshot | undefined): void {
    const id = this.nodes.length + 1;
    const storage = new MemoryStorage();
    if (snapshot !== undefined) storage.applySnapshot(snapshot);
    const empty: Snapshot = { term: 0, index: 0, membership: NO_MEMBERS, data: new Uint8Array() };
    const history = [snapshot ?? empty];
    const start = { ...options, appliedIndex: snapshot?.index ?? 0 };
    storage.membership = snapshot?.membership ?? NO_MEMBERS;
    const raft = createRaft(this.#config(id, start, storage));
    const node = new RawNode(raft);
    const member = { id, storage, options, raft, node, appendWork: [], applyWork: [], history };
    this.nodes.push(member);
    storage.snapshotSource = () => member.history.at(-1);
  }

  /**
   * Stops a node at once and starts it again from its disk: what was not written is lost, and with
   * it the messages that waited for that. The state machine has kept what it had up to `appliedIndex`.
   */
  restart(id: NodeId, appliedIndex: number, options: Partial<NodeOptions>): void {
    const member = this.node(id);
    member.history = member.history.filter(({ index }) => index <= appliedIndex);
    const state = must(member.history.at(-1), 'a state to restart from');
    member.storage.membership = state.membership;
    member.options = { ...member.options, ...options };
    member.appendWork = [];
    member.applyWork = [];
    const start = { ...member.options, appliedIndex: state.index };
    member.raft = createRaft(this.#config(id, start, member.storage));
    member.node = new RawNode(member.raft);
  }

  /** Takes one Ready and does all of it, or hands it to the workers. */
  processReady(id: NodeId): void {
    const member = this.node(id);
    const ready = member.node.ready();
    this.output.print(describeReady(ready, DESCRIBE));
    const { asyncStorage } = member.options;
    if (!asyncStorage) {
      write(member, ready);
      this.#apply(member, ready.committedEntries);
    }
    for (const message of ready.messages) {
      if (message.type === 'storage-append') member.appendWork.push(message);
      else if (message.type === 'storage-apply') member.applyWork.push(message);
      else this.network.push(message);
    }
    if (!asyncStorage) member.node.advance();
  }

  /** Does the oldest piece of the append worker's work. */
  processAppendWork(id: NodeId): void {
    const member = this.node(id);
    const work = member.appendWork.shift();
    if (work === undefined) {
      this.output.print('no append work to perform');
      return;
    }
    this.#printWork(work, () => write(member, work));
  }

  /** Does the oldest piece of the apply worker's work. */
  processApplyWork(id: NodeId): void {
    const member = this.node(id);
    const work = member.applyWork.shift();
    if (work === undefined) {
      this.output.print('no apply work to perform');
      return;
    }
    this.#printWork(work, () => this.#apply(member, work.entries));
  }

  /** Delivers or drops; returns how many messages that were. */
  deliver(recipients: readonly Recipient[], filter: MessageFilter = {}): number {
    let count = 0;
    for (const { id, drop } of recipients) {
      const taken = this.#take(id, filter, { drop });
      count += taken.length;
      for (const message of taken) {
        this.output.print(`${drop ? 'dropped: ' : ''}${describeMessage(message, DESCRIBE)}`);
        if (!drop) this.#step(message);
      }
    }
    return count;
  }

  /** Works on until none of the nodes, the network or the workers has anything left to do. */
  stabilize(ids: readonly NodeId[]): void {
    const work: ((id: NodeId) => boolean)[] = [
      (id) => this.#stabilizeReady(id),
      (id) => this.#stabilizeNetwork(id),
      (id) => this.#stabilizeAppends(id),
      (id) => this.#stabilizeApplies(id),
    ];
    for (let busy = true; busy; ) {
      // Every kind of work for all nodes before the next kind.
      busy = work.map((doWork) => ids.map(doWork).some(Boolean)).some(Boolean);
    }
  }

  printLog(id: NodeId): void {
    const { storage } = this.node(id);
    const [first, last] = [storage.firstIndex(), storage.lastIndex()];
    if (last < first) {
      this.output.print(`log is empty: first index=${first}, last index=${last}`);
      return;
    }
    const entries = storage.entries(first, last + 1, Number.POSITIVE_INFINITY);
    assert(typeof entries !== 'string', 'the log is unreadable', { entries });
    for (const entry of entries) this.output.print(describeEntry(entry, DESCRIBE));
  }

  #config(id: NodeId, options: NodeOptions, storage: MemoryStorage): RaftConfig {
    return {
      ...options,
      ...this.#fixed,
      id,
      storage,
      random: this.#random,
      observe: (event) => this.output.log(LEVEL_OF_EVENT[event.kind], wordsFor(id, event)),
    };
  }

  #stabilizeReady(id: NodeId): boolean {
    if (!this.node(id).node.hasReady()) return false;
    this.output.print(`> ${id} handling Ready`);
    this.output.indented(() => this.processReady(id));
    return true;
  }

  #stabilizeNetwork(id: NodeId): boolean {
    if (!this.network.some(({ to }) => to === id)) return false;
    this.output.print(`> ${id} receiving messages`);
    this.output.indented(() => this.deliver([{ id, drop: false }]));
    return true;
  }

  #stabilizeAppends(id: NodeId): boolean {
    const { appendWork } = this.node(id);
    if (appendWork.length === 0) return false;
    this.output.print(`> ${id} processing append thread`);
    while (appendWork.length > 0) this.output.indented(() => this.processAppendWork(id));
    return true;
  }

  #stabilizeApplies(id: NodeId): boolean {
    const { applyWork } = this.node(id);
    if (applyWork.length === 0) return false;
    this.output.print(`> ${id} processing apply thread`);
    while (applyWork.length > 0) this.output.indented(() => this.processApplyWork(id));
    return true;
  }

  #step(message: Message): void {
    const refusal = this.node(message.to).node.step(message);
    if (refusal !== undefined) this.output.print(wordsForRefusal(refusal));
  }

  #take(to: NodeId, { type, from }: MessageFilter, { drop }: { drop: boolean }): Message[] {
    const isMeant = (message: Message): boolean =>
      message.to === to &&
      (type === undefined || message.type === type) &&
      (from === undefined || message.from === from) &&
      // What a node says to itself does not cross the network and cannot get lost there.
      !(drop && (isWorker(message.from) || message.from === message.to));
    const taken = this.network.filter(isMeant);
    this.network = this.network.filter((message) => !isMeant(message));
    return taken;
  }

  #printWork(work: StorageAppendMessage | StorageApplyMessage, doWork: () => void): void {
    this.output.print('Processing:');
    this.output.print(describeMessage({ ...work, replies: [] }, DESCRIBE));
    doWork();
    this.output.print('Responses:');
    for (const reply of work.replies) this.output.print(describeMessage(reply, DESCRIBE));
    this.network.push(...work.replies);
  }

  #apply(member: GroupNode, entries: readonly Entry[]): void {
    for (const { type, data, term, index } of entries) {
      const before = must(member.history.at(-1), 'a state to apply to');
      // A snapshot may have been written while the entry waited to be applied.
      if (index <= before.index) continue;
      assert(index === before.index + 1, 'entries applied with a gap', { index, at: before.index });
      const state = { term, index, membership: before.membership, data: before.data };
      if (type === 'normal') {
        member.history.push({ ...state, data: concatenated(before.data, data) });
        continue;
      }
      const change = must(decodeMembershipChange(data), 'a change that can be applied');
      member.node.applyMembership(index, change);
      const step = changeStep(before.membership, change);
      member.history.push({
        ...state,
        membership: typeof step === 'string' ? before.membership : step.membership,
      });
    }
  }
}

function write(
  member: GroupNode,
  {
    hardState,
    entries,
    snapshot,
  }: { hardState?: HardState; entries: readonly Entry[]; snapshot?: Snapshot },
): void {
  const { storage } = member;
  if (hardState !== undefined) storage.hardState = hardState;
  if (snapshot !== undefined) {
    storage.applySnapshot(snapshot);
    member.history = [...member.history, snapshot];
  }
  storage.append(entries);
}

function concatenated(a: Uint8Array, b: Uint8Array): Uint8Array {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}
