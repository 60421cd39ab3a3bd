// Raft's append worker: makes entries, promises and snapshots durable in the order they come, one batch
// in flight, and whatever queued meanwhile in the next one. Replies leave only when everything before
// them is on disk. A commit index alone is no promise: it waits for the next batch that has to be
// written anyway.

import { type DurableLog, TRIM_BATCH_MAX } from '../../log/durable-log.ts';
import type { HardState } from '../../raft/hard-state.ts';
import { type Entry, payloadSizeBytes } from '../../raft/log/entry.ts';
import type { Snapshot } from '../../raft/log/snapshot.ts';
import type { Message, StorageAppendMessage } from '../../raft/message.ts';
import { countWithin, type GroupLimits } from '../group-limits.ts';
import type { StoredLog } from './stored-log.ts';
import type { Spare } from './trimming.ts';

export interface AppendWorkerOptions {
  readonly log: DurableLog;
  readonly stored: StoredLog;
  readonly limits: GroupLimits;
  /** What may be trimmed or forgotten now. */
  readonly spare: () => Spare;
  /** Puts a snapshot in the place of log and state; resolves when both are on disk and in use. */
  readonly install: (snapshot: Snapshot, hardState: HardState) => Promise<void>;
  readonly onDone: (replies: readonly Message[]) => void;
  readonly onFailed: (error: unknown) => void;
}

export class AppendWorker {
  readonly #options: AppendWorkerOptions;
  #queue: StorageAppendMessage[] = [];
  /** The newest one that was taken from the queue. */
  #hardState: HardState;
  #writing: Promise<void> | undefined;
  #writingTicks = 0;
  /** Without entries to write, it is enough to look for old ones to trim now and then. */
  #isTrimDue = true;

  constructor(options: AppendWorkerOptions) {
    this.#options = options;
    this.#hardState = options.stored.initialState().hardState;
  }

  push(message: StorageAppendMessage): void {
    this.#queue.push(message);
  }

  /**
   * How many ticks the batch in flight has seen; 0 without one. Not in time: when the process stands
   * still, that is not the disk's doing.
   */
  get writingTicks(): number {
    return this.#writing === undefined ? 0 : this.#writingTicks;
  }

  onTick(): void {
    this.#writingTicks += 1;
    this.#isTrimDue = true;
  }

  /** Resolves when no batch is in flight. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  /**
   * Starts the next batch if none is in flight. Returns the replies of one that needed no write, or
   * undefined when there is nothing to deliver now.
   */
  start(): readonly Message[] | undefined {
    if (this.#writing !== undefined) return undefined;
    const [head] = this.#queue;
    if (head?.snapshot !== undefined) {
      this.#begin(this.#install(head, head.snapshot), []);
      return undefined;
    }
    if (head === undefined && !this.#isTrimDue) return undefined;
    this.#isTrimDue = false;
    const messages = this.#takeBatch();
    const entries = merged(messages);
    const replies = withoutOvertaken(messages.flatMap((message) => message.replies));
    const trimIndex = this.#trimIndex();
    if (!this.#mustWrite(entries, trimIndex)) return messages.length > 0 ? replies : undefined;
    this.#begin(this.#write(entries, trimIndex), replies);
    return undefined;
  }

  #begin(work: Promise<void>, replies: readonly Message[]): void {
    this.#writingTicks = 0;
    this.#writing = work.then(
      () => {
        this.#writing = undefined;
        this.#options.onDone(replies);
      },
      (error: unknown) => {
        this.#writing = undefined;
        this.#options.onFailed(error);
      },
    );
  }

  /** The rest of the message, and its replies, come after the snapshot like any other message. */
  async #install(message: StorageAppendMessage, snapshot: Snapshot): Promise<void> {
    const { snapshot: _, ...rest } = message;
    this.#queue[0] = rest;
    this.#hardState = message.hardState ?? this.#hardState;
    await this.#options.install(snapshot, this.#hardState);
  }

  #takeBatch(): readonly StorageAppendMessage[] {
    const nextSnapshotAt = this.#queue.findIndex(({ snapshot }) => snapshot !== undefined);
    const free = nextSnapshotAt < 0 ? this.#queue : this.#queue.slice(0, nextSnapshotAt);
    const sizes = free.map(({ entries }) => payloadSizeBytes(entries));
    const batch = this.#queue.splice(0, countWithin(sizes, this.#options.limits));
    for (const { hardState } of batch) this.#hardState = hardState ?? this.#hardState;
    return batch;
  }

  #trimIndex(): number {
    const { stored, spare } = this.#options;
    const { onDiskThrough, inMemoryThrough } = spare();
    stored.forgetThrough(inMemoryThrough);
    return stored.trimmable(onDiskThrough);
  }

  #mustWrite(entries: readonly Entry[], trimIndex: number): boolean {
    const { log } = this.#options;
    const { term, vote } = log.hardState;
    const promises = this.#hardState.term !== term || this.#hardState.vote !== vote;
    const trimCount = trimIndex - (log.firstIndex - 1);
    const oldCount = Math.max(trimCount, log.leftoverCount);
    return entries.length > 0 || promises || oldCount >= TRIM_BATCH_MAX;
  }

  async #write(entries: readonly Entry[], trimThroughIndex: number): Promise<void> {
    const { log, stored } = this.#options;
    const { term, vote, commitIndex: commit } = this.#hardState;
    const chained = stored.chained(entries);
    stored.hideThrough(trimThroughIndex);
    await log.write({ entries: chained, hardState: { term, vote, commit }, trimThroughIndex });
    stored.written(chained);
  }
}

/** All entries of the messages, in order; where later ones replace earlier ones, the later ones. */
function merged(messages: readonly StorageAppendMessage[]): readonly Entry[] {
  const all: Entry[] = [];
  for (const { entries } of messages) {
    const [first] = entries;
    const last = all.at(-1);
    if (first === undefined) continue;
    if (last !== undefined && first.index <= last.index) {
      all.splice(Math.max(0, first.index - all[0]!.index));
    }
    for (const entry of entries) all.push(entry);
  }
  return all;
}

/**
 * Each storage-append-reply vouches for the log up to its end: of those of one term, the last one says
 * it all. But for one that reports a snapshot: only it does.
 */
function withoutOvertaken(replies: readonly Message[]): readonly Message[] {
  const lastOfTerm = new Map<number, Message>();
  for (const reply of replies) {
    if (reply.type === 'storage-append-reply') lastOfTerm.set(reply.term, reply);
  }
  return replies.filter(
    (reply) =>
      reply.type !== 'storage-append-reply' ||
      reply.snapshot !== undefined ||
      lastOfTerm.get(reply.term) === reply,
  );
}
