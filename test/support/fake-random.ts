// Randomness that is the same in every run: ids count upwards.

import type { Random } from '../../cluster/platform/random.ts';

export class FakeRandom implements Random {
  #count = 0;

  uuid(): string {
    this.#count += 1;
    return uuidNumbered(this.#count);
  }

  bytes(count: number): Uint8Array {
    this.#count += 1;
    return Uint8Array.from({ length: count }, (_, place) => (this.#count * 31 + place * 7) & 0xff);
  }

  fraction(): number {
    return 0.5;
  }
}

/** A UUID text that ends in the number; none of them is a reserved one. */
export function uuidNumbered(number: number): string {
  const hex = number.toString(16).padStart(12, '0');
  return `11111111-2222-4333-8444-${hex}`;
}
