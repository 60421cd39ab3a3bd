// Snapshots that other nodes send to this one. What comes goes into the machine's intake, beside the
// state that serves on. When it is whole, the loop asks raft; if raft takes it, the append worker puts
// it in the place of log and state, in its order. One at a time; a new one takes the place of one that
// is still coming in, since whoever sent that has begun anew or leads no more.

import { assert } from '../../base/assert.ts';
import type { DurableLog } from '../../log/durable-log.ts';
import type { HardState } from '../../raft/hard-state.ts';
import type { Snapshot } from '../../raft/log/snapshot.ts';
import { sameMembership } from '../../raft/membership/membership.ts';
import type { SnapshotMessage } from '../../raft/message.ts';
import { decodeGroupRecord } from '../group-record.ts';
import { GroupRefusal } from '../group-refusal.ts';
import type { SnapshotIntake } from '../group-replica.ts';
import {
  type Machine,
  type MachineIntake,
  ReplicaError,
  SnapshotDamage,
  type TakenState,
} from '../replica.ts';

/** A whole state that raft is to be asked about; one of the two is called, once. */
export interface TakenSnapshot {
  readonly message: SnapshotMessage;
  /** Raft has taken it: it is what the append worker installs next. */
  accepted(): void;
  refused(why: Error): void;
}

export interface SnapshotTakerOptions {
  readonly machine: Pick<Machine<unknown>, 'beginInstall'>;
  /** Hands it to the loop. */
  readonly onTaken: (taken: TakenSnapshot) => void;
}

export class SnapshotTaker {
  readonly #options: SnapshotTakerOptions;
  #current: Incoming | undefined;
  /** Beginnings, one after the other. */
  #beginning: Promise<unknown> = Promise.resolve();
  #accepted: { readonly incoming: Incoming; readonly state: TakenState } | undefined;
  #stopped: Error | undefined;

  constructor(options: SnapshotTakerOptions) {
    this.#options = options;
  }

  begin(message: SnapshotMessage): Promise<SnapshotIntake> {
    const begun = this.#beginning.then(() => this.#begin(message));
    this.#beginning = begun.catch(() => undefined);
    return begun;
  }

  /** The append worker's part: `switchLog` cuts the log and names the state that goes with it. */
  async install(
    snapshot: Snapshot,
    switchLog: (state: TakenState) => Promise<void>,
  ): Promise<void> {
    assert(this.#accepted?.incoming.message.snapshot === snapshot, 'raft took what came in whole');
    const { incoming, state } = this.#accepted;
    this.#accepted = undefined;
    await switchLog(state);
    await incoming.adopt();
  }

  /** Nothing comes in any more. What is just being installed will be; nobody hears of it. */
  stop(why: Error): void {
    this.#stopped ??= why;
    this.#current?.onStopped(why);
    void this.#current?.end(why);
  }

  async #begin(message: SnapshotMessage): Promise<SnapshotIntake> {
    if (this.#stopped !== undefined) throw this.#stopped;
    if (this.#current?.isFinishing === true) {
      throw new GroupRefusal('refused', 'another snapshot is just being installed');
    }
    await this.#current?.end(new GroupRefusal('refused', 'a newer snapshot took its place'));
    const intake = await this.#options.machine.beginInstall();
    const ask = (state: TakenState): Promise<void> => this.#askRaft(incoming, state);
    const incoming: Incoming = new Incoming(message, intake, ask);
    this.#current = incoming;
    if (this.#stopped !== undefined) await incoming.end(this.#stopped);
    return incoming;
  }

  #askRaft(incoming: Incoming, state: TakenState): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      incoming.onInstalled = resolve;
      this.#options.onTaken({
        message: incoming.message,
        accepted: () => {
          incoming.isAccepted = true;
          this.#accepted = { incoming, state };
        },
        refused: reject,
      });
      incoming.onStopped = reject;
    });
  }
}

class Incoming implements SnapshotIntake {
  readonly message: SnapshotMessage;
  onInstalled: () => void = () => undefined;
  onStopped: (why: Error) => void = () => undefined;
  /** Raft counts on it: from here on it must stay, whatever happens. */
  isAccepted = false;
  readonly #intake: MachineIntake;
  /** Asks whether it is wanted; resolves when it is installed. */
  readonly #ask: (state: TakenState) => Promise<void>;
  #standing: 'open' | 'finishing' | 'ended' = 'open';
  #ended: Error | undefined;
  #adding: Promise<void> | undefined;

  constructor(
    message: SnapshotMessage,
    intake: MachineIntake,
    ask: (state: TakenState) => Promise<void>,
  ) {
    this.message = message;
    this.#intake = intake;
    this.#ask = ask;
  }

  get isFinishing(): boolean {
    return this.#standing === 'finishing';
  }

  async add(chunk: Uint8Array): Promise<void> {
    this.#requireOpen();
    this.#adding = this.#intake.add(chunk);
    try {
      await this.#adding;
    } catch (error) {
      this.#adding = undefined;
      await this.end(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
    this.#adding = undefined;
  }

  async finish(): Promise<void> {
    this.#requireOpen();
    this.#standing = 'finishing';
    try {
      const state = await this.#intake.complete();
      requireAnnounced(this.message.snapshot, state);
      await this.#ask(state);
      this.#standing = 'ended';
      this.#ended = new ReplicaError('closed', 'the snapshot is installed');
    } catch (error) {
      if (!this.isAccepted) {
        this.#standing = 'open';
        await this.end(error instanceof Error ? error : new Error(String(error)));
      }
      throw error;
    }
  }

  async abandon(): Promise<void> {
    await this.end(new ReplicaError('closed', 'the snapshot was abandoned'));
  }

  /** The log has switched to it. */
  async adopt(): Promise<void> {
    await this.#intake.adopt();
    this.onInstalled();
  }

  async end(why: Error): Promise<void> {
    if (this.#standing !== 'open') return;
    this.#standing = 'ended';
    this.#ended = why;
    await this.#adding?.catch(() => undefined);
    await this.#intake.abandon();
  }

  #requireOpen(): void {
    assert(this.#adding === undefined, 'one chunk after the other');
    if (this.#standing === 'finishing') throw new ReplicaError('closed', 'it is being installed');
    if (this.#ended !== undefined) throw this.#ended;
  }
}

/** The log begins anew where the message says; so the state must stand there. */
function requireAnnounced(snapshot: Snapshot, { appliedEntry, groupRecord }: TakenState): void {
  const { index, term } = appliedEntry;
  if (index !== snapshot.index || term !== snapshot.term) {
    const announced = `entry ${snapshot.index} of term ${snapshot.term}`;
    throw new SnapshotDamage(`it stands at entry ${index} of term ${term}, not at ${announced}`);
  }
  if (groupRecord === undefined) throw new SnapshotDamage('it has no group record');
  const { membership } = decodeGroupRecord(groupRecord);
  if (!sameMembership(membership, snapshot.membership)) {
    throw new SnapshotDamage('its members are not those that its sender named');
  }
}

/** What the log becomes. */
export function resetOf(
  { appliedEntry, generation }: TakenState,
  { term, vote }: HardState,
): Parameters<DurableLog['reset']>[0] {
  const { index, term: startTerm, hash } = appliedEntry;
  return {
    start: { index, term: startTerm, hash },
    hardState: { term, vote, commit: index },
    generation,
  };
}
