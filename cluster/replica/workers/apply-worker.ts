// Raft's apply worker: gives committed entries to the machine in order, one call in flight, and
// whatever queued meanwhile in the next one. Only what is in the own log's disk gets here. Changes of
// membership are folded into the group record on the way, which the machine keeps with the entry.

import { assert, must } from '../../base/assert.ts';
import { payloadSizeBytes } from '../../raft/log/entry.ts';
import {
  decodeMembershipChange,
  type MembershipChange,
} from '../../raft/membership/membership-change.ts';
import type { Message, StorageApplyMessage } from '../../raft/message.ts';
import { countWithin, type GroupLimits } from '../group-limits.ts';
import {
  decodeGroupRecord,
  EMPTY_GROUP,
  encodeGroupRecord,
  type GroupRecord,
  nextGroupRecord,
} from '../group-record.ts';
import type { AppliedEntry, Machine } from '../replica.ts';
import type { StoredEntry, StoredLog } from './stored-log.ts';

/** Entries that the machine has on its disk now, with one outcome each. */
export interface Applied<Outcome> {
  readonly entries: readonly StoredEntry[];
  readonly outcomes: readonly Outcome[];
  readonly changes: readonly AppliedChange[];
  readonly replies: readonly Message[];
}

/** A change of membership among the entries. */
export interface AppliedChange {
  readonly index: number;
  readonly term: number;
  readonly change: MembershipChange;
  /** What it made of the record that it met. */
  readonly record: GroupRecord;
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
  #applyingTicks = 0;
  #isHeld = false;
  /** As of the last entry that was given to the machine. */
  #record: GroupRecord;

  constructor(options: ApplyWorkerOptions<Outcome>) {
    this.#options = options;
    this.#record = recordOf(options.machine);
  }

  push(message: StorageApplyMessage): void {
    this.#queue.push(message);
  }

  /** What the machine has on its own disk. */
  get appliedIndex(): number {
    return this.#options.machine.appliedEntry?.index ?? 0;
  }

  /** How many ticks the call in flight has seen; 0 without one. */
  get applyingTicks(): number {
    return this.#applying === undefined ? 0 : this.#applyingTicks;
  }

  onTick(): void {
    this.#applyingTicks += 1;
  }

  /** Resolves when no call of the machine is in flight. */
  async idle(): Promise<void> {
    await this.#applying;
  }

  /** Begins no further call; resolves when none is in flight. */
  async hold(): Promise<void> {
    this.#isHeld = true;
    await this.#applying;
  }

  /** Goes on, with a machine that may have come further meanwhile. */
  release(): void {
    this.#isHeld = false;
    this.#record = recordOf(this.#options.machine);
  }

  /** Starts the next call if none is in flight and there is something to apply. */
  start(): void {
    if (this.#isHeld || this.#applying !== undefined || this.#queue.length === 0) return;
    const sizes = this.#queue.map(({ entries }) => payloadSizeBytes(entries));
    const messages = this.#queue.splice(0, countWithin(sizes, this.#options.limits));
    this.#applyingTicks = 0;
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
    const { machine } = this.#options;
    const entries = this.#entriesOf(messages);
    const replies = messages.flatMap((message) => message.replies);
    if (entries.length === 0) return { entries, outcomes: [], changes: [], replies };
    assert(entries[0]?.index === this.appliedIndex + 1, 'the machine goes on where it stands', {
      index: entries[0]?.index,
      appliedIndex: this.appliedIndex,
    });
    const changes: AppliedChange[] = [];
    const outcomes = await machine.apply(entries.map((entry) => this.#given(entry, changes)));
    assert(outcomes.length === entries.length, 'one outcome an entry');
    assert(this.appliedIndex === entries.at(-1)?.index, 'the machine applied what it was given');
    return { entries, outcomes, changes, replies };
  }

  /** Without those that a snapshot has brought meanwhile. */
  #entriesOf(messages: readonly StorageApplyMessage[]): readonly StoredEntry[] {
    const { appliedIndex } = this;
    const entries: StoredEntry[] = [];
    for (const message of messages) {
      for (const { index, term } of message.entries) {
        if (index <= appliedIndex) continue;
        const entry = this.#options.stored.entry(index);
        assert(entry.term === term, 'what is applied is what is on disk', { index, term });
        entries.push(entry);
      }
    }
    return entries;
  }

  #given(entry: StoredEntry, changes: AppliedChange[]): AppliedEntry {
    if (entry.type === 'normal') return entry;
    const { index, term, payload } = entry;
    const change = must(decodeMembershipChange(payload), `a membership change at ${index}`);
    const record = nextGroupRecord(this.#record, change);
    this.#record = record;
    changes.push({ index, term, change, record });
    return { ...entry, groupRecord: encodeGroupRecord(record) };
  }
}

/** What the machine remembers. */
export function recordOf({ groupRecord }: Pick<Machine<unknown>, 'groupRecord'>): GroupRecord {
  return groupRecord === undefined ? EMPTY_GROUP : decodeGroupRecord(groupRecord);
}
