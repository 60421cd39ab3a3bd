// A leader hands its leadership to another voter, so that the others need not find out that it is gone: to
// the best one, and to the next when that one is gone or does not take over in time. It resolves when
// another node leads, and never waits for one that cannot.

import type { Clock, Timer } from '../../platform/clock.ts';
import { NO_NODE, type NodeId } from '../../raft/node-id.ts';

export type HandOverResult =
  /** Another node leads. */
  | 'done'
  /** There is nobody who could. */
  | 'nobody'
  /** Whoever could did not, in time. */
  | 'not-in-time';

export interface HandOverOptions {
  readonly self: NodeId;
  readonly clock: Clock;
  /** The next voter is tried when one has not taken over for so long. */
  readonly tryMs: number;
  /** Of all tries together. */
  readonly limitMs: number;
  /** Who could take over now, the best one first. */
  readonly successors: () => readonly NodeId[];
  /** Asks that the node lead; this node itself: that nobody else does. */
  readonly transfer: (to: NodeId) => void;
}

interface UnderWay {
  /** Undefined: to any that can. */
  readonly to: NodeId | undefined;
  readonly tried: Set<NodeId>;
  readonly limit: Timer;
  readonly resolve: (result: HandOverResult) => void;
  /** It does not lead any more, and nobody does yet. */
  isGiven: boolean;
  target: NodeId;
  next: Timer | undefined;
}

export class HandOver {
  readonly #options: HandOverOptions;
  #underWay: UnderWay | undefined;

  constructor(options: HandOverOptions) {
    this.#options = options;
  }

  /** To be called while this node leads. Takes the place of one that is under way. */
  begin(to?: NodeId): Promise<HandOverResult> {
    this.#end('not-in-time');
    const { clock, limitMs } = this.#options;
    return new Promise((resolve) => {
      this.#underWay = {
        to,
        tried: new Set(),
        limit: clock.after(limitMs, () => this.#giveUp()),
        resolve,
        isGiven: false,
        target: NO_NODE,
        next: undefined,
      };
      if (!this.#tryNext(this.#underWay)) this.#giveUp();
    });
  }

  /** Another node leads, or none, as far as this one knows; or this one does. */
  onLeader(leader: NodeId): void {
    const underWay = this.#underWay;
    if (underWay === undefined || leader === this.#options.self) return;
    if (leader !== NO_NODE) {
      this.#end('done');
      return;
    }
    // Whoever campaigns has the rest of the time to win.
    underWay.isGiven = true;
    underWay.next?.cancel();
  }

  onLinkClosed(node: NodeId): void {
    const underWay = this.#underWay;
    if (underWay?.target !== node || underWay.isGiven) return;
    if (!this.#tryNext(underWay)) this.#giveUp();
  }

  /** This node ends: whoever waits learns nothing more. */
  stop(): void {
    this.#end('not-in-time');
  }

  /** False when there is nobody whom it has not tried. */
  #tryNext(underWay: UnderWay): boolean {
    const { clock, successors, transfer, tryMs } = this.#options;
    const { to, tried } = underWay;
    underWay.next?.cancel();
    const isFit = (node: NodeId): boolean => !tried.has(node) && (to ?? node) === node;
    const target = successors().find(isFit);
    if (target === undefined) return false;
    tried.add(target);
    underWay.target = target;
    transfer(target);
    // The last one has all the time that is left.
    underWay.next = clock.after(tryMs, () => this.#tryNext(underWay));
    return true;
  }

  /** This node leads on, if it does still. */
  #giveUp(): void {
    const { self, transfer } = this.#options;
    const underWay = this.#underWay;
    const hasTried = underWay !== undefined && underWay.tried.size > 0;
    if (hasTried && !underWay.isGiven) transfer(self);
    this.#end(hasTried ? 'not-in-time' : 'nobody');
  }

  #end(result: HandOverResult): void {
    const underWay = this.#underWay;
    if (underWay === undefined) return;
    this.#underWay = undefined;
    underWay.limit.cancel();
    underWay.next?.cancel();
    underWay.resolve(result);
  }
}
