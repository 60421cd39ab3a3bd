// What of the log may go, by number and by size, and what stays for a follower that lags behind.

import t from 'tap';
import { type SpareFacts, spareOf } from '../../../cluster/replica/workers/trimming.ts';

const KEPT = {
  keptCount: 100,
  keptBytesMax: 100_000,
  heldCountMax: 1_000,
  heldBytesMax: 1_000_000,
};

/** Of a log of 5,000 entries behind 0, all applied; node 1 leads. */
function onDiskThrough(
  entryBytes: number,
  behind: number | undefined,
  changed: Partial<SpareFacts> = {},
): number {
  const lastIndex = 5_000;
  const follower = { matchIndex: lastIndex - (behind ?? 0), pendingSnapshotIndex: 0 };
  return spareOf({
    status: { id: 1, appliedIndex: lastIndex, lastIndex },
    progress: behind === undefined ? [] : [[2, follower]],
    isAlive: () => true,
    lastBeyond: (bytes) => Math.max(0, Math.ceil(lastIndex - bytes / entryBytes)),
    limits: KEPT,
    ...changed,
  }).onDiskThrough;
}

/** Entries go in portions: so many may stay beside. */
const PORTION = 4;

t.test('trimming: small entries stay by their number, large ones by their size', async (test) => {
  const stays = (entryBytes: number): number => 5_000 - onDiskThrough(entryBytes, undefined);
  for (const entryBytes of [1, 100, 900]) {
    const count = stays(entryBytes);
    test.ok(count >= 100 && count <= 100 + PORTION, `${count} of ${entryBytes} bytes`);
  }
  test.equal(
    stays(10_000),
    9,
    'of ten there is room for, a portion goes with the first one too many',
  );
  test.equal(stays(200_000), 0, 'none that is larger than all that may stay');
});

t.test(
  'trimming: a living follower that lags behind is waited for within both bounds',
  async (test) => {
    test.equal(onDiskThrough(10_000, 40), 4_960);
    test.equal(onDiskThrough(10_000, 90), 4_910);
    test.equal(onDiskThrough(10_000, 3_000), 4_900, 'a megabyte');
    test.equal(onDiskThrough(100, 3_000), 4_000, 'a thousand');
    test.equal(onDiskThrough(10_000, 3_000, { isAlive: () => false }), 4_991);
  },
);

t.test('trimming: nothing goes that is not applied', async (test) => {
  const status = { id: 1, appliedIndex: 4_700, lastIndex: 5_000 };
  test.equal(onDiskThrough(10_000, undefined, { status }), 4_700);
});
