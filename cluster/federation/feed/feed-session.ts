// One follower's session at the primary: each pull that it sends is answered with the frame that comes next,
// in order, as soon as there is one, or with a heartbeat. Nothing is sent that was not pulled, so what is on
// its way to a follower is bounded by its pulls, and nothing waits for it in memory here. A follower that is
// up to date gets an entry at once after a pause, and then a frame every few milliseconds: pulls that each
// took one entry would be used up before the first of them could come again over a long line.

import type { Clock, Timer } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { GlobalCursor } from '../global-log.ts';
import { encodeFeedFrame, type FeedNews } from './feed-frames.ts';
import type { FramePacker } from './frame-packer.ts';

/** Codes of refusals of the feed. They are on the wire: none gets another meaning. */
export const FEED_REFUSAL = {
  /** The session is over: begin another one. */
  over: 'feed.over',
  /** Not now, or not so many. */
  busy: 'feed.busy',
  /** A later leader of the same datacenter has a session. */
  superseded: 'feed.superseded',
  /** Another federation, or another cluster under the name of one that is known. */
  stranger: 'feed.stranger',
  /** Its datacenter does not read all that the log may say. */
  tooOld: 'feed.too-old',
} as const;

export interface FeedSessionOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly packer: FramePacker;
  readonly session: number;
  /** Of the follower's group. */
  readonly term: number;
  readonly after: GlobalCursor;
  readonly pullsMax: number;
  readonly paceMs: number;
  readonly heartbeatMs: number;
  readonly headSeq: () => number;
  readonly news: () => FeedNews;
}

interface Pull {
  readonly number: number;
  readonly resolve: (answer: Uint8Array) => void;
  readonly reject: (refusal: RpcRefusal) => void;
}

export class FeedSession {
  readonly session: number;
  readonly term: number;
  readonly #options: FeedSessionOptions;
  readonly #pulls: Pull[] = [];
  #sent: GlobalCursor;
  #nextNumber = 0;
  #isReading = false;
  #heartbeat: Timer | undefined;
  /** The next frame waits for it. */
  #pace: Timer | undefined;
  #overBy: RpcRefusal | undefined;

  constructor(options: FeedSessionOptions) {
    this.#options = options;
    this.session = options.session;
    this.term = options.term;
    this.#sent = options.after;
    this.#awaitHeartbeat();
  }

  /** The last entry that has left. */
  get sentSeq(): number {
    return this.#sent.seq;
  }

  get isOver(): boolean {
    return this.#overBy !== undefined;
  }

  /** Resolves with the frame that answers it. Rejects with RpcRefusal. */
  pull(number: number): Promise<Uint8Array> {
    const { pullsMax } = this.#options;
    if (this.#overBy !== undefined) return Promise.reject(this.#overBy);
    if (number !== this.#nextNumber) {
      this.end(`pull ${number} came where ${this.#nextNumber} was expected`);
    } else if (this.#pulls.length >= pullsMax) {
      this.end(`more than ${pullsMax} pulls wait`);
    }
    if (this.#overBy !== undefined) return Promise.reject(this.#overBy);
    this.#nextNumber += 1;
    return new Promise((resolve, reject) => {
      this.#pulls.push({ number, resolve, reject });
      this.onMoved();
    });
  }

  /** The head is further than it was. */
  onMoved(): void {
    void this.#serve();
  }

  /** The follower hears why with its next pull. */
  end(why: string, code: string = FEED_REFUSAL.over): void {
    if (this.#overBy !== undefined) return;
    this.#overBy = new RpcRefusal(code, why);
    this.#heartbeat?.cancel();
    this.#pace?.cancel();
    for (const { reject } of this.#pulls.splice(0)) reject(this.#overBy);
  }

  async #serve(): Promise<void> {
    if (this.#isReading || this.#pace !== undefined) return;
    this.#isReading = true;
    try {
      while (this.#pulls.length > 0 && this.#sent.seq < this.#options.headSeq()) {
        await this.#sendNext();
        if (this.#pace !== undefined) break;
      }
    } catch (error) {
      this.#options.logger.error({ cause: error }, 'the global log cannot be read for the feed');
      this.end('the global log cannot be read');
    } finally {
      this.#isReading = false;
    }
  }

  async #sendNext(): Promise<void> {
    const frame = await this.#options.packer.after(this.#sent);
    if (this.#overBy !== undefined) return;
    if (frame === undefined) {
      this.end(`what follows ${this.#sent.seq} is not kept any more`);
      return;
    }
    this.#sent = frame.to;
    this.#answer(frame.body);
    if (!frame.isFull) this.#awaitPace();
  }

  #awaitPace(): void {
    const { clock, paceMs } = this.#options;
    this.#pace = clock.after(paceMs, () => {
      this.#pace = undefined;
      this.onMoved();
    });
  }

  #answer(body: Uint8Array): void {
    const pull = this.#pulls.shift();
    if (pull === undefined) return;
    const { number, resolve } = pull;
    resolve(encodeFeedFrame({ number, news: this.#options.news(), body }));
    this.#awaitHeartbeat();
  }

  #awaitHeartbeat(): void {
    const { clock, heartbeatMs } = this.#options;
    this.#heartbeat?.cancel();
    this.#heartbeat = clock.after(heartbeatMs, () => {
      // While entries are read, one of them answers.
      if (!this.#isReading) this.#answer(NOTHING);
      this.#awaitHeartbeat();
    });
  }
}

const NOTHING = new Uint8Array(0);
