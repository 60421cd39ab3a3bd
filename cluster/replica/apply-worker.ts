// Raft's apply worker: gives committed entries to the machine in order, one call in flight, and
// whatever queued meanwhile in the next one. Only what is in the own log's disk gets here.

import { assert } from '../base/assert.ts';
import type { Message, StorageApplyMessage } from '../raft/message.ts';
import { payloadSizeBytes } from '../raft/entry.ts';
import { countWithin, type GroupLimits } from './group-limits.ts';
import type { Machine } from './replica.ts';
import type { StoredEntry, StoredLog } from './stored-log.ts';

/** Entries that the machine has on its disk now, with one outcome each. */
export interface Applied<Outcome> {
  readonly entries: readonly StoredEntry[];
  readonly outcomes: readonly Outcome[];
  readonly replies: readonly Message[];
}

export interface ApplyWorkerOptions<Outcome> {
  readonly machine: Machine<Outcome>;
  readonly stored: StoredLog;
  readonly limits: GroupLimits;
  readonly onDone: (applied: Applied<Outcome>) => void;
  readonly onFailed: (error: unknown) => void;
}

export class ApplyWorker<Outcome> {
  readonly #options: ApplyWorkerOptions<Outcome>;
  #queue: StorageApplyMessage[] = [];
  #applying: Promise<void> | undefined;

  constructor(options: ApplyWorkerOptions<Outcome>) {
    this.#options = options;
  }

  push(message: StorageApplyMessage): void {
    this.#queue.push(message);
  }

  /** What the machine has on its own disk. */
  get appliedIndex(): number {
    return this.#options.machine.appliedEntry?.index ?? 0;
  }

  /** Resolves when no call of the machine is in flight. */
  async idle(): Promise<void> {
    await this.#applying;
  }

  /** Starts the next call if none is in flight and there is something to apply. */
  start(): void {
    if (this.#applying !== undefined || this.#queue.length === 0) return;
    const sizes = this.#queue.map(({ entries }) => payloadSizeBytes(entries));
    const messages = this.#queue.splice(0, countWithin(sizes, this.#options.limits));
    this.#applying = this.#apply(messages).then(
      (applied) => {
        this.#applying = undefined;
        this.#options.onDone(applied);
      },
      (error: unknown) => {
        this.#applying = undefined;
        this.#options.onFailed(error);
      },
    );
  }

  async #apply(messages: readonly StorageApplyMessage[]): Promise<Applied<Outcome>> {
    const { machine, stored } = this.#options;
    const entries = messages
      .flatMap((message) => message.entries)
      .map(({ index, term }) => {
        const entry = stored.entry(index);
        assert(entry.term === term, 'what is applied is what is on disk', { index, term });
        return entry;
      });
    assert(entries[0]?.index === this.appliedIndex + 1, 'the machine goes on where it stands', {
      index: entries[0]?.index,
      appliedIndex: this.appliedIndex,
    });
    const outcomes = await machine.apply(entries);
    assert(outcomes.length === entries.length, 'one outcome an entry');
    assert(this.appliedIndex === entries.at(-1)?.index, 'the machine applied what it was given');
    return { entries, outcomes, replies: messages.flatMap((message) => message.replies) };
  }
}
