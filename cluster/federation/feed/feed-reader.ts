// One session of the feed at the follower's side: pulls frames as far as its window allows, applies what
// came in order and in batches, and acknowledges what is applied. It ends with the first thing that does not
// fit: what is durable is the cursor of the follower's own group, and the next session begins there.

import { must } from '../../base/assert.ts';
import type { Clock, Timer } from '../../platform/clock.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import { type GlobalCursor, type GlobalEntry, isSameCursor, positionText } from '../global-log.ts';
import {
  decodeEntryRun,
  decodeFeedFrame,
  encodeAck,
  encodePull,
  FEED_METHOD,
  type FeedNews,
} from './feed-frames.ts';
import { FRAME_BYTES, PULLS_MAX, type SubscriberLimits } from './feed-limits.ts';

/** Entries for the own group's log, all or none of them, and only behind `from`. */
export interface GlobalBatch {
  readonly federationId: string;
  /** The reign of the primary that they were taken from. */
  readonly epoch: number;
  readonly from: GlobalCursor;
  readonly entries: readonly GlobalEntry[];
  readonly to: GlobalCursor;
}

export interface FeedReaderOptions {
  readonly clock: Clock;
  readonly limits: SubscriberLimits;
  readonly federationId: string;
  readonly session: number;
  /** Of the primary's reign: a session is one of one reign. */
  readonly epoch: number;
  /** Where the session begins. */
  readonly after: GlobalCursor;
  readonly call: (method: string, payload: Uint8Array, deadlineMs: number) => Promise<Uint8Array>;
  readonly apply: (batch: GlobalBatch) => Promise<GlobalCursor | 'snapshot-needed'>;
  readonly onNews: (news: FeedNews) => void;
  readonly onApplied: (cursor: GlobalCursor) => void;
}

/** The session is over; the message says why. */
export class FeedOver extends Error {
  override readonly name = 'FeedOver';
}

/** The own group cannot go on from its cursor with entries. */
export class SnapshotNeeded extends FeedOver {
  constructor(says = 'the entries that follow can only be had as a snapshot') {
    super(says);
  }
}

/** What the own group has is not what the primary has at the same place: one of the two is wrong. */
export class Difference extends SnapshotNeeded {
  constructor(at: GlobalCursor) {
    super(`what this datacenter has is not what the primary has at ${positionText(at)}`);
  }
}

interface HeldRun {
  readonly entries: readonly GlobalEntry[];
  readonly sizeBytes: number;
}

export class FeedReader {
  /** Rejects when it is over, and never resolves. */
  readonly over: Promise<never>;
  readonly #options: FeedReaderOptions;
  #end!: (why: Error) => void;
  #isOver = false;
  /** The last entry that has come, that is proposed, and that is applied. */
  #received: GlobalCursor;
  #proposed: GlobalCursor;
  #applied: GlobalCursor;
  /** Came and are not applied. */
  readonly #held: HeldRun[] = [];
  #heldBytes = 0;
  #pullCount = 0;
  #nextPull = 0;
  /** Answers are taken in the order of their pulls. */
  #inOrder: Promise<void> = Promise.resolve();
  #batchCount = 0;
  #isAcking = false;
  #acked: GlobalCursor;
  #silence: Timer | undefined;

  constructor(options: FeedReaderOptions) {
    this.#options = options;
    this.#received = options.after;
    this.#proposed = options.after;
    this.#applied = options.after;
    this.#acked = options.after;
    this.over = new Promise((_, reject) => {
      this.#end = reject;
    });
    // Whoever has it waits for it; nobody else is to be told.
    this.over.catch(() => undefined);
  }

  start(): void {
    this.#awaitSilence();
    this.#grant();
  }

  /** What is being applied goes on. */
  stop(why: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#silence?.cancel();
    this.#held.length = 0;
    this.#end(why);
  }

  /** As many frames as find room, each counted as if it came full. */
  #grant(): void {
    const { windowBytes } = this.#options.limits;
    const hasRoom = (): boolean => {
      const grantedBytes = (this.#pullCount + 1) * FRAME_BYTES;
      return this.#pullCount < PULLS_MAX && this.#heldBytes + grantedBytes <= windowBytes;
    };
    while (!this.#isOver && hasRoom()) this.#pull();
  }

  #pull(): void {
    const { call, limits, session } = this.#options;
    const number = this.#nextPull;
    this.#nextPull += 1;
    this.#pullCount += 1;
    const payload = encodePull({ session, number });
    const answer = call(FEED_METHOD.pull, payload, limits.pullMs);
    const before = this.#inOrder;
    this.#inOrder = answer
      .then(async (bytes) => {
        await before;
        this.#take(number, bytes);
      })
      .catch((error: unknown) => this.#fail(error));
  }

  #take(number: number, bytes: Uint8Array): void {
    if (this.#isOver) return;
    const frame = decodeFeedFrame(bytes);
    if (frame.number !== number) {
      throw new WireDamage(`the answer to pull ${number} is to pull ${frame.number}`);
    }
    this.#pullCount -= 1;
    this.#awaitSilence();
    const { epoch, onNews } = this.#options;
    if (frame.news.epoch !== epoch) {
      throw new FeedOver(`epoch ${frame.news.epoch} has begun at the primary`);
    }
    onNews(frame.news);
    if (frame.body.length > 0) this.#hold(frame.body);
    this.#applyHeld();
    this.#grant();
  }

  #hold(body: Uint8Array): void {
    const { after, entries } = decodeEntryRun(body);
    if (!isSameCursor(after, this.#received)) {
      const says = `entries behind ${positionText(after)} came behind ${positionText(this.#received)}`;
      throw new WireDamage(`${says}, or on another chain`);
    }
    const last = entries.at(-1);
    if (last === undefined) return;
    requireOrder(this.#received, entries);
    this.#received = cursorOf(last);
    this.#held.push({ entries, sizeBytes: body.length });
    this.#heldBytes += body.length;
  }

  #applyHeld(): void {
    const { batchesMax } = this.#options.limits;
    while (!this.#isOver && this.#held.length > 0 && this.#batchCount < batchesMax) {
      this.#batchCount += 1;
      this.#applyNext()
        .catch((error: unknown) => this.#fail(error))
        .finally(() => {
          this.#batchCount -= 1;
          this.#applyHeld();
        });
    }
  }

  /** Each batch names the one before it, so it is harmless to propose one before that is applied. */
  async #applyNext(): Promise<void> {
    const { apply, epoch, federationId, onApplied } = this.#options;
    const { entries, sizeBytes } = this.#nextBatch();
    const from = this.#proposed;
    const to = cursorOf(must(entries.at(-1), 'a batch of one entry or more'));
    this.#proposed = to;
    const reached = await apply({ federationId, epoch, from, entries, to });
    if (this.#isOver) return;
    this.#heldBytes -= sizeBytes;
    if (reached === 'snapshot-needed') throw new SnapshotNeeded();
    if (!isSameCursor(reached, to)) {
      const says = `the own log is at ${positionText(reached)}, not at ${positionText(to)}`;
      throw new FeedOver(`${says}: another leader has applied entries, or they do not fit`);
    }
    this.#applied = to;
    onApplied(to);
    void this.#acknowledge();
    this.#grant();
  }

  #nextBatch(): HeldRun {
    const { batchBytes } = this.#options.limits;
    const entries: GlobalEntry[] = [];
    let sizeBytes = 0;
    for (let run = this.#held[0]; run !== undefined; run = this.#held[0]) {
      if (entries.length > 0 && sizeBytes + run.sizeBytes > batchBytes) break;
      this.#held.shift();
      entries.push(...run.entries);
      sizeBytes += run.sizeBytes;
    }
    return { entries, sizeBytes };
  }

  /** One at a time: what is applied meanwhile goes with the next. */
  async #acknowledge(): Promise<void> {
    if (this.#isAcking) return;
    this.#isAcking = true;
    const { call, limits, session } = this.#options;
    try {
      while (!this.#isOver && this.#acked.seq < this.#applied.seq) {
        const cursor = this.#applied;
        await call(FEED_METHOD.ack, encodeAck({ session, cursor }), limits.callMs);
        this.#acked = cursor;
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isAcking = false;
    }
  }

  #awaitSilence(): void {
    const { clock, limits } = this.#options;
    this.#silence?.cancel();
    this.#silence = clock.after(limits.silenceMs, () =>
      this.#fail(new FeedOver(`nothing came over the feed for ${limits.silenceMs} ms`)),
    );
  }

  #fail(error: unknown): void {
    this.stop(error instanceof Error ? error : new Error(String(error)));
  }
}

function cursorOf({ epoch, seq, hash }: GlobalEntry): GlobalCursor {
  return { epoch, seq, hash };
}

/** Epochs never go back, and seqs grow; the hashes are for whoever knows what is in them. */
function requireOrder(after: GlobalCursor, entries: readonly GlobalEntry[]): void {
  let before = after;
  for (const entry of entries) {
    if (entry.epoch < before.epoch || entry.seq <= before.seq) {
      throw new WireDamage(`entry ${positionText(entry)} follows ${positionText(before)}`);
    }
    before = entry;
  }
}
