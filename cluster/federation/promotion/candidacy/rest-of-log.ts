// What a candidate lacks, and somebody else has. A primary that is lost may have given its last entries to one
// datacenter alone, and that one may be a witness, which is never elected: so whoever has more gives it to the
// candidate first. A candidate takes it in the name of the epoch that it has promised to itself, behind which
// nothing of an older reign comes in any other way. Whether entries follow each other, its own log decides.

import { RpcError, RpcRefusal } from '../../../transport/calls/rpc-error.ts';
import type { RpcRequest } from '../../../transport/transport.ts';
import type { EntrySource } from '../../entry-source.ts';
import { decodeEntryRun, encodeEntryRun } from '../../feed/feed-frames.ts';
import { FRAME_BYTES, FRAME_ENTRIES_MAX } from '../../feed/feed-limits.ts';
import {
  type GlobalCursor,
  type GlobalEntry,
  isFurther,
  isSameCursor,
  positionText,
} from '../../global-log.ts';
import {
  decodeRest,
  encodeRest,
  PROMOTION_METHOD,
  PROMOTION_REFUSAL,
} from '../promotion-frames.ts';
import type { PromotionPort, PromotionState } from '../promotion-port.ts';
import type { Standing } from './ballot.ts';

export interface RestOfLogOptions {
  /** The own one. */
  readonly datacenter: string;
  readonly port: Pick<PromotionPort, 'isRestore' | 'take'>;
  /** The log of this datacenter, for candidates that lack some of it. */
  readonly source: Pick<EntrySource, 'locate' | 'read' | 'restoredSeq'>;
  /** Why that datacenter cannot read some of these entries, and what to do about it; undefined: it can. */
  readonly unreadableBy: (
    datacenter: string,
    entries: readonly GlobalEntry[],
  ) => string | undefined;
  /** The leader of that datacenter. Rejects with RpcError. */
  readonly ask: (datacenter: string, method: string, payload: Uint8Array) => Promise<Uint8Array>;
}

export class RestOfLog {
  readonly #options: RestOfLogOptions;

  constructor(options: RestOfLogOptions) {
    this.#options = options;
  }

  /** To a candidate: what follows its last entry here. Throws RpcRefusal where it does not, and WireDamage. */
  async give({ from, payload }: RpcRequest, { isDiverged }: PromotionState): Promise<Uint8Array> {
    const { datacenter, source, unreadableBy } = this.#options;
    const { after, isTrial } = decodeRest(payload);
    if (isDiverged) throw givesNothing(`${datacenter} stands on a fork, and waits for a snapshot`);
    const location = source.locate(after);
    if (location.kind === 'diverged') {
      throw givesNothing(`${positionText(after)} is on another chain than ${datacenter}`);
    }
    const all = location.kind === 'kept' ? await source.read(after.seq, FRAME_BYTES) : undefined;
    if (all === undefined) {
      const says = `${datacenter} does not keep what follows ${positionText(after)} any more`;
      if (source.restoredSeq <= after.seq) throw givesNothing(says);
      throw new RpcRefusal(PROMOTION_REFUSAL.restored, `${says}: a restore came behind it`);
    }
    const entries = all.slice(0, FRAME_ENTRIES_MAX);
    const unreadable = unreadableBy(from.datacenter, entries);
    if (unreadable !== undefined) {
      throw new RpcRefusal(PROMOTION_REFUSAL.unreadable, unreadable);
    }
    return encodeEntryRun({ after, entries: isTrial ? [] : entries });
  }

  /**
   * Whether that datacenter gives what follows, and it can be taken. Rejects with why not. Nothing changes, here or
   * there: the entries themselves are asked for, as a giver of any release answers that.
   */
  async requireGiven(datacenter: string, after: GlobalCursor): Promise<void> {
    const [first] = await this.#ask(datacenter, { after, isTrial: false });
    if (first === undefined) throw nothingFollows(after);
    // Whoever has taken one keeps nothing of before it: behind entries there is none.
    if (this.#options.port.isRestore(first)) throw new RestoreFollows(after);
  }

  /** Everything up to the place where that datacenter said to be. `onTaken` is told how far the own log is. */
  async take(
    { datacenter, cursor: goal }: Standing,
    { epoch, after }: { readonly epoch: number; readonly after: GlobalCursor },
    onTaken: (cursor: GlobalCursor) => void,
  ): Promise<void> {
    let from = after;
    while (isFurther(goal, from)) {
      const entries = await this.#ask(datacenter, { after: from, isTrial: false });
      const last = entries.at(-1);
      if (last === undefined) throw nothingFollows(from);
      const to = { epoch: last.epoch, seq: last.seq, hash: last.hash };
      const reached = await this.#options.port.take({ epoch, from, entries, to });
      if (!isSameCursor(reached, to)) throw new Error(`the own log is at ${positionText(reached)}`);
      onTaken(to);
      from = to;
    }
  }

  async #ask(
    datacenter: string,
    rest: { readonly after: GlobalCursor; readonly isTrial: boolean },
  ): Promise<readonly GlobalEntry[]> {
    const { ask } = this.#options;
    const bytes = await ask(datacenter, PROMOTION_METHOD.rest, encodeRest(rest));
    const { after, entries } = decodeEntryRun(bytes);
    if (isSameCursor(after, rest.after)) return entries;
    throw new Error(`what follows ${positionText(after)} came`);
  }
}

/** Only a snapshot leads over it, and only a datacenter that has objects gives one. */
class RestoreFollows extends Error {
  override readonly name = 'RestoreFollows';

  constructor(after: GlobalCursor) {
    super(`a restore follows ${positionText(after)}`);
  }
}

/** Whether what a giver has more lies behind a restore, so that no entries lead there. */
export function isBehindRestore(error: unknown): boolean {
  const refusal = error instanceof RpcError ? error.refusal : undefined;
  return error instanceof RestoreFollows || refusal?.code === PROMOTION_REFUSAL.restored;
}

/** What whoever told of it has may be on its way to its disks, or have been dropped since. */
function nothingFollows(after: GlobalCursor): Error {
  return new Error(`nothing follows ${positionText(after)} there yet`);
}

function givesNothing(says: string): RpcRefusal {
  return new RpcRefusal(PROMOTION_REFUSAL.refused, says);
}
