// Keys of rows as text: latin-1, so that texts order as the bytes do.

export function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1');
}

export function bytesOf(key: string): Uint8Array {
  return Buffer.from(key, 'latin1');
}
