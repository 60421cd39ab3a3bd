// Raft's append worker: makes entries and promises durable in the order they come, one batch in flight,
// and whatever queued meanwhile in the next one. Replies leave only when everything before them is on
// disk. A commit index alone is no promise: it waits for the next batch that has to be written anyway.

import { assert } from '../base/assert.ts';
import { type DurableLog, TRIM_BATCH_MAX } from '../log/durable-log.ts';
import { type Entry, payloadSizeBytes } from '../raft/entry.ts';
import type { HardState } from '../raft/hard-state.ts';
import type { Message, StorageAppendMessage } from '../raft/message.ts';
import { countWithin, type GroupLimits } from './group-limits.ts';
import type { StoredLog } from './stored-log.ts';

export interface AppendWorkerOptions {
  readonly log: DurableLog;
  readonly stored: StoredLog;
  readonly limits: GroupLimits;
  /** Up to where entries may be trimmed now. */
  readonly trimThrough: () => number;
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

  constructor(options: AppendWorkerOptions) {
    this.#options = options;
    this.#hardState = options.stored.initialState().hardState;
  }

  push(message: StorageAppendMessage): void {
    assert(message.snapshot === undefined, 'no snapshot was taken in');
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
    const messages = this.#takeBatch();
    const entries = merged(messages);
    const replies = withoutOvertaken(messages.flatMap((message) => message.replies));
    const trimIndex = this.#options.stored.trimmable(this.#options.trimThrough());
    if (!this.#mustWrite(entries, trimIndex)) return messages.length > 0 ? replies : undefined;
    this.#writingTicks = 0;
    this.#writing = this.#write(entries, trimIndex).then(
      () => {
        this.#writing = undefined;
        this.#options.onDone(replies);
      },
      (error: unknown) => {
        this.#writing = undefined;
        this.#options.onFailed(error);
      },
    );
    return undefined;
  }

  #takeBatch(): readonly StorageAppendMessage[] {
    const sizes = this.#queue.map(({ entries }) => payloadSizeBytes(entries));
    const batch = this.#queue.splice(0, countWithin(sizes, this.#options.limits));
    for (const { hardState } of batch) this.#hardState = hardState ?? this.#hardState;
    return batch;
  }

  #mustWrite(entries: readonly Entry[], trimIndex: number): boolean {
    const { log } = this.#options;
    const { term, vote } = log.hardState;
    const promises = this.#hardState.term !== term || this.#hardState.vote !== vote;
    const trimCount = trimIndex - (log.firstIndex - 1);
    return entries.length > 0 || promises || trimCount >= TRIM_BATCH_MAX;
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
 * it all.
 */
function withoutOvertaken(replies: readonly Message[]): readonly Message[] {
  const lastOfTerm = new Map<number, Message>();
  for (const reply of replies) {
    if (reply.type === 'storage-append-reply') lastOfTerm.set(reply.term, reply);
  }
  return replies.filter(
    (reply) => reply.type !== 'storage-append-reply' || lastOfTerm.get(reply.term) === reply,
  );
}
