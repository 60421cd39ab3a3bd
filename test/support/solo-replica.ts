// The replica of a group of one voter. Two loops run beside each other: one writes batches of queued
// proposals to the log, the other applies what is committed. What queues while a sync is under way
// goes into the next batch. An entry is committed once this node's own disk has it, never before.
// The first failed write of either store ends it: nothing is tried again.

import { assert } from '../../cluster/base/assert.ts';
import { type DurableLog, TRIM_BATCH_MAX } from '../../cluster/log/durable-log.ts';
import { type LogEntry, nextEntry } from '../../cluster/log/log-entry.ts';
import {
  type Machine,
  type Replica,
  ReplicaError,
  type ReplicaStatus,
} from '../../cluster/replica/replica.ts';

export interface SoloReplicaOptions<Outcome> {
  readonly log: DurableLog;
  readonly machine: Machine<Outcome>;
  /** Called once, with the first failure of a store. The process should end. */
  readonly onFatal: (cause: Error) => void;
  readonly limits?: Partial<ReplicaLimits>;
}

export interface ReplicaLimits {
  /** Entries of one batch, of the log and of the machine. */
  readonly batchCountMax: number;
  /** Payload bytes of one batch; a single larger payload makes a batch of its own. */
  readonly batchBytesMax: number;
  /** Proposals under way, from being queued to being answered. */
  readonly pendingCountMax: number;
  readonly pendingBytesMax: number;
  readonly payloadBytesMax: number;
  /** Applied entries that stay in the log. */
  readonly keptCount: number;
}

const DEFAULT_LIMITS: ReplicaLimits = {
  batchCountMax: 256,
  batchBytesMax: 1024 * 1024,
  pendingCountMax: 8192,
  pendingBytesMax: 64 * 1024 * 1024,
  payloadBytesMax: 8 * 1024 * 1024,
  keptCount: 4096,
};

/** This node's vote for itself: a group of one has one name in it. */
const SELF = 1;

interface Proposal<Outcome> {
  readonly payload: Uint8Array;
  resolve(outcome: Outcome): void;
  reject(error: ReplicaError): void;
}

interface Committed<Outcome> {
  readonly entry: LogEntry;
  readonly proposal: Proposal<Outcome>;
}

/** Begins a new term and applies what the log has and the machine has not; then takes proposals. */
export async function openSoloReplica<Outcome>(
  options: SoloReplicaOptions<Outcome>,
): Promise<Replica<Outcome>> {
  const { log, machine } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  // The only voter has everything that is in its log, so all of it is committed.
  const commit = log.lastIndex;
  const term = log.hardState.term + 1;
  await log.write({ entries: [], hardState: { term, vote: SELF, commit } });
  await replay(log, machine, limits.batchCountMax);
  return new SoloReplica(options, limits, term);
}

async function replay<Outcome>(
  log: DurableLog,
  machine: Machine<Outcome>,
  countMax: number,
): Promise<void> {
  for (;;) {
    const from = appliedIndexOf(machine) + 1;
    if (from > log.lastIndex) return;
    const count = Math.min(countMax, log.lastIndex - from + 1);
    await machine.apply(Array.from({ length: count }, (_, place) => log.entry(from + place)));
    assert(appliedIndexOf(machine) === from + count - 1, 'the machine applied what it was given');
  }
}

function appliedIndexOf<Outcome>(machine: Machine<Outcome>): number {
  return machine.appliedEntry?.index ?? 0;
}

class SoloReplica<Outcome> implements Replica<Outcome> {
  readonly #log: DurableLog;
  readonly #machine: Machine<Outcome>;
  readonly #onFatal: (cause: Error) => void;
  readonly #limits: ReplicaLimits;
  readonly #term: number;
  /** Waiting for their batch of the log. */
  #queue: Proposal<Outcome>[] = [];
  /** Taken out of the queue, and not on disk yet. */
  #appending: readonly Proposal<Outcome>[] = [];
  /** On disk in the log, and not given to the machine yet. */
  #committed: Committed<Outcome>[] = [];
  #applying: readonly Committed<Outcome>[] = [];
  #pendingCount = 0;
  #pendingBytes = 0;
  #commitIndex: number;
  /** Both loops, while they run. */
  #logLoop: Promise<void> | undefined;
  #applyLoop: Promise<void> | undefined;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: SoloReplicaOptions<Outcome>, limits: ReplicaLimits, term: number) {
    this.#log = options.log;
    this.#machine = options.machine;
    this.#onFatal = options.onFatal;
    this.#limits = limits;
    this.#term = term;
    this.#commitIndex = options.log.lastIndex;
  }

  propose(payload: Uint8Array): Promise<Outcome> {
    const refusal = this.#refusalOf(payload);
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#pendingCount += 1;
    this.#pendingBytes += payload.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ payload, resolve, reject });
      this.#logLoop ??= this.#runLogLoop();
    });
  }

  #refusalOf(payload: Uint8Array): ReplicaError | undefined {
    assert(payload.length > 0, 'an empty payload means nothing');
    const { payloadBytesMax, pendingCountMax, pendingBytesMax } = this.#limits;
    if (this.#failure !== undefined) {
      return new ReplicaError('closed', 'the log has failed', { cause: this.#failure });
    }
    if (this.#closing !== undefined) return new ReplicaError('closed', 'the log is closing');
    if (payload.length > payloadBytesMax) {
      const sizes = `${payload.length} bytes, the limit is ${payloadBytesMax}`;
      return new ReplicaError('too-large', `the payload has ${sizes}`);
    }
    const isFull =
      this.#pendingCount >= pendingCountMax ||
      this.#pendingBytes + payload.length > pendingBytesMax;
    if (!isFull) return undefined;
    return new ReplicaError('queue-full', `${this.#pendingCount} writes are under way already`);
  }

  /** Alone in its group, a node answers writes only after it applied them: nothing is left to wait for. */
  readBarrier(): Promise<void> {
    if (this.#failure === undefined) return Promise.resolve();
    const cause = this.#failure;
    return Promise.reject(new ReplicaError('closed', 'the log has failed', { cause }));
  }

  status(): ReplicaStatus {
    return {
      standing: 'leader',
      term: this.#term,
      firstIndex: this.#log.firstIndex,
      lastIndex: this.#log.lastIndex,
      commitIndex: this.#commitIndex,
      appliedIndex: appliedIndexOf(this.#machine),
      queuedCount: this.#queue.length + this.#appending.length,
      unappliedCount: this.#committed.length + this.#applying.length,
      pendingBytes: this.#pendingBytes,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  async #drain(): Promise<void> {
    await this.#logLoop;
    await this.#applyLoop;
  }

  async #runLogLoop(): Promise<void> {
    try {
      // All that is asked for in this turn of the event loop shares the first batch.
      await Promise.resolve();
      while (this.#failure === undefined && this.#hasLogWork()) await this.#writeBatch();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#logLoop = undefined;
    }
  }

  #hasLogWork(): boolean {
    if (this.#queue.length > 0) return true;
    return (
      this.#closing === undefined && this.#trimThrough() - this.#log.firstIndex >= TRIM_BATCH_MAX
    );
  }

  async #writeBatch(): Promise<void> {
    const batch = this.#takeBatch();
    this.#appending = batch;
    const entries: LogEntry[] = [];
    for (const { payload } of batch) {
      entries.push(nextEntry(entries.at(-1) ?? this.#log.last, this.#term, payload));
    }
    await this.#log.write({
      entries,
      hardState: { term: this.#term, vote: SELF, commit: this.#commitIndex },
      trimThroughIndex: this.#trimThrough(),
    });
    this.#appending = [];
    this.#commitIndex = this.#log.lastIndex;
    entries.forEach((entry, place) => {
      this.#committed.push({ entry, proposal: batch[place]! });
    });
    if (this.#committed.length > 0) this.#applyLoop ??= this.#runApplyLoop();
  }

  #takeBatch(): readonly Proposal<Outcome>[] {
    const count = this.#countWithinLimits(this.#queue.map(({ payload }) => payload));
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    return batch;
  }

  /** How many of the payloads, from the front, make one batch: at least one if there is one. */
  #countWithinLimits(payloads: readonly Uint8Array[]): number {
    const { batchCountMax, batchBytesMax } = this.#limits;
    let bytes = 0;
    for (const [count, payload] of payloads.entries()) {
      bytes += payload.length;
      if (count > 0 && (count >= batchCountMax || bytes > batchBytesMax)) return count;
    }
    return payloads.length;
  }

  /** What the machine has on its own disk may go, but for the newest entries. */
  #trimThrough(): number {
    return appliedIndexOf(this.#machine) - this.#limits.keptCount;
  }

  async #runApplyLoop(): Promise<void> {
    try {
      while (this.#failure === undefined && this.#committed.length > 0) await this.#applyBatch();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#applyLoop = undefined;
    }
    // An idle log still has what was applied meanwhile to trim.
    if (this.#failure === undefined && this.#hasLogWork()) this.#logLoop ??= this.#runLogLoop();
  }

  async #applyBatch(): Promise<void> {
    const count = this.#countWithinLimits(this.#committed.map(({ entry }) => entry.payload));
    const batch = this.#committed.slice(0, count);
    this.#applying = batch;
    this.#committed = this.#committed.slice(count);
    const outcomes = await this.#machine.apply(batch.map(({ entry }) => entry));
    assert(outcomes.length === batch.length, 'one outcome an entry');
    this.#applying = [];
    batch.forEach(({ proposal }, place) => {
      this.#forget(proposal);
      proposal.resolve(outcomes[place]!);
    });
  }

  #forget(proposal: Proposal<Outcome>): void {
    this.#pendingCount -= 1;
    this.#pendingBytes -= proposal.payload.length;
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#failure = cause;
    this.#rejectAll(this.#queue, new ReplicaError('closed', 'the log has failed', { cause }));
    const unknown = new ReplicaError('outcome-unknown', 'the disk failed under way', { cause });
    this.#rejectAll(this.#appending, unknown);
    const unanswered = [...this.#applying, ...this.#committed];
    this.#rejectAll(
      unanswered.map(({ proposal }) => proposal),
      unknown,
    );
    this.#queue = [];
    this.#appending = [];
    this.#committed = [];
    this.#applying = [];
    this.#onFatal(cause);
  }

  #rejectAll(proposals: readonly Proposal<Outcome>[], error: ReplicaError): void {
    for (const proposal of proposals) {
      this.#forget(proposal);
      proposal.reject(error);
    }
  }
}
