// Waits for something to be on its way to a datacenter, and changes one bit of it: in the middle of a row or
// of the key of a request in an entry of the global log, or of a piece of a snapshot. The frame around it
// stays as it is, so that nothing but what is in it tells.

import { decodeEntryRun, decodeFeedFrame } from '../../../cluster/federation/feed/feed-frames.ts';
import { decodeChunk } from '../../../cluster/federation/snapshot/snapshot-frames.ts';
import { decodeFrame } from '../../../cluster/wire/frame-codec.ts';
import { WireDamage } from '../../../cluster/wire/wire-damage.ts';
import { decodeEntry } from '../../../src/state/global-log/global-entry.ts';
import type { LeavingFrame } from '../world/sim-net.ts';

export type Spoiled = 'row' | 'request' | 'piece';

interface Laid {
  /** Hosts of the datacenter, by name. */
  readonly to: readonly string[];
  readonly what: Spoiled;
  /** It was changed. */
  readonly done: () => void;
}

export class Spoils {
  #laid: readonly Laid[] = [];

  /** `done` is called once, with the first one. The result takes it away. */
  lay(laid: Laid): () => void {
    this.#laid = [...this.#laid, laid];
    return () => this.#take(laid);
  }

  /** Changes the bytes that leave, in place. */
  onFrame({ from, to, frame }: LeavingFrame): void {
    for (const laid of this.#laid) {
      const isInbound = laid.to.includes(to) && !laid.to.includes(from);
      const found = isInbound ? bytesIn(frame, laid.what) : undefined;
      if (found === undefined || found.length === 0) continue;
      const start = Buffer.from(frame.buffer, frame.byteOffset, frame.length).indexOf(found);
      if (start < 0) continue;
      frame[start + Math.floor(found.length / 2)]! ^= 1;
      this.#take(laid);
      laid.done();
    }
  }

  #take(laid: Laid): void {
    this.#laid = this.#laid.filter((each) => each !== laid);
  }
}

/** Those to change; undefined where the frame has nothing of the kind. */
function bytesIn(bytes: Uint8Array, what: Spoiled): Uint8Array | undefined {
  try {
    const frame = decodeFrame(bytes);
    if (frame.kind !== 'answer') return undefined;
    return what === 'piece' ? pieceIn(frame.payload) : partIn(frame.payload, what);
  } catch (error) {
    // An answer to another call.
    if (error instanceof WireDamage) return undefined;
    throw error;
  }
}

function pieceIn(payload: Uint8Array): Uint8Array | undefined {
  const { bytes, isEnd, number } = decodeChunk(payload);
  // The first one is the header. Objects come first, and behind them requests, whose loss nothing shows at once.
  return isEnd || number === 0 ? undefined : bytes.subarray(0, Math.ceil(bytes.length / 4));
}

function partIn(payload: Uint8Array, what: 'row' | 'request'): Uint8Array | undefined {
  const { body } = decodeFeedFrame(payload);
  if (body.length === 0) return undefined;
  for (const each of decodeEntryRun(body).entries) {
    const entry = decodeEntry(each.bytes);
    const rows = entry.body.kind === 'effects' ? entry.body.effects : [];
    const part =
      what === 'row' ? rows.find(({ value }) => value !== undefined)?.value : entry.request?.key;
    if (part !== undefined) return part;
  }
  return undefined;
}
