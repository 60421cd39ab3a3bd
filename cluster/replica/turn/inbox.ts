// What waits for the next turn. Messages of other nodes are bounded: one too many is lost, which raft
// survives as it survives a bad wire. The node's own inputs always fit, there are only a few of them.

import { payloadSizeBytes } from '../../raft/log/entry.ts';
import type { Message } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { GroupLimits } from '../group-limits.ts';
import type { TakenSnapshot } from '../snapshots/snapshot-taker.ts';

export type Input<Applied> =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'tick' }
  | { readonly kind: 'stored'; readonly replies: readonly Message[] }
  | { readonly kind: 'applied'; readonly applied: Applied }
  /** A snapshot came in whole: does raft want it? */
  | { readonly kind: 'snapshot-taken'; readonly taken: TakenSnapshot }
  /** A snapshot is in the place of log and state. */
  | { readonly kind: 'installed'; readonly index: number }
  /** A snapshot has reached another node, or has not. */
  | { readonly kind: 'snapshot-sent'; readonly node: NodeId; readonly delivered: boolean }
  | { readonly kind: 'link-closed'; readonly node: NodeId }
  | { readonly kind: 'campaign' }
  | { readonly kind: 'transfer'; readonly target: NodeId };

export class Inbox<Applied> {
  readonly #limits: Pick<GroupLimits, 'inboxCountMax' | 'inboxBytesMax'>;
  #inputs: Input<Applied>[] = [];
  #messageCount = 0;
  #messageBytes = 0;
  #lostCount = 0;

  constructor(limits: Pick<GroupLimits, 'inboxCountMax' | 'inboxBytesMax'>) {
    this.#limits = limits;
  }

  /** Messages that found no room, ever. */
  get lostCount(): number {
    return this.#lostCount;
  }

  add(input: Input<Applied>): void {
    if (input.kind === 'message' && !this.#admits(input.message)) this.#lostCount += 1;
    else this.#inputs.push(input);
  }

  /** Everything, in the order it came. */
  take(): readonly Input<Applied>[] {
    const inputs = this.#inputs;
    this.#inputs = [];
    this.#messageCount = 0;
    this.#messageBytes = 0;
    return inputs;
  }

  #admits(message: Message): boolean {
    const { inboxCountMax, inboxBytesMax } = this.#limits;
    const bytes = message.type === 'append' ? payloadSizeBytes(message.entries) : 0;
    if (this.#messageCount >= inboxCountMax) return false;
    if (this.#messageCount > 0 && this.#messageBytes + bytes > inboxBytesMax) return false;
    this.#messageCount += 1;
    this.#messageBytes += bytes;
    return true;
  }
}
