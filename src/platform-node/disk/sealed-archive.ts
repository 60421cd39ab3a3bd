// Encrypted files: AES-256-GCM over chunks, each bound to its place and the last one marked as such, so
// that nothing can be changed, reordered or cut off unseen. Each file has a key of its own, derived from
// the given one and a random salt. Layout: magic, salt, then sealed chunks; docs/DATA.md has the bytes.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
/** Ends in the version of the layout. */
const MAGIC = Buffer.from('conclave sealed 1\n');
const SALT_BYTES = 32;
const HEADER_BYTES = MAGIC.length + SALT_BYTES;
const KEY_BYTES = 32;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
const CHUNK_BYTES = 64 * 1024;
const SEALED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES;

type Chunks = AsyncIterable<Uint8Array>;

/** Another key, or not the file that was written. The message says where. */
export class SealDamage extends Error {
  override readonly name = 'SealDamage';
}

/** Whether a file that begins with these bytes is encrypted. */
export function isSealed(start: Uint8Array): boolean {
  return Buffer.from(start).subarray(0, MAGIC.length).equals(MAGIC);
}

/** The encrypted file of `content`. `salt` is for tests alone: never the same twice under one key. */
export async function* sealed(
  key: Uint8Array,
  content: Chunks,
  salt: Uint8Array = randomBytes(SALT_BYTES),
): AsyncGenerator<Uint8Array> {
  const header = Buffer.concat([MAGIC, salt]);
  const fileKey = fileKeyOf(key, header);
  yield header;
  let place = 0;
  for await (const { chunk, isLast } of chunksOf(content, CHUNK_BYTES)) {
    const cipher = createCipheriv(CIPHER, fileKey, nonceOf(place, isLast));
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()]);
    place += 1;
  }
}

/** The content of an encrypted file. Throws where it does not fit the key, was changed or cut off. */
export async function* unsealed(key: Uint8Array, file: Chunks): AsyncGenerator<Uint8Array> {
  const source = file[Symbol.asyncIterator]();
  const { header, rest } = await headerOf(source);
  if (!isSealed(header)) throw new SealDamage('this archive is not encrypted');
  if (header.length < HEADER_BYTES) throw new SealDamage('the archive ends in its header');
  const fileKey = fileKeyOf(key, header);
  let place = 0;
  for await (const { chunk, isLast } of chunksOf(following(rest, source), SEALED_CHUNK_BYTES)) {
    yield opened(fileKey, chunk, { place, isLast });
    place += 1;
  }
}

function opened(
  fileKey: Uint8Array,
  chunk: Buffer,
  { place, isLast }: { readonly place: number; readonly isLast: boolean },
): Uint8Array {
  const end = chunk.length - TAG_BYTES;
  try {
    const decipher = createDecipheriv(CIPHER, fileKey, nonceOf(place, isLast));
    decipher.setAuthTag(chunk.subarray(end));
    return Buffer.concat([decipher.update(chunk.subarray(0, end)), decipher.final()]);
  } catch (error) {
    const at = HEADER_BYTES + place * SEALED_CHUNK_BYTES;
    const what = `the archive was changed or cut off in the ${chunk.length} bytes from byte ${at} on`;
    const first = 'the key is not the one of this archive, or ';
    throw new SealDamage(place === 0 ? first + what : what, { cause: error });
  }
}

function fileKeyOf(key: Uint8Array, header: Uint8Array): Uint8Array {
  const salt = header.subarray(MAGIC.length);
  return new Uint8Array(hkdfSync('sha256', key, salt, MAGIC, KEY_BYTES));
}

/** The place of a chunk, and whether it is the last one. */
function nonceOf(place: number, isLast: boolean): Uint8Array {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32BE(place, NONCE_BYTES - 5);
  nonce[NONCE_BYTES - 1] = isLast ? 1 : 0;
  return nonce;
}

/** The same bytes in chunks of one size. The last may be shorter; without any bytes it is empty. */
async function* chunksOf(
  content: Chunks,
  sizeBytes: number,
): AsyncGenerator<{ readonly chunk: Buffer; readonly isLast: boolean }> {
  let kept: Buffer = Buffer.alloc(0);
  for await (const piece of content) {
    kept = Buffer.concat([kept, piece]);
    // One byte more must be there, or this may be the last one.
    for (; kept.length > sizeBytes; kept = kept.subarray(sizeBytes)) {
      yield { chunk: kept.subarray(0, sizeBytes), isLast: false };
    }
  }
  yield { chunk: kept, isLast: true };
}

async function headerOf(
  source: AsyncIterator<Uint8Array>,
): Promise<{ readonly header: Buffer; readonly rest: Buffer }> {
  let kept: Buffer = Buffer.alloc(0);
  while (kept.length < HEADER_BYTES) {
    const next = await source.next();
    if (next.done === true) break;
    kept = Buffer.concat([kept, next.value]);
  }
  return { header: kept.subarray(0, HEADER_BYTES), rest: kept.subarray(HEADER_BYTES) };
}

async function* following(first: Uint8Array, source: AsyncIterator<Uint8Array>) {
  yield first;
  for (let next = await source.next(); next.done !== true; next = await source.next()) {
    yield next.value;
  }
}
