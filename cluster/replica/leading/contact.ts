// When this node last heard the others, and how old its own state may be, in its own monotonic time. Of the
// leader only what a leader says counts: a node that led before may go on talking. That it talks is not
// enough either: a heartbeat says of what is committed only what this node is known to have. So whoever hears a
// new leader, or one behind a closed link, or was itself standing still, is in doubt until a read barrier has
// come through; from then on the leader's words say for a while that nothing is missing. No longer: its entries go
// another way than its heartbeats, and may be late there, or never come.

import type { Clock } from '../../platform/clock.ts';
import { quorumIndex, type Voters } from '../../raft/membership/quorum.ts';
import type { Message } from '../../raft/message.ts';
import { NO_NODE, type NodeId } from '../../raft/node-id.ts';

export interface ContactOptions {
  readonly clock: Clock;
  /** Without a tick for so long, the process stood still. */
  readonly stillMs: number;
  /** Whoever answered within so long, over a link that stands, answers. */
  readonly freshMs: number;
  /** What a read barrier has proved is proved again after so long, and holds for twice as long. */
  readonly proofMs: number;
}

export class Contact {
  readonly #options: ContactOptions;
  /** Of all members; undefined before the first word. */
  readonly #heardAtMs = new Map<NodeId, number | undefined>();
  /** The same without what may have waited. */
  readonly #heardFreshAtMs = new Map<NodeId, number>();
  /** Members whose links closed, and that were not heard since. */
  readonly #lost = new Set<NodeId>();
  #leader: NodeId = NO_NODE;
  #term = 0;
  #tickedAtMs: number;
  /** Of doubts, the last one: what is proved of an earlier one says nothing of what came after it. */
  #doubt = 0;
  #isInDoubt = true;
  /** When the last read barrier began that has come through. */
  #provedAtMs = Number.NEGATIVE_INFINITY;
  /** When this node last had all that was committed then; undefined before the first time. */
  #levelAtMs: number | undefined;
  /** What the leader had committed when it was heard, and this node has not applied yet. */
  #awaited: { readonly index: number; readonly atMs: number } | undefined;

  constructor(options: ContactOptions) {
    this.#options = options;
    this.#tickedAtMs = options.clock.monotonicMs();
  }

  onMessage(message: Message, appliedIndex: number): void {
    const { type, from, term } = message;
    const nowMs = this.#options.clock.monotonicMs();
    // What waited while the process stood still may be as old as that.
    const hasWaited = nowMs - this.#tickedAtMs > this.#options.stillMs;
    if (this.#heardAtMs.has(from)) {
      this.#heardAtMs.set(from, nowMs);
      if (!hasWaited) this.#heardFreshAtMs.set(from, nowMs);
    }
    this.#lost.delete(from);
    const isLeading = type === 'append' || type === 'heartbeat';
    if (!isLeading || from !== this.#leader || term !== this.#term) return;
    if (hasWaited) this.#beginDoubt();
    const isProved = !this.#isInDoubt && nowMs - this.#provedAtMs <= 2 * this.#options.proofMs;
    if (!isProved || this.#awaited !== undefined) return;
    this.#awaited = { index: message.commitIndex, atMs: nowMs };
    this.onApplied(appliedIndex);
  }

  onApplied(appliedIndex: number): void {
    if (this.#awaited === undefined || this.#awaited.index > appliedIndex) return;
    this.#levelAtMs = this.#awaited.atMs;
    this.#awaited = undefined;
  }

  /** Raft's time goes on: whatever waited while the process stood still has been read. */
  onTick(): void {
    this.#tickedAtMs = this.#options.clock.monotonicMs();
  }

  /** What a read barrier that begins now can end, or keep away; undefined while there is no need, or no leader. */
  get doubt(): number | undefined {
    const { clock, proofMs } = this.#options;
    const isDue = clock.monotonicMs() - this.#provedAtMs >= proofMs;
    return (this.#isInDoubt || isDue) && this.#leader !== NO_NODE ? this.#doubt : undefined;
  }

  /** A read barrier that began then, in that doubt, has come through. */
  prove(doubt: number, beganAtMs: number): void {
    this.#levelAtMs = Math.max(this.#levelAtMs ?? beganAtMs, beganAtMs);
    if (doubt !== this.#doubt) return;
    this.#isInDoubt = false;
    this.#provedAtMs = beganAtMs;
  }

  onLinkClosed(node: NodeId): void {
    if (this.#heardAtMs.has(node)) this.#lost.add(node);
    if (node === this.#leader) this.#beginDoubt();
  }

  /** Who leads, as far as this node knows; NO_NODE for none. */
  onLeader(leader: NodeId, term: number): void {
    if (leader === this.#leader && term === this.#term) return;
    this.#leader = leader;
    this.#term = term;
    this.#beginDoubt();
  }

  /** Keeps account of these from now on, and of no others. */
  follow(nodes: readonly NodeId[]): void {
    for (const node of [...this.#heardAtMs.keys()]) {
      if (nodes.includes(node)) continue;
      this.#heardAtMs.delete(node);
      this.#heardFreshAtMs.delete(node);
      this.#lost.delete(node);
    }
    for (const node of nodes) this.#heardAtMs.set(node, this.#heardAtMs.get(node));
  }

  /** Whether its link closed, and nothing came from it since. */
  hasLost(node: NodeId): boolean {
    return this.#lost.has(node);
  }

  /**
   * Since this node heard its leader and had all that was committed then. Undefined while no leader is known, and
   * before the first time.
   */
  get sinceLeaderMs(): number | undefined {
    if (this.#leader === NO_NODE || this.#levelAtMs === undefined) return undefined;
    return this.#options.clock.monotonicMs() - this.#levelAtMs;
  }

  /**
   * Since a quorum with this node was heard: for so long another one may lead, and this one not know. 0 while a
   * quorum answers.
   */
  sinceQuorumMs(self: NodeId, group: Voters): number {
    const { clock, freshMs } = this.#options;
    const nowMs = clock.monotonicMs();
    const heardAtMs = (node: NodeId): number | undefined => {
      const atMs = node === self ? nowMs : this.#heardFreshAtMs.get(node);
      const isAnswering = atMs !== undefined && nowMs - atMs <= freshMs && !this.#lost.has(node);
      return isAnswering ? nowMs : atMs;
    };
    // Of times, as of indexes: the latest one that a quorum has come to.
    return Math.max(0, nowMs - quorumIndex(group, heardAtMs));
  }

  /** Undefined for a node that was never heard, or of which no account is kept. */
  sinceMs(node: NodeId): number | undefined {
    const heardAtMs = this.#heardAtMs.get(node);
    return heardAtMs === undefined ? undefined : this.#options.clock.monotonicMs() - heardAtMs;
  }

  #beginDoubt(): void {
    this.#doubt += 1;
    this.#isInDoubt = true;
    this.#awaited = undefined;
  }
}
