// A look over the bytes of a frame before anything is made of them: msgpack of the few kinds that frames
// have, whole, not nested deeply, without more items than a frame can hold. What passes is cheap to unpack:
// nothing in it claims a size that is not there. What the items mean is the codec's matter.

import { WireDamage } from './wire-damage.ts';

/** A frame of messages with a snapshot has 6 levels. */
export const DEPTH_MAX = 8;
/** Of all levels together: reading them takes well under 20 ms. */
export const ITEMS_MAX = 131_072;

/** How an item begins: how many bytes say its length, whether items or bytes follow. */
type Head = { readonly lengthBytes: number; readonly holds: 'items' | 'bytes' };

/** Sizes of items of one fixed length, after their first byte. */
const FIXED_BYTES: ReadonlyMap<number, number> = new Map([
  [0xc0, 0], // nil
  [0xc2, 0], // false
  [0xc3, 0], // true
  [0xcb, 8], // float 64, which is how whole numbers above 32 bits travel
  [0xcc, 1], // unsigned integers of 8, 16, 32 bits
  [0xcd, 2],
  [0xce, 4],
]);

const HEADS: ReadonlyMap<number, Head> = new Map([
  [0xc4, { lengthBytes: 1, holds: 'bytes' }], // byte strings
  [0xc5, { lengthBytes: 2, holds: 'bytes' }],
  [0xc6, { lengthBytes: 4, holds: 'bytes' }],
  [0xd9, { lengthBytes: 1, holds: 'bytes' }], // texts
  [0xda, { lengthBytes: 2, holds: 'bytes' }],
  [0xdb, { lengthBytes: 4, holds: 'bytes' }],
  [0xdc, { lengthBytes: 2, holds: 'items' }], // arrays
  [0xdd, { lengthBytes: 4, holds: 'items' }],
]);

/** Throws WireDamage. */
export function checkMsgpack(bytes: Uint8Array): void {
  const scan = new Scan(bytes);
  while (!scan.isDone) scan.item();
  scan.end();
}

class Scan {
  readonly #bytes: Uint8Array;
  #at = 0;
  #itemCount = 0;
  /** How many items each open array still waits for; the first level is the frame itself. */
  readonly #missing = [1];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isDone(): boolean {
    return this.#missing.length === 0;
  }

  item(): void {
    const first = this.#number(1);
    this.#itemCount += 1;
    this.#missing[this.#missing.length - 1]! -= 1;
    if (first < 0x80) this.#skip(0);
    else if (first >= 0xa0 && first < 0xc0) this.#skip(first & 0x1f);
    else if (first >= 0x90 && first < 0xa0) this.#open(first & 0x0f);
    else this.#long(first);
    while (this.#missing.at(-1) === 0) this.#missing.pop();
  }

  end(): void {
    const leftBytes = this.#bytes.length - this.#at;
    if (leftBytes > 0) throw new WireDamage(`${leftBytes} bytes follow the end of the frame`);
  }

  #long(first: number): void {
    const fixed = FIXED_BYTES.get(first);
    const head = HEADS.get(first);
    if (fixed !== undefined) this.#skip(fixed);
    else if (head === undefined) {
      throw new WireDamage(`an item of kind 0x${first.toString(16)} is in no frame`);
    } else {
      const length = this.#number(head.lengthBytes);
      if (head.holds === 'items') this.#open(length);
      else this.#skip(length);
    }
  }

  #open(count: number): void {
    const leftBytes = this.#bytes.length - this.#at;
    if (count > leftBytes) throw cut(count - leftBytes);
    if (this.#itemCount + count > ITEMS_MAX) {
      throw new WireDamage(`the frame has more than ${ITEMS_MAX} items`);
    }
    if (this.#missing.length > DEPTH_MAX) {
      throw new WireDamage(`the frame is nested deeper than ${DEPTH_MAX} arrays`);
    }
    this.#missing.push(count);
  }

  #number(bytesCount: number): number {
    const at = this.#at;
    this.#skip(bytesCount);
    let number = 0;
    for (let place = at; place < this.#at; place += 1) number = number * 256 + this.#bytes[place]!;
    return number;
  }

  #skip(count: number): void {
    const leftBytes = this.#bytes.length - this.#at;
    if (count > leftBytes) throw cut(count - leftBytes);
    this.#at += count;
  }
}

function cut(missingBytes: number): WireDamage {
  return new WireDamage(`the frame is cut off: at least ${missingBytes} bytes are missing`);
}
