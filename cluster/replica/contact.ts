// When this node last heard the others, in its own monotonic time. Of the leader only what a leader
// says counts: a node that led before may go on talking.

import type { Clock } from '../platform/clock.ts';
import type { Message } from '../raft/message.ts';
import { NO_NODE, type NodeId } from '../raft/node-id.ts';

export class Contact {
  readonly #clock: Clock;
  /** Of all members; undefined before the first word. */
  readonly #heardAtMs = new Map<NodeId, number | undefined>();
  /** Members whose links closed, and that were not heard since. */
  readonly #lost = new Set<NodeId>();
  #leader: NodeId = NO_NODE;
  #term = 0;
  #leaderHeardAtMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  onMessage({ type, from, term }: Message): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#heardAtMs.has(from)) this.#heardAtMs.set(from, nowMs);
    this.#lost.delete(from);
    const isLeading = type === 'append' || type === 'heartbeat';
    if (isLeading && from === this.#leader && term === this.#term) this.#leaderHeardAtMs = nowMs;
  }

  onLinkClosed(node: NodeId): void {
    if (this.#heardAtMs.has(node)) this.#lost.add(node);
  }

  /** Who leads, by its own word: it was just heard. NO_NODE for none. */
  onLeader(leader: NodeId, term: number): void {
    this.#leader = leader;
    this.#term = term;
    this.#leaderHeardAtMs = this.#clock.monotonicMs();
  }

  /** Keeps account of these from now on, and of no others. */
  follow(nodes: readonly NodeId[]): void {
    for (const node of [...this.#heardAtMs.keys()]) {
      if (nodes.includes(node)) continue;
      this.#heardAtMs.delete(node);
      this.#lost.delete(node);
    }
    for (const node of nodes) this.#heardAtMs.set(node, this.#heardAtMs.get(node));
  }

  /** Whether its link closed, and nothing came from it since. */
  hasLost(node: NodeId): boolean {
    return this.#lost.has(node);
  }

  /** Undefined while no leader is known. */
  get sinceLeaderMs(): number | undefined {
    if (this.#leader === NO_NODE) return undefined;
    return this.#clock.monotonicMs() - this.#leaderHeardAtMs;
  }

  /** Undefined for a node that was never heard, or of which no account is kept. */
  sinceMs(node: NodeId): number | undefined {
    const heardAtMs = this.#heardAtMs.get(node);
    return heardAtMs === undefined ? undefined : this.#clock.monotonicMs() - heardAtMs;
  }
}
