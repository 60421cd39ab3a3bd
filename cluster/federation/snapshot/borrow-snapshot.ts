// Takes a snapshot of the primary over into the own group. What an earlier leader has staged is gone on with
// as long as the primary still lends that snapshot; else it begins anew. So many pieces are asked for ahead
// that a long line is used, and a few are put into the own log at once; no more, so memory stays flat.

import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { sha256 } from '../../platform/sha256.ts';
import { RpcError } from '../../transport/calls/rpc-error.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import { positionText } from '../global-log.ts';
import {
  decodeChunk,
  decodeOffer,
  encodeOpen,
  encodeWish,
  SNAPSHOT_METHOD,
  SNAPSHOT_REFUSAL,
  type SnapshotChunk,
} from './snapshot-frames.ts';
import type { SnapshotSink } from './snapshot-sink.ts';

export interface BorrowOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sink: SnapshotSink;
  /** Empty: none is known yet. */
  readonly federationId: string;
  /** A snapshot of an earlier reign is not taken. */
  readonly epochMin: number;
  readonly call: (method: string, payload: Uint8Array, deadlineMs: number) => Promise<Uint8Array>;
  readonly isOver: () => boolean;
  /** One more piece is staged. */
  readonly onStaged: () => void;
}

/** Pieces that are asked for and not staged yet: 4 MiB, for a line that is long and wide. */
export const PIECES_AHEAD = 64;
/** Of these, those that are on their way into the own log. */
const STAGING_MAX = 4;
/** The primary opens its state. */
const OPEN_MS = 30_000;
/** On a slow line, all that were asked for before come first. */
const CHUNK_MS = 120_000;

/**
 * Resolves when the snapshot is the global state here, or, with false, when it is over before. Rejects with whatever
 * went wrong; nothing is lost.
 */
export async function borrowSnapshot(options: BorrowOptions): Promise<boolean> {
  const { clock, logger, sink } = options;
  const beganAtMs = clock.monotonicMs();
  const begun = (await resumed(options)) ?? (await begunAnew(options));
  const { snapshotId } = begun;
  const pieceCount = await stageAll(options, begun);
  if (options.isOver()) return false;
  await sink.commit({ snapshotId, pieceCount });
  const tookMs = Math.round(clock.monotonicMs() - beganAtMs);
  logger.info({ snapshotId, pieces: pieceCount, tookMs }, 'a snapshot is in place');
  return true;
}

/** Resolves with how many pieces there are. Rejects when one does not come, or cannot be staged. */
async function stageAll(options: BorrowOptions, { snapshotId, next }: Begun): Promise<number> {
  const { isOver, onStaged, sink } = options;
  const coming = [Promise.resolve(next)];
  const staging: Promise<void>[] = [];
  let asked = next.number;
  try {
    for (;;) {
      while (coming.length + staging.length < PIECES_AHEAD) {
        asked += 1;
        coming.push(waitedForLater(chunkOf(options, snapshotId, asked)));
      }
      const piece = await coming.shift()!;
      if (staging.length === STAGING_MAX) await staging.shift();
      if (isOver()) return piece.number;
      if (piece.isEnd) {
        await Promise.all(staging);
        return piece.number;
      }
      const { number, bytes } = piece;
      staging.push(waitedForLater(sink.add({ snapshotId, number, bytes }).then(onStaged)));
    }
  } finally {
    // The next try begins behind what is staged: it has to be known how far that is.
    await Promise.allSettled(staging);
  }
}

/** Whoever comes to it hears what became of it. */
function waitedForLater<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

interface Begun {
  readonly snapshotId: string;
  readonly next: SnapshotChunk;
}

/** Undefined when there is nothing to go on with. */
async function resumed(options: BorrowOptions): Promise<Begun | undefined> {
  const staged = options.sink.staged();
  if (staged === undefined) return undefined;
  const { snapshotId, nextNumber } = staged;
  try {
    const next = await chunkOf(options, snapshotId, nextNumber);
    options.logger.info({ snapshotId, nextNumber }, 'goes on with a snapshot');
    return { snapshotId, next };
  } catch (error) {
    const isGone = error instanceof RpcError && error.refusal?.code === SNAPSHOT_REFUSAL.gone;
    if (isGone) return undefined;
    throw error;
  }
}

async function begunAnew(options: BorrowOptions): Promise<Begun> {
  const { call, epochMin, federationId, logger, sink } = options;
  const offer = decodeOffer(await call(SNAPSHOT_METHOD.open, encodeOpen(federationId), OPEN_MS));
  const areKnown = federationId !== '' && offer.federationId !== '';
  if (areKnown && offer.federationId !== federationId) {
    throw new WireDamage(
      `the snapshot is of federation ${offer.federationId}, not of ${federationId}`,
    );
  }
  if (offer.epoch < epochMin) {
    throw new WireDamage(`the snapshot is of epoch ${offer.epoch}, and ${epochMin} is promised`);
  }
  const { snapshotId, cursor } = offer;
  logger.info({ snapshotId, position: positionText(cursor) }, 'takes a snapshot');
  await sink.begin(offer);
  return { snapshotId, next: await chunkOf(options, snapshotId, 0) };
}

async function chunkOf(
  { call }: BorrowOptions,
  snapshotId: string,
  number: number,
): Promise<SnapshotChunk> {
  const payload = encodeWish({ snapshotId, number });
  const chunk = decodeChunk(await call(SNAPSHOT_METHOD.chunk, payload, CHUNK_MS));
  if (chunk.number !== number) {
    throw new WireDamage(`chunk ${chunk.number} came where ${number} was asked for`);
  }
  if (Buffer.compare(sha256(chunk.bytes), chunk.hash) === 0) return chunk;
  throw new WireDamage(`chunk ${number} of the snapshot has not the hash that it came with`);
}
