// The log of one node: what is on disk and what is not yet, taken together, against a plain list.

import fc from 'fast-check';
import t from 'tap';
import type { RaftEventKind } from '../../cluster/raft/events.ts';
import {
  ENTRY_OVERHEAD_BYTES,
  type Entry,
  entriesSizeBytes,
  isLogSlice,
  limitSize,
  NO_ENTRY,
} from '../../cluster/raft/log/entry.ts';
import { RaftLog } from '../../cluster/raft/log/raft-log.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership/membership.ts';
import { MemoryStorage } from './support/memory-storage.ts';

const NO_LIMIT = Number.POSITIVE_INFINITY;
const ANY = { allowUnstable: true };
const STABLE = { allowUnstable: false };

/** A log with entries of the given terms from index 1 on, all of them on disk. */
function logOf({
  terms = [],
  maxApplyingBytes = NO_LIMIT,
}: {
  terms?: readonly number[];
  maxApplyingBytes?: number;
} = {}) {
  const storage = new MemoryStorage();
  storage.append(entriesOf(1, terms));
  const events: RaftEventKind[] = [];
  const observe = ({ kind }: { kind: RaftEventKind }) => void events.push(kind);
  return { storage, events, log: new RaftLog({ storage, maxApplyingBytes, observe }) };
}

/** Entries of the given terms from `firstIndex` on, each with one byte. */
function entriesOf(firstIndex: number, terms: readonly number[]): readonly Entry[] {
  return terms.map((term, position) => ({
    term,
    index: firstIndex + position,
    type: 'normal',
    data: new Uint8Array([term]),
  }));
}

function indexesOf(entries: readonly Entry[] | string): readonly number[] | string {
  return typeof entries === 'string' ? entries : entries.map(({ index }) => index);
}

t.test('entries: a size limit never keeps back the first one', (t) => {
  const entries = entriesOf(1, [1, 1, 1]);
  const oneBytes = ENTRY_OVERHEAD_BYTES + 1;
  for (const [maxBytes, expected] of [
    [0, 1],
    [oneBytes, 1],
    [2 * oneBytes - 1, 1],
    [2 * oneBytes, 2],
    [NO_LIMIT, 3],
  ] as const) {
    t.equal(limitSize(entries, maxBytes).length, expected, `${maxBytes} bytes`);
  }
  t.same(limitSize([], 0), []);
  t.end();
});

t.test('entries: a slice of a log has no gap, no falling term and nothing from the future', (t) => {
  const prev = { term: 2, index: 4 };
  t.ok(isLogSlice(prev, entriesOf(5, [2, 3, 3]), 3));
  t.ok(isLogSlice(prev, [], 2));
  t.notOk(isLogSlice(prev, entriesOf(6, [2]), 3), 'a gap');
  t.notOk(isLogSlice(prev, entriesOf(5, [1]), 3), 'an older term after a newer one');
  t.notOk(isLogSlice(prev, entriesOf(5, [3, 4]), 3), 'newer than its leader');
  t.notOk(isLogSlice(prev, [], 1), 'a predecessor newer than its leader');
  t.end();
});

t.test('log: an append that fits replaces only what differs', (t) => {
  const table = [
    { name: 'all new', prev: [2, 2], terms: [3], expected: [1, 2, 3] },
    { name: 'already there', prev: [0, 0], terms: [1], expected: [1, 2] },
    { name: 'empty', prev: [1, 1], terms: [], expected: [1, 2] },
    { name: 'differs at the end', prev: [1, 1], terms: [3, 3], expected: [1, 3, 3] },
    { name: 'differs at the start', prev: [0, 0], terms: [2], expected: [2] },
  ] as const;
  for (const { name, prev, terms, expected } of table) {
    const { log } = logOf({ terms: [1, 2] });
    const [index, term] = prev;
    t.equal(log.maybeAppend({ index, term }, entriesOf(index + 1, terms), 0), index + terms.length);
    const held = log.slice(1, log.lastIndex + 1, NO_LIMIT);
    t.same(typeof held === 'string' ? held : held.map((entry) => entry.term), expected, name);
  }
  t.end();
});

t.test('log: an append that does not fit changes nothing', (t) => {
  const { log } = logOf({ terms: [1, 2] });
  t.equal(log.maybeAppend({ index: 2, term: 1 }, entriesOf(3, [3]), 9), undefined, 'other term');
  t.equal(log.maybeAppend({ index: 3, term: 2 }, entriesOf(4, [3]), 9), undefined, 'a gap');
  t.equal(log.lastIndex, 2);
  t.equal(log.commitIndex, 0);
  t.end();
});

t.test('log: what the disk still has behind its end is no part of it', (t) => {
  const { log } = logOf({ terms: [1, 1, 1, 1] });
  log.append(entriesOf(2, [2]));
  t.same([log.lastIndex, log.term(3), log.term(4)], [2, 'unavailable', 'unavailable']);
  t.equal(log.maybeAppend({ index: 4, term: 1 }, [], 4), undefined, 'nobody is told that it is');
  t.notOk(log.commitKnown({ index: 4, term: 1 }));
  t.equal(log.commitIndex, 0);
  t.end();
});

t.test('log: a committed entry is never replaced', (t) => {
  const { log } = logOf({ terms: [1, 1, 1] });
  log.commitTo(2);
  t.throws(() => log.maybeAppend({ index: 1, term: 1 }, entriesOf(2, [2]), 2), /committed/);
  t.throws(() => log.append(entriesOf(2, [2])), /committed/);
  t.throws(() => log.commitTo(4), /missing/);
  log.commitTo(1);
  t.equal(log.commitIndex, 2, 'commit does not fall back');
  t.end();
});

t.test('log: a follower learns no commit index beyond what it was sent', (t) => {
  const { log } = logOf({ terms: [1, 1, 1] });
  log.maybeAppend({ index: 1, term: 1 }, [], 3);
  t.equal(log.commitIndex, 1, 'entries 2 and 3 may not be the leader’s');
  log.maybeAppend({ index: 1, term: 1 }, entriesOf(2, [1]), 3);
  t.equal(log.commitIndex, 2);
  t.end();
});

t.test('log: an index commits only with the term that is asked for', (t) => {
  const { log } = logOf({ terms: [1, 2] });
  t.notOk(log.maybeCommit({ index: 2, term: 3 }));
  t.notOk(log.maybeCommit({ index: 1, term: 2 }), 'an older entry is not committed by counting');
  t.notOk(log.maybeCommit({ index: NO_LIMIT, term: 2 }), 'nobody to count');
  t.ok(log.maybeCommit({ index: 2, term: 2 }));
  t.notOk(log.maybeCommit({ index: 2, term: 2 }), 'only once');
  t.end();
});

t.test('log: what another node knows to be committed counts where that very entry is here', (t) => {
  const { log } = logOf({ terms: [1, 2, 2] });
  t.notOk(log.commitKnown({ index: 2, term: 3 }), 'another entry');
  t.notOk(log.commitKnown({ index: 4, term: 2 }), 'an entry that is not here');
  t.notOk(log.commitKnown(NO_ENTRY), 'nothing');
  t.equal(log.commitIndex, 0);
  t.ok(log.commitKnown({ index: 2, term: 2 }));
  t.same(log.committedId, { index: 2, term: 2 });
  t.notOk(log.commitKnown({ index: 1, term: 1 }), 'never back');
  t.equal(log.commitIndex, 2);
  t.end();
});

t.test('log: where two logs may agree is found by term', (t) => {
  const { log, storage } = logOf({ terms: [2, 2, 2, 4, 4, 6] });
  const table = [
    [6, 6, 6, 6],
    [6, 5, 5, 4],
    [6, 3, 3, 2],
    [6, 1, 0, 0],
    [2, 9, 2, 2],
    [9, 9, 9, 0],
  ] as const;
  for (const [index, term, agreeing, agreeingTerm] of table) {
    const expected = { index: agreeing, term: agreeingTerm };
    t.same(log.lastAgreement(index, term), expected, `${term}/${index}`);
  }
  storage.compact(3);
  t.same(log.lastAgreement(6, 1), { index: 2, term: 0 }, 'unknown below what is compacted');
  t.end();
});

t.test('log: of a long log few entries are looked at to find where it may agree', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(3), { maxLength: 40 }),
      fc.nat(40),
      fc.record({ index: fc.nat(45), term: fc.nat(60) }),
      (steps, compacted, { index, term }) => {
        let last = 1;
        const terms = steps.map((step) => {
          last += step;
          return last;
        });
        const { log, storage } = logOf({ terms });
        const start = Math.min(compacted, terms.length);
        if (start > 0) storage.compact(start);
        const termAt = (at: number): number | undefined =>
          at === 0 && start === 0 ? 0 : at >= start ? terms[at - 1] : undefined;
        let at = index;
        while ((termAt(at) ?? 0) > term) at -= 1;
        t.same(log.lastAgreement(index, term), { index: at, term: termAt(at) ?? 0 });
      },
    ),
  );
  const { log, storage } = logOf({ terms: Array.from({ length: 8192 }, () => 3) });
  const { term } = storage;
  let looks = 0;
  storage.term = (index) => {
    looks += 1;
    return term.call(storage, index);
  };
  t.same(log.lastAgreement(8192, 2), { index: 0, term: 0 });
  t.ok(looks < 32, `${looks} looks`);
  t.end();
});

t.test('log: entries from disk and memory together keep to one size limit', (t) => {
  const { log } = logOf({ terms: [1, 1] });
  log.append(entriesOf(3, [1, 1]));
  const size = ENTRY_OVERHEAD_BYTES + 1;
  for (const [maxBytes, expected] of [
    [0, [1]],
    [size, [1]],
    [2 * size, [1, 2]],
    [3 * size - 1, [1, 2]],
    [3 * size, [1, 2, 3]],
    [NO_LIMIT, [1, 2, 3, 4]],
  ] as const) {
    t.same(indexesOf(log.slice(1, 5, maxBytes)), expected, `${maxBytes} bytes`);
  }
  t.same(indexesOf(log.slice(3, 5, size)), [3]);
  t.same(indexesOf(log.entriesFrom(5, 0)), []);
  t.throws(() => log.slice(4, 6, NO_LIMIT), /no such log entries/);
  t.end();
});

t.test('log: what is compacted away cannot be read, but its last term is known', (t) => {
  const { log, storage } = logOf({ terms: [1, 2, 3] });
  storage.compact(2);
  t.equal(log.slice(2, 3, NO_LIMIT), 'compacted');
  t.same([log.term(1), log.term(2), log.term(3), log.term(4)], ['compacted', 2, 3, 'unavailable']);
  t.end();
});

t.test('log: entries are handed out for writing once, and again where they are replaced', (t) => {
  const { log, events } = logOf();
  log.append(entriesOf(1, [1, 1]));
  t.same(indexesOf(log.unstable.nextEntries()), [1, 2]);
  log.unstable.acceptInProgress();
  t.same(indexesOf(log.unstable.nextEntries()), []);
  log.append(entriesOf(3, [1]));
  t.same(indexesOf(log.unstable.nextEntries()), [3]);
  log.unstable.acceptInProgress();
  log.append(entriesOf(2, [2]));
  t.same(indexesOf(log.unstable.nextEntries()), [2], 'what was cut off is not written any more');
  t.same(events, ['unstable-truncated']);
  log.append(entriesOf(1, [3]));
  t.same(indexesOf(log.unstable.nextEntries()), [1]);
  t.same(events, ['unstable-truncated', 'unstable-replaced']);
  t.end();
});

t.test('log: only news of exactly what is there makes it stable', (t) => {
  const { log, events } = logOf({ terms: [1] });
  log.append(entriesOf(2, [2, 2]));
  log.unstable.stableTo({ index: 4, term: 2 });
  log.unstable.stableTo({ index: 1, term: 1 });
  log.unstable.stableTo({ index: 2, term: 1 });
  t.same(events, ['stable-entry-missing', 'stable-entry-missing', 'stable-entry-differs']);
  t.equal(log.unstable.count, 2);
  log.unstable.acceptInProgress();
  log.unstable.stableTo({ index: 2, term: 2 });
  t.equal(log.unstable.fromIndex, 3);
  t.same(indexesOf(log.unstable.nextEntries()), [], 'entry 3 is still on its way');
  t.end();
});

t.test(
  'log: a snapshot replaces everything and must be in place before anything is applied',
  (t) => {
    const { log, storage } = logOf({ terms: [1, 1] });
    const snapshot = { term: 3, index: 9, membership: NO_MEMBERS, data: new Uint8Array() };
    log.restore(snapshot);
    t.same([log.firstIndex, log.lastIndex, log.commitIndex], [10, 9, 9]);
    t.same(log.lastId, { term: 3, index: 9 });
    t.equal(log.term(8), 'compacted');
    t.equal(log.slice(2, 10, NO_LIMIT), 'compacted', 'the disk has it still');
    log.append(entriesOf(10, [4]));
    log.commitTo(10);
    t.notOk(log.hasNextCommitted(ANY));
    t.equal(log.unstable.nextSnapshot(), snapshot);
    log.unstable.acceptInProgress();
    t.equal(log.unstable.nextSnapshot(), undefined, 'handed out once');
    log.unstable.stableSnapshotTo(8);
    t.equal(log.snapshot(), snapshot, 'news of another snapshot does not count');
    storage.applySnapshot(snapshot);
    log.unstable.stableSnapshotTo(9);
    log.appliedTo(9, 0);
    t.same(indexesOf(log.nextCommitted(ANY)), [10]);
    t.end();
  },
);

t.test('log: entries are applied once, within the limit, and only from disk where asked', (t) => {
  const size = ENTRY_OVERHEAD_BYTES + 1;
  const { log } = logOf({ terms: [1, 1, 1], maxApplyingBytes: 2 * size });
  log.append(entriesOf(4, [1]));
  log.commitTo(4);
  const first = log.nextCommitted(ANY);
  t.same(indexesOf(first), [1, 2]);
  log.acceptApplying(first, ANY);
  t.notOk(log.hasNextCommitted(ANY), 'the limit counts what is not applied yet');
  log.appliedTo(1, size);
  t.same(indexesOf(log.nextCommitted(ANY)), [3]);
  log.appliedTo(2, size);
  t.same(indexesOf(log.nextCommitted(ANY)), [3, 4]);
  t.same(indexesOf(log.nextCommitted(STABLE)), [3], 'entry 4 is not on this disk yet');
  t.throws(() => log.appliedTo(1, 0), /out of order/);
  t.throws(() => log.appliedTo(5, 0), /out of order/);
  t.end();
});

t.test('log: an unapplied membership change is found wherever it is', (t) => {
  const { log } = logOf({ maxApplyingBytes: 1 });
  const [one, two, three] = entriesOf(1, [1, 1, 1]);
  log.append([one!, { ...two!, type: 'membership' }, three!]);
  t.notOk(log.hasUnappliedMembershipChange(), 'not committed');
  log.commitTo(3);
  t.ok(log.hasUnappliedMembershipChange());
  log.appliedTo(1, 0);
  t.ok(log.hasUnappliedMembershipChange());
  log.appliedTo(2, 0);
  t.notOk(log.hasUnappliedMembershipChange());
  t.end();
});

type Action =
  | { readonly kind: 'append'; readonly back: number; readonly count: number }
  | { readonly kind: 'write' }
  | { readonly kind: 'written' }
  | { readonly kind: 'commit'; readonly by: number }
  | { readonly kind: 'compact' };

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constant('append' as const),
    back: fc.nat({ max: 4 }),
    count: fc.integer({ min: 1, max: 4 }),
  }),
  fc.constant({ kind: 'write' } as const),
  fc.constant({ kind: 'written' } as const),
  fc.record({ kind: fc.constant('commit' as const), by: fc.nat({ max: 3 }) }),
  fc.constant({ kind: 'compact' } as const),
);

t.test('log: disk and memory together always hold what was appended last', (t) => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const { log, storage } = logOf();
      const model: number[] = [];
      let term = 1;
      let inFlight: { id: { term: number; index: number }; entries: readonly Entry[] }[] = [];
      for (const step of actions) {
        if (step.kind === 'append') {
          // Each append comes from a new leader, which may replace anything not committed.
          term += 1;
          const keep = Math.max(log.commitIndex, model.length - step.back);
          model.splice(keep, model.length, ...Array(step.count).fill(term));
          log.append(entriesOf(keep + 1, Array(step.count).fill(term)));
          // Replies of an earlier term are not believed, though their writes still happen.
          for (const { entries } of inFlight) storage.append(entries);
          inFlight = [];
        } else if (step.kind === 'write' && log.unstable.hasNextEntries) {
          inFlight.push({ id: log.lastId, entries: log.unstable.nextEntries() });
          log.unstable.acceptInProgress();
        } else if (step.kind === 'written') {
          const write = inFlight.shift();
          if (write === undefined) continue;
          storage.append(write.entries);
          log.unstable.stableTo(write.id);
        } else if (step.kind === 'commit') {
          log.commitTo(Math.min(model.length, log.commitIndex + step.by));
        } else if (step.kind === 'compact') {
          const stable = Math.min(log.commitIndex, log.unstable.fromIndex - 1);
          log.appliedTo(Math.max(stable, log.appliedIndex), 0);
          if (stable >= storage.firstIndex()) storage.compact(stable);
        }
        if (!sameAs(log, model)) return false;
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.end();
});

function sameAs(log: RaftLog, model: readonly number[]): boolean {
  if (log.lastIndex !== model.length) return false;
  const held = log.slice(log.firstIndex, log.lastIndex + 1, NO_LIMIT);
  if (typeof held === 'string') return false;
  const terms = held.map(({ term }) => term);
  const expected = model.slice(log.firstIndex - 1);
  return (
    JSON.stringify(terms) === JSON.stringify(expected) &&
    entriesSizeBytes(held) === expected.length * (ENTRY_OVERHEAD_BYTES + 1) &&
    held.every(({ index, term }) => log.term(index) === term) &&
    log.term(model.length + 1) === 'unavailable'
  );
}
