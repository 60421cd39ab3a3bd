// Marks that can be found again: every local token of a run carries bytes in its secret and in its
// description that say which datacenter it is of. No frame that leaves the datacenter may have them in
// it, and no disk elsewhere.

import { siteName } from '../../subject/datacenters-subject.ts';

const SECRET_START = 'ca7a1e5e-';
/** Behind the number of the datacenter. */
const SECRET_MIDDLE = '-4000-8000-';
const TEXT_START = 'canary-of-';

/** Of a local token of the datacenter at this place. */
export function canarySecret(place: number, number: number): string {
  const site = (place + 1).toString(16).padStart(4, '0');
  return `${SECRET_START}${site}${SECRET_MIDDLE}${number.toString(16).padStart(12, '0')}`;
}

export function canaryText(place: number, number: number): string {
  return `${TEXT_START}${siteName(place)}-${number}`;
}

/** Should an id be kept as its bytes. Those of the beginning alone come in some hash by chance, once in 2^32. */
const AS_BYTES = Buffer.from(SECRET_START.slice(0, 8), 'hex');
const BYTES_BEHIND_SITE = Buffer.from(SECRET_MIDDLE.replaceAll('-', ''), 'hex');

const SEARCHED: readonly Buffer[] = [Buffer.from(SECRET_START), AS_BYTES, Buffer.from(TEXT_START)];

/** The first mark of another datacenter among the bytes; with `own` undefined, of any. */
export function foreignCanary(bytes: Uint8Array, own: number | undefined): string | undefined {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (const start of SEARCHED) {
    for (let at = all.indexOf(start); at >= 0; at = all.indexOf(start, at + 1)) {
      const isByChance =
        start === AS_BYTES && !all.subarray(at + 6, at + 10).equals(BYTES_BEHIND_SITE);
      if (!isByChance && (own === undefined || !isOf(all, at, own))) {
        return JSON.stringify(all.toString('latin1', at, at + 40));
      }
    }
  }
  return undefined;
}

function isOf(all: Buffer, at: number, own: number): boolean {
  const found = all.toString('latin1', at, at + 20);
  if (found.startsWith(TEXT_START)) return found.startsWith(`${TEXT_START}${siteName(own)}-`);
  if (found.startsWith(SECRET_START)) return found.startsWith(canarySecret(own, 0).slice(0, 14));
  return all.readUInt16BE(at + 4) === own + 1;
}
