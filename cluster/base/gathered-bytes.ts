// Bytes that come in pieces, kept in one: a piece of a few bytes costs hundreds as a buffer of its own.

/** A piece that stays alone is taken as it is; of several a copy is kept, in twice their size at most. */
export class GatheredBytes {
  #held: Uint8Array = new Uint8Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (this.#length === 0) this.#held = piece;
    else {
      if (length > this.#held.length) this.#widen(length);
      this.#held.set(piece, this.#length);
    }
    this.#length = length;
  }

  /** All of them. What is added later begins anew. */
  take(): Buffer {
    const { buffer, byteOffset } = this.#held;
    const bytes = Buffer.from(buffer, byteOffset, this.#length);
    this.#held = new Uint8Array(0);
    this.#length = 0;
    return bytes;
  }

  #widen(length: number): void {
    const wider = Buffer.allocUnsafeSlow(2 * length);
    wider.set(this.#held.subarray(0, this.#length));
    this.#held = wider;
  }
}
