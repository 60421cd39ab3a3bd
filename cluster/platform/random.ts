// Randomness, as the outside world supplies it. In production it comes from a cryptographic source.

export interface Random {
  /** A UUID in text form (36 characters, lower case), from a cryptographic source. */
  uuid(): string;
  /** `count` random bytes. */
  bytes(count: number): Uint8Array;
  /** A number in [0, 1), for jitter, and for what nobody gains by guessing. */
  fraction(): number;
}
