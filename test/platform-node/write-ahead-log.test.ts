// Holes in a write-ahead log of LevelDB, in files that are laid out by hand: what counts is whether anything was begun
// behind what cannot be read.

import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { crc32c } from '../../cluster/log/crc32c.ts';
import { findWalHole } from '../../src/platform-node/disk/write-ahead-log.ts';

const BLOCK_BYTES = 32 * 1024;
const HEADER_BYTES = 7;
const [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4];

/** A record as LevelDB lays it out, with its checksum masked. */
function record(type: number, size: number, content = 7): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES + size, content);
  bytes.writeUInt16LE(size, 4);
  bytes[6] = type;
  const crc = crc32c(bytes, 6, bytes.length);
  bytes.writeUInt32LE((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0, 0);
  return bytes;
}

/** The same with one bit of its content changed. */
function damaged(type: number, size: number): Buffer {
  const bytes = record(type, size);
  bytes[bytes.length - 1]! ^= 1;
  return bytes;
}

/** The same with a length that does not fit its block. */
function overlong(size: number): Buffer {
  const bytes = record(FULL, size);
  bytes.writeUInt16LE(size + 1, 4);
  return bytes;
}

/** Fills what is left of a block behind a record of that size. */
const rest = (size: number): number => BLOCK_BYTES - 2 * HEADER_BYTES - size;

type Files = Readonly<Record<string, readonly Buffer[]>>;

function holeIn(test: typeof t, files: Files): unknown {
  const folder = test.testdir({});
  for (const [name, records] of Object.entries(files)) {
    writeFileSync(join(folder, name), Buffer.concat(records));
  }
  return findWalHole(folder);
}

t.test('write-ahead log: what is lost at its end was never acknowledged', (test) => {
  const harmless: Readonly<Record<string, Files>> = {
    'no file': {},
    'an empty one': { '000003.log': [] },
    'all is there': { '000003.log': [record(FULL, 100), record(FULL, rest(100)), record(FULL, 5)] },
    'the last record': { '000003.log': [record(FULL, 100), damaged(FULL, 9)] },
    'half a record': { '000003.log': [record(FULL, 100), record(FULL, 900).subarray(0, 99)] },
    'half a header': { '000003.log': [record(FULL, 100), record(FULL, 9).subarray(0, 6)] },
    'the batch that was being written': {
      '000003.log': [damaged(FIRST, 100), record(MIDDLE, rest(100)), record(LAST, 9)],
    },
    'what LevelDB does not read': { 'LOG.log': [damaged(FULL, 9), record(FULL, BLOCK_BYTES)] },
    'the last record of the last file': {
      '000009.log': [record(FULL, 9)],
      '000010.log': [damaged(FULL, 9)],
    },
  };
  for (const [what, files] of Object.entries(harmless)) {
    test.equal(holeIn(test as typeof t, files), undefined, what);
  }
  test.end();
});

t.test('write-ahead log: whatever was begun behind what cannot be read shows a hole', (test) => {
  const intact = record(FULL, 100);
  const block = [intact, damaged(FULL, rest(100))];
  const at = { file: '000003.log', offsetBytes: intact.length };
  const holes: Readonly<Record<string, readonly [Files, unknown]>> = {
    'a batch in the next block': [{ '000003.log': [...block, record(FULL, 9)] }, at],
    'the first part of one': [{ '000003.log': [...block, record(FIRST, 9)] }, at],
    'behind the rest of the one that is lost': [
      { '000003.log': [intact, damaged(FIRST, rest(100)), record(LAST, 9), record(FULL, 9)] },
      at,
    ],
    'the first of two places': [
      { '000003.log': [...block, damaged(FULL, BLOCK_BYTES - HEADER_BYTES), record(FULL, 9)] },
      at,
    ],
    'a length that leads out of its block': [
      { '000003.log': [intact, overlong(rest(100)), intact] },
      at,
    ],
    'the next file, in the order of numbers': [
      { '000010.log': [intact], '000009.log': [intact, damaged(FULL, 9)] },
      { ...at, file: '000009.log' },
    ],
  };
  for (const [what, [files, hole]] of Object.entries(holes)) {
    test.same(holeIn(test as typeof t, files), hole, what);
  }
  test.end();
});

t.test('write-ahead log: a file that is removed meanwhile is none', (test) => {
  const folder = test.testdir({});
  symlinkSync(join(folder, 'nowhere'), join(folder, '000003.log'));
  test.equal(findWalHole(folder), undefined);
  symlinkSync(folder, join(folder, '000004.log'));
  test.throws(() => findWalHole(folder), { code: 'EISDIR' });
  test.end();
});
