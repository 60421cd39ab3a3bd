// A checked state on its way through the log: begun, sent in pieces of which a few are under way, and made
// the state by the last command. Where it fails before that, nothing has changed, and what was sent is
// dropped.

import type { KvRow } from '../../../cluster/platform/kv.ts';
import { AclError } from '../../acl/error.ts';
import type { Change } from '../../state/commands/commands.ts';
import type { Outcome } from '../../state/commands/outcome.ts';
import {
  CHAIN_ORIGIN,
  chained,
  packedRows,
  packedSize,
} from '../../state/snapshot/snapshot-format.ts';
import type { ServiceDeps } from '../deps.ts';
import { LeaderAway, NOBODY_LEADS } from '../remote.ts';
import { isUnknown } from '../writes/tries.ts';
import { untilNotOvertaken } from '../writes/under-way.ts';

/** Of the rows in one command; a single larger row makes a piece of its own. */
const PIECE_BYTES_MAX = 64 * 1024;
/** Pieces that are proposed and not answered: others must not wait long behind them. */
const PIECES_UNDER_WAY_MAX = 4;

type RestoreDeps = Pick<ServiceDeps, 'propose' | 'clock' | 'random' | 'logger'> & {
  readonly settings: Pick<ServiceDeps['settings'], 'leaderWaitMs'>;
};

interface Restored {
  readonly rows: AsyncIterable<readonly KvRow[]>;
  readonly metaRow: Uint8Array;
}

/** On what a restore goes on. */
export interface RestoreTerms {
  /** All is proposed under the leadership that the right was asked under. */
  readonly reign: number;
  /** Throws where the operator may not do it any more, and Overtaken while that is being decided. */
  readonly requireAllowed: () => void;
}

/** Resolves with the index of the restored state. Rejects as `ServiceDeps.propose`, and as the terms say. */
export async function proposeRestore(
  deps: RestoreDeps,
  { reign, requireAllowed }: RestoreTerms,
  { rows, metaRow }: Restored,
): Promise<number> {
  const id = deps.random.uuid();
  const propose = (change: Change): Promise<Outcome> => perform(deps, reign, change);
  let mayBeDone = false;
  try {
    await propose({ type: 'restore.begin', id });
    const sent = await sendPieces(rows, (number, piece) =>
      propose({ type: 'restore.chunk', id, number, rows: piece }),
    );
    const outcome = await untilNotOvertaken(
      { clock: deps.clock, limitMs: deps.settings.leaderWaitMs },
      () => {
        requireAllowed();
        mayBeDone = true;
        return propose({ type: 'restore.commit', id, metaRow, ...sent });
      },
    );
    return outcome.kind === 'applied' ? outcome.index : 0;
  } catch (error) {
    await abandon(deps, () => propose({ type: 'restore.abandon', id }));
    throw isLostBefore(error, mayBeDone) ? leaderLost(error) : error;
  }
}

/** Whether nothing was restored because the leader went: only of the last command nobody knows what became of it. */
function isLostBefore(error: unknown, mayBeDone: boolean): boolean {
  if (error instanceof LeaderAway) return error.message === NOBODY_LEADS;
  return isUnknown(error) && !mayBeDone;
}

/** For whoever has sent the archive. */
export function leaderLost(cause: unknown): AclError {
  const text = 'nothing was restored: the leader was lost while it took in the archive';
  return new AclError('unavailable', text, { cause });
}

interface Sent {
  readonly chunkCount: number;
  readonly chain: Uint8Array;
}

async function sendPieces(
  rows: AsyncIterable<readonly KvRow[]>,
  send: (number: number, piece: Uint8Array) => Promise<unknown>,
): Promise<Sent> {
  let sent: Sent = { chunkCount: 0, chain: CHAIN_ORIGIN };
  const underWay: Promise<unknown>[] = [];
  try {
    for await (const piece of piecesOf(rows)) {
      sent = { chunkCount: sent.chunkCount + 1, chain: chained(sent.chain, piece) };
      const sending = send(sent.chunkCount, piece);
      // Looked at in its turn; until then its failure is nobody's surprise.
      sending.catch(() => undefined);
      underWay.push(sending);
      if (underWay.length >= PIECES_UNDER_WAY_MAX) await underWay.shift();
    }
    await Promise.all(underWay);
    return sent;
  } catch (error) {
    // Whichever failed first is told; the others end before anything else is proposed.
    await Promise.allSettled(underWay);
    throw error;
  }
}

async function* piecesOf(slices: AsyncIterable<readonly KvRow[]>): AsyncGenerator<Uint8Array> {
  let rows: KvRow[] = [];
  let sizeBytes = 0;
  for await (const slice of slices) {
    for (const row of slice) {
      const rowBytes = packedSize(row);
      if (rows.length > 0 && sizeBytes + rowBytes > PIECE_BYTES_MAX) {
        yield packedRows(rows);
        rows = [];
        sizeBytes = 0;
      }
      rows.push(row);
      sizeBytes += rowBytes;
    }
  }
  if (rows.length > 0) yield packedRows(rows);
}

async function perform(
  { propose, clock }: RestoreDeps,
  reign: number,
  change: Change,
): Promise<Outcome> {
  const command = { change, timeMs: clock.wallMs(), cas: undefined, request: undefined };
  const outcome = await propose(command, reign);
  if (outcome.kind === 'applied') return outcome;
  throw new AclError(outcome.code, outcome.message);
}

/** Only tidies up: after a while the leader drops it anyway. */
async function abandon({ logger }: RestoreDeps, propose: () => Promise<unknown>): Promise<void> {
  try {
    await propose();
  } catch (cause) {
    logger.warn({ cause }, 'a restore that failed is dropped later');
  }
}
