// The state machine: committed entries go in, outcomes come out, and the state in between is on disk.
// A group of entries is one synced batch, or some; only when one is there do readers see it, listeners hear
// of it and callers get their outcomes. While one is on its way to the disk, what the next one changes is
// worked out already. Opening reads one row, however large the state is. A whole state
// can leave as a snapshot, and come in beside the present one, which serves until the other takes over.

import { AssertionError, assert, must } from '../../cluster/base/assert.ts';
import type { LogEntry, LogWitness } from '../../cluster/log/log-entry.ts';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import { applyCommand } from './apply/apply-command.ts';
import { ChangeSet, type Finished } from './change-set.ts';
import { decodeCommand } from './commands/command-codec.ts';
import type { Command } from './commands/commands.ts';
import { levelOf, NEWEST_LEVEL } from './commands/feature-levels.ts';
import type { Outcome } from './commands/outcome.ts';
import { type ForkSnapshot, forkSnapshotOf } from './global-log/fork-snapshot.ts';
import { type GlobalSnapshot, globalSnapshotOf } from './global-log/global-snapshot.ts';
import { RecentEntries, type WrittenEntry } from './global-log/recent-entries.ts';
import type { EpochStart } from './global-log/replication.ts';
import {
  type DigestCheckpoint,
  DigestCheckpoints,
  isCheckpoint,
} from './rows/digest-checkpoints.ts';
import { UnreadableEntry, UnreadableState } from './rows/layout/unreadable.ts';
import { decodeMeta, EMPTY_META, type Meta } from './rows/meta.ts';
import { StateStore } from './rows/store/state-store.ts';
import { META_KEY } from './rows/tables.ts';
import type { Generations } from './snapshot/generations.ts';
import { SnapshotIntake } from './snapshot/snapshot-intake.ts';
import { type StateSnapshot, snapshotOf } from './snapshot/snapshot-writer.ts';
import { StoredState } from './stored-state.ts';
import { Watch } from './watch.ts';

/** An entry of the log, and what is to be remembered with it. */
export interface AppliedEntry extends LogEntry {
  /** Who belongs to the group from this entry on. */
  readonly groupRecord?: Uint8Array;
}

export interface MachineDeps {
  readonly clock: Clock;
  /** Left out where no other state is ever taken in. */
  readonly generations?: Generations;
  /** What the program reads; left out: all that this release does. */
  readonly reads?: number;
  /** Payload bytes of one batch, a single larger entry alone; left out: BATCH_BYTES. */
  readonly batchBytes?: number;
  /** What its entries may have a batch read and change before it ends; left out: TOUCHED_BYTES. */
  readonly touchedBytes?: number;
  /** Called with the time of the last command of each group that is about to be applied. */
  readonly onCommandTime?: (timeMs: number) => void;
}

/**
 * What many small writes together do not reach, so they share a sync; and what one step of the event loop
 * can work out.
 */
const BATCH_BYTES = 256 * 1024;

/** A batch ends behind the entry that has it read and change so much: short commands can be about long objects. */
const TOUCHED_BYTES = 2 * 1024 * 1024;

export class StateMachine extends StoredState {
  readonly watch: Watch;
  readonly #clock: Clock;
  readonly #generations: Generations | undefined;
  readonly #reads: number;
  readonly #batchBytes: number;
  readonly #touchedBytes: number;
  readonly #onCommandTime: MachineDeps['onCommandTime'];
  readonly #checkpoints = new DigestCheckpoints();
  readonly #recent = new RecentEntries();
  readonly #moveListeners = new Set<() => void>();
  #isApplying = false;
  #opening: Promise<SnapshotIntake> | undefined;
  #isForRestore = false;
  /** A state that is to be installed waits until another one has given way. */
  #isInstallWaiting = false;
  #intake: SnapshotIntake | undefined;
  /** States that were replaced and are still read. */
  readonly #retired = new Map<StateStore, Promise<void>>();
  #isClosing = false;

  private constructor(store: StateStore, meta: Meta, deps: MachineDeps) {
    const { clock, generations, reads = NEWEST_LEVEL } = deps;
    const { batchBytes = BATCH_BYTES, touchedBytes = TOUCHED_BYTES } = deps;
    if (meta.level > reads) throw new UnreadableState({ uses: meta.level, reads });
    super(store, meta);
    this.#reads = reads;
    this.#batchBytes = batchBytes;
    this.#touchedBytes = touchedBytes;
    this.#onCommandTime = deps.onCommandTime;
    this.watch = new Watch(clock);
    this.#clock = clock;
    this.#generations = generations;
  }

  /** Opens the state on a store, which is the machine's from then on. Throws when another release wrote it. */
  static open(kv: Kv, deps: MachineDeps): StateMachine {
    const store = new StateStore(kv, deps.generations?.current ?? 0, deps.clock);
    return new StateMachine(store, metaIn(store), deps);
  }

  get appliedEntry(): LogWitness | undefined {
    return this.meta.appliedEntry;
  }

  /** Of the last applied entry; undefined before the first one. */
  get groupRecord(): Uint8Array | undefined {
    return this.meta.groupRecord;
  }

  /** The newest digest that servers can compare; undefined when none was passed since the start. */
  get lastCheckpoint(): DigestCheckpoint | undefined {
    return this.#checkpoints.last;
  }

  /** The digest as of an entry of the log, in hex, for the newest places of comparison. */
  digestAt(logIndex: number): string | undefined {
    return this.#checkpoints.at(logIndex);
  }

  /**
   * Applies entries that follow the last one; resolves with one outcome an entry when all are on disk. They
   * are one batch up to `batchBytes`, and else several: each begins on the disk when the one before it has
   * landed, and is worked out while that one is under way. Never while another call is under way. (Steps of
   * a restore are batches of their own, and nothing is worked out beside them.)
   */
  async apply(entries: readonly AppliedEntry[]): Promise<readonly Outcome[]> {
    assert(!this.#isApplying, 'one group of entries is applied at a time');
    this.#isApplying = true;
    const outcomes: Outcome[] = [];
    let landing: Landing | undefined;
    const batches = [...batchesOf(entries, this.#reads, this.#batchBytes)];
    const timeMs = batches.at(-1)?.entries.at(-1)?.command?.timeMs;
    if (timeMs !== undefined) this.#onCommandTime?.(timeMs);
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
      if (landing !== undefined && (batch.isStep || landing.batch.isStep)) {
        await landing.landed;
        landing = undefined;
      }
      const work = this.#workOut(batch, landing?.finished);
      if (landing !== undefined) await landing.landed;
      landing = { ...work, landed: this.#land(work) };
      // Whoever comes to it hears of its failure, also when working out the next one fails first.
      landing.landed.catch(() => undefined);
      for (const outcome of work.outcomes) outcomes.push(outcome);
      const rest = batch.entries.slice(work.outcomes.length);
      if (rest.length > 0) batches.unshift({ ...batch, entries: rest });
    }
    await landing?.landed;
    this.#isApplying = false;
    return outcomes;
  }

  /**
   * On the state as the batch `before` leaves it; undefined: as it is. Nothing is changed. It may not come to the end
   * of the batch: then the rest is a batch of its own.
   */
  #workOut(batch: Batch, before: Finished | undefined): Work {
    const meta = before?.meta ?? this.meta;
    // What came before that one has landed, and is shown.
    const replication = before === undefined ? this.replication() : before.replication;
    const store = before?.after(this.store) ?? this.store;
    const changes = new ChangeSet(store, meta, replication);
    const checkpoints: DigestCheckpoint[] = [];
    let appliedIndex = meta.appliedEntry?.index ?? 0;
    const outcomes: Outcome[] = [];
    for (const decoded of batch.entries) {
      const { index } = decoded.entry;
      assert(index === appliedIndex + 1, 'entries are applied in order', { index, appliedIndex });
      appliedIndex = index;
      outcomes.push(outcomeOf(decoded, changes));
      if (isCheckpoint(index)) checkpoints.push({ index, digest: changes.fullDigestHex });
      if (changes.touchedBytes >= this.#touchedBytes) break;
    }
    const { index, term, hash } = must(batch.entries[outcomes.length - 1], 'a last entry').entry;
    return { batch, outcomes, checkpoints, finished: changes.finish({ index, term, hash }) };
  }

  async #land({ finished, checkpoints }: Work): Promise<void> {
    await this.store.write(finished.writes, finished.before, finished.keyspaceStep);
    this.store.show();
    this.#checkpoints.add(checkpoints);
    this.#recent.add(finished.written);
    if (finished.keyspaceStep === 'adopt') {
      this.replace(this.store, finished.meta);
      this.watch.announceReplaced();
    } else {
      this.moveOn(finished);
      this.watch.announce(finished.changes);
      if (finished.hasMoved && finished.changes.length === 0) this.watch.announceMoved();
    }
    if (finished.hasMoved) this.#tellOfMove();
  }

  /**
   * Calls `listener` whenever `replication` says something else, at once after it is on disk: an entry
   * more, a promise, another primary. Returns its end.
   */
  onGlobalLogMoved(listener: () => void): () => void {
    this.#moveListeners.add(listener);
    return () => this.#moveListeners.delete(listener);
  }

  /**
   * The entries behind `afterSeq` where this server wrote them lately, as `globalEntries` would give them;
   * undefined where only that can.
   */
  recentEntries(afterSeq: number, limitBytes: number): readonly WrittenEntry[] | undefined {
    const kept = this.keptEntries();
    if (kept === undefined || afterSeq + 1 < kept.first) return undefined;
    return this.#recent.after(afterSeq, kept.head, limitBytes);
  }

  #tellOfMove(): void {
    for (const listener of this.#moveListeners) listener();
  }

  /** The state as of the last applied entry, whatever is applied meanwhile; to be closed. */
  snapshot(): StateSnapshot {
    return snapshotOf(this.store);
  }

  /**
   * The global objects as of the last applied entry, with their place in the global log; to be closed.
   * Undefined where they are not those of a place in it.
   */
  globalSnapshot(): Promise<GlobalSnapshot | undefined> {
    return globalSnapshotOf(this.store);
  }

  /**
   * The global objects of the place where the chain of these epochs left the own one, made of those that are here;
   * to be closed. Rejects with AclError where what is kept does not say what they were.
   */
  forkSnapshot(theirs: readonly EpochStart[]): Promise<ForkSnapshot> {
    return forkSnapshotOf(this.store, theirs);
  }

  /**
   * Begins to take in another state beside this one, which serves on. At most one at a time: one that
   * is being abandoned is waited for, and one that is taken in to be restored gives way.
   */
  async beginInstall(): Promise<SnapshotIntake> {
    this.#isInstallWaiting = true;
    try {
      await this.#opening?.catch(() => undefined);
      if (this.#isForRestore) await this.#intake?.abandon();
      else await this.#intake?.abandoned;
      return this.#begin({ isForRestore: false });
    } finally {
      this.#isInstallWaiting = false;
    }
  }

  /**
   * Begins to take in a state that is only to be read out again: what an operator wants restored. It is
   * abandoned without asking when another node's state must be taken in. Undefined when one is under way, or about
   * to be.
   */
  async beginRestore(): Promise<SnapshotIntake | undefined> {
    const isFree = this.#intake === undefined && this.#opening === undefined;
    if (!isFree || this.#isInstallWaiting) return undefined;
    return this.#begin({ isForRestore: true });
  }

  #begin({ isForRestore }: { readonly isForRestore: boolean }): Promise<SnapshotIntake> {
    const isFree = this.#intake === undefined && this.#opening === undefined;
    assert(isFree, 'one state is taken in at a time');
    if (this.#isClosing) throw closing();
    this.#isForRestore = isForRestore;
    this.#opening = this.#openIntake({ isForRestore });
    return this.#opening;
  }

  async #openIntake({ isForRestore }: { readonly isForRestore: boolean }): Promise<SnapshotIntake> {
    const generations = must(this.#generations, 'generations, to take in another state');
    const generation = this.store.generation + 1;
    try {
      const kv = await generations.open(generation);
      if (this.#isClosing) {
        await generations.discard(generation, kv);
        throw closing();
      }
      this.#intake = new SnapshotIntake({
        kv,
        generation,
        reads: this.#reads,
        isForRestore,
        onAdopt: (meta) => this.#adopt(new StateStore(kv, generation, this.#clock), meta),
        onAbandon: async () => {
          await generations.discard(generation, kv);
          this.#intake = undefined;
        },
      });
      return this.#intake;
    } finally {
      this.#opening = undefined;
    }
  }

  #adopt(store: StateStore, meta: Meta): void {
    assert(!this.#isApplying, 'nothing is applied while another state takes over');
    const old = this.store;
    this.#intake = undefined;
    this.#checkpoints.clear();
    this.replace(store, meta);
    this.#generations?.adopted(store.generation);
    this.watch.announceReplaced();
    this.#tellOfMove();
    const retired = this.#retire(old);
    this.#retired.set(old, retired);
  }

  /** Lets those who read it finish, and deletes it. */
  async #retire(old: StateStore): Promise<void> {
    await old.lastReaderDone();
    if (this.#isClosing) await old.close();
    else await this.#generations?.discard(old.generation, old.kv);
    this.#retired.delete(old);
  }

  /** Closes the store, and what is left of others. Nothing may be under way but reads. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.watch.releaseAll();
    await this.#opening?.catch(() => undefined);
    await this.#intake?.abandon();
    for (const [old, retired] of this.#retired) {
      old.sendReadersAway();
      await retired;
    }
    await this.store.close();
  }
}

function closing(): Error {
  return new Error('the state machine is closing');
}

function metaIn(store: StateStore): Meta {
  const row = store.get(META_KEY);
  return row === undefined ? EMPTY_META : decodeMeta(row);
}

interface Decoded {
  readonly entry: AppliedEntry;
  /** Undefined where the entry says nothing to the state. */
  readonly command: Command | undefined;
}

interface Batch {
  readonly entries: readonly Decoded[];
  /** It brings another state, or a piece of one, and stands alone: it moves what the others use. */
  readonly isStep: boolean;
}

/** A batch, and what is to be written for it. */
interface Work {
  readonly batch: Batch;
  readonly outcomes: readonly Outcome[];
  readonly checkpoints: readonly DigestCheckpoint[];
  readonly finished: Finished;
}

/** A batch on its way to the disk. */
interface Landing extends Work {
  /** Resolves when it is there, and everybody has been told. */
  readonly landed: Promise<void>;
}

/** The entries in order, in batches of about so many bytes. */
function batchesOf(
  entries: readonly AppliedEntry[],
  reads: number,
  batchBytes: number,
): readonly Batch[] {
  const batches: { readonly entries: Decoded[]; readonly isStep: boolean }[] = [];
  let sizeBytes = 0;
  for (const entry of entries) {
    const decoded = { entry, command: commandIn(entry, reads) };
    const isStep = isStepCommand(decoded.command);
    const open = batches.at(-1);
    sizeBytes += entry.payload.length;
    if (open !== undefined && !open.isStep && !isStep && sizeBytes <= batchBytes) {
      open.entries.push(decoded);
      continue;
    }
    batches.push({ entries: [decoded], isStep });
    sizeBytes = entry.payload.length;
  }
  return batches;
}

/** Who belongs to the group is no matter of users; and a new leader's first entry says nothing. */
function commandIn({ type, payload, index }: AppliedEntry, reads: number): Command | undefined {
  if (type === 'membership' || payload.length === 0) return undefined;
  try {
    const command = decodeCommand(payload);
    const { change } = command;
    const level = change.type === 'level.raise' ? change.level : levelOf(change);
    assert(level <= reads, 'its feature level is one that this release reads', { level, reads });
    return command;
  } catch (error) {
    throw error instanceof AssertionError ? new UnreadableEntry(index, error) : error;
  }
}

function isStepCommand(command: Command | undefined): boolean {
  const type = command?.change.type ?? '';
  return type.startsWith('restore.') || type.startsWith('global-snapshot.');
}

function outcomeOf({ entry, command }: Decoded, changes: ChangeSet): Outcome {
  if (entry.groupRecord !== undefined) changes.setGroupRecord(entry.groupRecord);
  if (command !== undefined) return applyCommand(changes, command);
  const { index, position } = changes;
  return { kind: 'applied', answer: { type: 'done' }, index, position, replayed: false };
}
