// One direction of one connection: carries pieces from one socket to the other as its line allows. While the
// line is cut everything is kept back, the end of the connection too, as on a wire that carries nothing; what
// was kept back goes on when the line is mended, as what a wire sends again.

import type { Socket } from 'node:net';
import type { Line } from './lines.ts';

export interface PumpOptions {
  readonly from: Socket;
  readonly to: Socket;
  /** As it is now. */
  readonly line: () => Line;
}

/** Beyond it, nothing more is read. */
const HELD_MAX_BYTES = 4 * 1024 * 1024;

interface Piece {
  readonly bytes: Uint8Array;
  readonly dueMs: number;
}

export class Pump {
  readonly #options: PumpOptions;
  readonly #pieces: Piece[] = [];
  #heldBytes = 0;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PumpOptions) {
    this.#options = options;
    const { from, to } = options;
    from.on('data', (bytes: Uint8Array) => this.#take(bytes));
    from.on('close', () => {
      this.#hasEnded = true;
      this.look();
    });
    to.on('drain', () => this.look());
    to.on('close', () => {
      clearTimeout(this.#timer);
      this.#pieces.length = 0;
      // Nobody is left to read it.
      if (!options.line().isCut) from.destroy();
    });
  }

  /** Something has changed: moves what may move. */
  look(): void {
    const { from, to } = this.#options;
    clearTimeout(this.#timer);
    if (this.#options.line().isCut) return;
    if (to.destroyed) {
      from.destroy();
      return;
    }
    this.#move();
    if (this.#hasEnded && this.#pieces.length === 0) to.destroySoon();
    else if (this.#heldBytes < HELD_MAX_BYTES) from.resume();
  }

  #take(bytes: Uint8Array): void {
    this.#pieces.push({ bytes, dueMs: performance.now() + this.#options.line().delayMs });
    this.#heldBytes += bytes.length;
    if (this.#heldBytes >= HELD_MAX_BYTES) this.#options.from.pause();
    this.look();
  }

  #move(): void {
    const { to } = this.#options;
    for (let [piece] = this.#pieces; piece !== undefined; [piece] = this.#pieces) {
      const waitMs = piece.dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.look(), waitMs);
        return;
      }
      if (to.writableNeedDrain) return;
      this.#pieces.shift();
      this.#heldBytes -= piece.bytes.length;
      to.write(piece.bytes);
    }
  }
}
