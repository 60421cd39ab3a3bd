// HMAC-SHA256 (RFC 2104), on the platform's SHA-256, and a comparison whose time says nothing.

import { sha256 } from '../platform/sha256.ts';

const BLOCK_BYTES = 64;

/** 32 bytes. */
export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(key.length > BLOCK_BYTES ? sha256(key) : key);
  const inner = sha256(Buffer.concat([block.map((byte) => byte ^ 0x36), message]));
  return sha256(Buffer.concat([block.map((byte) => byte ^ 0x5c), inner]));
}

/** Takes as long for every pair of one length: how much of a guess is right does not show. */
export function isSameSecret(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let place = 0; place < one.length; place += 1) difference |= one[place]! ^ other[place]!;
  return difference === 0;
}
