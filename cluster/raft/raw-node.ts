// A node as its driver sees it: inputs in, Ready out. The driver's loop is: step, tick or propose; then,
// while hasReady(): take ready(), carry it out, and confirm it.
//
// Without asyncStorage, carrying out means, in this order: write entries, hard state and snapshot
// durably; send messages; apply committedEntries; call advance(). With asyncStorage the same work comes
// as storage-append and storage-apply messages. Each worker does its messages in the order given;
// replies of storage-append are delivered after everything in it is durable, those addressed to this
// node through step(). advance() is then not called, and ready() may be taken at any time.

import { assert } from '../base/assert.ts';
import { startElection } from './election.ts';
import type { HardState } from './hard-state.ts';
import { onSnapshotReport, onUnreachable } from './leading/acknowledgement.ts';
import type { ProgressView } from './leading/progress.ts';
import { type ProposalResult, propose } from './leading/proposing.ts';
import { askRead } from './leading/reading.ts';
import { transferLeadership } from './leading/transfer.ts';
import type { Entry, EntryId } from './log/entry.ts';
import type { ApplyRule } from './log/raft-log.ts';
import type { Snapshot } from './log/snapshot.ts';
import type { Membership } from './membership/membership.ts';
import { encodeMembershipChange, type MembershipChange } from './membership/membership-change.ts';
import { applyChange, type ChangeOutcome } from './membership/reconfiguration.ts';
import {
  MESSAGE_TRAITS,
  type Message,
  type StorageAppendMessage,
  type StorageAppendReply,
  type StorageApplyMessage,
  type StorageApplyReply,
} from './message.ts';
import { APPEND_WORKER, APPLY_WORKER, isWorker, type NodeId } from './node-id.ts';
import { forgetLeader, step, tick } from './raft.ts';
import type { Refusal } from './refusal.ts';
import {
  hardStateChanged,
  hardStateOf,
  hasCommittedInTerm,
  type Raft,
  type ReadState,
  type SoftState,
  softStateOf,
} from './state.ts';

/** What a node wants done. Absent fields mean no change. */
export interface Ready {
  readonly softState?: SoftState;
  readonly hardState?: HardState;
  /** Reads that may be answered once their index is applied. */
  readonly readStates: readonly ReadState[];
  /** To be written, replacing whatever the disk has from the first one's index on. */
  readonly entries: readonly Entry[];
  /**
   * Replaces the whole log and the state machine; `entries`, if any, come after it. Always to be made
   * durable, whatever mustSync says.
   */
  readonly snapshot?: Snapshot;
  readonly committedEntries: readonly Entry[];
  readonly messages: readonly Message[];
  /** Whether entries or hard state hold promises; else the hard state may be written unsynced. */
  readonly mustSync: boolean;
}

/** A node's state as values, made anew at each question: it is asked with every write. */
export interface Status extends HardState, SoftState {
  readonly id: NodeId;
  readonly appliedIndex: number;
  readonly lastIndex: number;
  readonly transferTarget: NodeId;
  /** A leader that has not committed in its term yet should start no change of membership. */
  readonly hasCommittedInTerm: boolean;
  readonly membership: Membership;
}

/** One member of a group. Not re-entrant: no call may be made from within another. */
export class RawNode {
  readonly #raft: Raft;
  readonly #applyRule: ApplyRule;
  #handedSoftState: SoftState;
  #handedHardState: HardState;
  /** What advance() will deliver to this node: what the writes of the last Ready have proved. */
  #onAdvance: Message[] = [];

  constructor(raft: Raft) {
    this.#raft = raft;
    this.#applyRule = { allowUnstable: !raft.config.asyncStorage };
    this.#handedSoftState = softStateOf(raft);
    this.#handedHardState = hardStateOf(raft);
  }

  tick(): void {
    tick(this.#raft);
  }

  /** Takes a message from the network or a reply of a storage worker. */
  step(message: Message): Refusal | undefined {
    const { local, reply, termless } = MESSAGE_TRAITS[message.type];
    const fromWorker = isWorker(message.from);
    if (local !== fromWorker) return 'local-message';
    if (message.term === 0 && !termless) return 'message-without-term';
    if (reply && !fromWorker && !this.#raft.progressByNode.has(message.from)) {
      return 'unknown-member';
    }
    return step(this.#raft, message);
  }

  /** Campaigns now instead of waiting for the timeout. */
  campaign(): void {
    startElection(this.#raft, 'election');
  }

  propose(data: Uint8Array): ProposalResult {
    return propose(this.#raft, this.#raft.id, [{ type: 'normal', data }]);
  }

  proposeMembership(change: MembershipChange): ProposalResult {
    const data = encodeMembershipChange(change);
    return propose(this.#raft, this.#raft.id, [{ type: 'membership', data }]);
  }

  /**
   * Must be called for each membership entry when it is applied, before its application is confirmed. What
   * the state machine records as its membership is changeStep() of the one it had: raft itself may have
   * been overtaken by a snapshot that is not written yet.
   */
  applyMembership(index: number, change: MembershipChange): ChangeOutcome {
    return applyChange(this.#raft, index, change);
  }

  /**
   * Asks from which applied index on a read is linearizable; the answer is a ReadState with `context`,
   * or none: reads are lost with messages and with changes of leader or standing. `context` must be
   * unique among all reads this node ever asks, across restarts too.
   */
  readIndex(context: string): void {
    askRead(this.#raft, { from: this.#raft.id, context });
  }

  transferLeadership(target: NodeId): Refusal | undefined {
    return transferLeadership(this.#raft, target);
  }

  forgetLeader(): void {
    forgetLeader(this.#raft);
  }

  /** The last message to `node` could not be sent. */
  reportUnreachable(node: NodeId): void {
    onUnreachable(this.#raft, node);
  }

  /**
   * A snapshot has been sent to `node` completely, or could not be. Must be called for every snapshot
   * message sooner or later: until then, or until `node` acknowledges, nothing else is sent to it.
   */
  reportSnapshot(node: NodeId, report: { readonly delivered: boolean }): void {
    onSnapshotReport(this.#raft, node, report);
  }

  hasReady(): boolean {
    const raft = this.#raft;
    const { log } = raft;
    return (
      this.#softStateChanged() ||
      hardStateChanged(raft, this.#handedHardState) ||
      raft.messages.length + raft.messagesAfterAppend.length + raft.readStates.length > 0 ||
      log.unstable.nextSnapshot() !== undefined ||
      log.unstable.hasNextEntries ||
      log.hasNextCommitted(this.#applyRule)
    );
  }

  /** Hands out all that is to be done; it must be done, and done before the next one is. */
  ready(): Ready {
    assert(this.#onAdvance.length === 0, 'a second Ready without advance()');
    const ready = this.#describe();
    this.#accept(ready);
    return ready;
  }

  /** The last Ready has been carried out; only without asyncStorage. */
  advance(): void {
    assert(!this.#raft.config.asyncStorage, 'advance() with asyncStorage');
    const proved = this.#onAdvance;
    this.#onAdvance = [];
    for (const message of proved) step(this.#raft, message);
  }

  status(): Status {
    const raft = this.#raft;
    // Field by field: drivers ask for this in every turn, and spreading costs them a microsecond.
    return {
      id: raft.id,
      term: raft.term,
      vote: raft.vote,
      commitIndex: raft.log.commitIndex,
      leader: raft.leader,
      standing: raft.standing,
      appliedIndex: raft.log.appliedIndex,
      lastIndex: raft.log.lastIndex,
      transferTarget: raft.transferTarget,
      hasCommittedInTerm: hasCommittedInTerm(raft),
      membership: raft.membership,
    };
  }

  /** Of every member, ascending; only a leader knows any. */
  progress(): readonly (readonly [NodeId, ProgressView])[] {
    const { standing, progressByNode } = this.#raft;
    if (standing !== 'leader') return [];
    return [...progressByNode].map(([node, held]) => [node, held.view()] as const);
  }

  #describe(): Ready {
    const raft = this.#raft;
    const { log } = raft;
    const hardState = hardStateOf(raft);
    const snapshot = log.unstable.nextSnapshot();
    const messages = [...raft.messages];
    const ready: Ready = {
      ...(this.#softStateChanged() && { softState: softStateOf(raft) }),
      ...(hardStateChanged(raft, this.#handedHardState) && { hardState }),
      ...(snapshot !== undefined && { snapshot }),
      readStates: raft.readStates,
      entries: log.unstable.nextEntries(),
      committedEntries: log.nextCommitted(this.#applyRule),
      messages,
      mustSync: this.#mustSync(hardState),
    };
    // In place: all that is handed out passes here, and to copy it once more costs several microseconds.
    messages.push(...this.#storageMessages(ready));
    return ready;
  }

  /** With asyncStorage the work for the workers; without, what may leave once the writes are done. */
  #storageMessages(ready: Ready): readonly Message[] {
    const { id, config, messagesAfterAppend } = this.#raft;
    if (!config.asyncStorage) return messagesAfterAppend.filter(({ to }) => to !== id);
    const messages: Message[] = [];
    const { entries, hardState, snapshot, committedEntries } = ready;
    const writes = hardState !== undefined || snapshot !== undefined || entries.length > 0;
    if (writes || messagesAfterAppend.length > 0) messages.push(this.#appendWork(ready));
    if (committedEntries.length > 0) messages.push(this.#applyWork(committedEntries));
    return messages;
  }

  #appendWork({ hardState, entries, snapshot }: Ready): StorageAppendMessage {
    const reply = this.#storedReply(snapshot);
    return {
      type: 'storage-append',
      from: this.#raft.id,
      to: APPEND_WORKER,
      term: 0,
      ...(hardState && { hardState }),
      entries,
      ...(snapshot && { snapshot }),
      // The own acknowledgement first: it finds the new entries' term still in memory.
      replies: [...this.#raft.messagesAfterAppend, ...(reply === undefined ? [] : [reply])],
    };
  }

  /**
   * What is proved when all writes up to this one are done. It speaks of the last entry of the log, not
   * of the last one written now: a reply of an earlier term is not believed, so after a change of term
   * the next reply, even of a write without entries, must vouch for those written before it.
   */
  #storedReply(snapshot: Snapshot | undefined): StorageAppendReply | undefined {
    const { log, id, term } = this.#raft;
    const lastStable: EntryId | undefined = log.unstable.count > 0 ? log.lastId : undefined;
    if (lastStable === undefined && snapshot === undefined) return undefined;
    return {
      type: 'storage-append-reply',
      from: APPEND_WORKER,
      to: id,
      term,
      ...(lastStable && { lastStable }),
      ...(snapshot && { snapshot }),
    };
  }

  #applyWork(entries: readonly Entry[]): StorageApplyMessage {
    const replies = [this.#appliedReply(entries)];
    return {
      type: 'storage-apply',
      from: this.#raft.id,
      to: APPLY_WORKER,
      term: 0,
      entries,
      replies,
    };
  }

  /** Has no term: what is committed is applied in whatever term. */
  #appliedReply(entries: readonly Entry[]): StorageApplyReply {
    return { type: 'storage-apply-reply', from: APPLY_WORKER, to: this.#raft.id, term: 0, entries };
  }

  #accept(ready: Ready): void {
    const raft = this.#raft;
    this.#handedSoftState = ready.softState ?? this.#handedSoftState;
    this.#handedHardState = ready.hardState ?? this.#handedHardState;
    if (!raft.config.asyncStorage) this.#onAdvance = this.#provedBy(ready);
    raft.readStates = [];
    raft.messages = [];
    raft.messagesAfterAppend = [];
    raft.log.unstable.acceptInProgress();
    raft.log.acceptApplying(ready.committedEntries, this.#applyRule);
  }

  #provedBy({ snapshot, committedEntries }: Ready): Message[] {
    const { id, messagesAfterAppend } = this.#raft;
    const proved = messagesAfterAppend.filter(({ to }) => to === id);
    const stored = this.#storedReply(snapshot);
    if (stored !== undefined) proved.push(stored);
    if (committedEntries.length > 0) proved.push(this.#appliedReply(committedEntries));
    return proved;
  }

  #mustSync(hardState: HardState): boolean {
    const { term, vote } = this.#handedHardState;
    const promised = hardState.term !== term || hardState.vote !== vote;
    return promised || this.#raft.log.unstable.hasNextEntries;
  }

  #softStateChanged(): boolean {
    const { leader, standing } = this.#handedSoftState;
    return this.#raft.leader !== leader || this.#raft.standing !== standing;
  }
}
