// What the checkers compare states by: the same for equal rows, however they came to be and wherever
// they lie, and another one for every change.

import fc from 'fast-check';
import t from 'tap';
import {
  encodeKeyspaces,
  KEYSPACES_KEY,
  placeOf,
} from '../../../src/state/rows/store/keyspaces.ts';
import { ROW } from '../../../src/state/rows/tables.ts';
import { textOf } from '../world/key-text.ts';
import { rowsDigest } from '../world/rows-digest.ts';
import { SortedRows } from '../world/sorted-rows.ts';
import { stateDigest } from './state-digest.ts';

interface Step {
  readonly key: number;
  /** Undefined: the row goes. */
  readonly value: number | undefined;
  readonly isLookedAt: boolean;
}

const KINDS = [ROW.meta, ROW.token, ROW.policy, ROW.restore];
const UNUSED = { current: 3, staged: undefined, unused: [0, 2] };
const STAGED = { current: 3, staged: 4, unused: [0] };

const step: fc.Arbitrary<Step> = fc.record({
  key: fc.nat(23),
  value: fc.option(fc.nat(3), { nil: undefined }),
  isLookedAt: fc.boolean(),
});
const steps = fc.array(step, { maxLength: 60 });

function keyOf(key: number): Uint8Array {
  return Uint8Array.of(KINDS[key % KINDS.length]!, key);
}

function taken(before: SortedRows, { key, value }: Step): SortedRows {
  const text = textOf(keyOf(key));
  return value === undefined ? before.without(text) : before.with(text, Uint8Array.of(value));
}

/** Looks at it now and then, so that parts are known when the next rows come. */
function rowsAfter(all: readonly Step[], look: (rows: SortedRows) => void): SortedRows {
  let rows = SortedRows.EMPTY;
  for (const each of all) {
    rows = taken(rows, each);
    if (each.isLookedAt) look(rows);
  }
  return rows;
}

function anew(rows: SortedRows): SortedRows {
  let copy = SortedRows.EMPTY;
  for (const { key, value } of [...rows.all()].reverse()) copy = copy.with(key, value.slice());
  return copy;
}

t.test('a digest is that of the same rows put anew, and another one after a change', async (t) => {
  const property = fc.property(steps, step, (before, next) => {
    const rows = rowsAfter(before, rowsDigest);
    const after = taken(rows, next);
    const old = rows.get(textOf(keyOf(next.key)))?.[0];
    return (
      rowsDigest(rows) === rowsDigest(anew(rows)) &&
      rowsDigest(after) === rowsDigest(anew(after)) &&
      (rowsDigest(after) === rowsDigest(rows)) === (old === next.value)
    );
  });
  t.doesNotThrow(() => fc.assert(property, { seed: 1, numRuns: 300 }));
});

/** The same state in another keyspace, beside rows of one that is unused. */
function moved(rows: SortedRows, keyspaces: typeof UNUSED | typeof STAGED): SortedRows {
  let there = SortedRows.EMPTY.with(textOf(KEYSPACES_KEY), encodeKeyspaces(keyspaces));
  for (const { key, value } of rows.all()) {
    const bytes = Buffer.from(key, 'latin1');
    there = there.with(textOf(placeOf(keyspaces, bytes)), value);
    const unused = placeOf({ ...keyspaces, current: 2 }, bytes);
    if (unused[0] === ROW.inKeyspace) there = there.with(textOf(unused), Uint8Array.of(99));
    // What one of them has worked out of a part is nothing for the other.
    rowsDigest(there);
    stateDigest(there);
  }
  return there.with(textOf(Uint8Array.of(ROW.token, 200)), Uint8Array.of(1));
}

t.test('a state has one digest in whichever keyspace it lies', async (t) => {
  const property = fc.property(steps, (all) => {
    const rows = rowsAfter(all, stateDigest);
    return stateDigest(rows) === stateDigest(moved(rows, UNUSED));
  });
  t.doesNotThrow(() => fc.assert(property, { seed: 1, numRuns: 300 }));
});

t.test('rows of a keyspace that is staged count as rows that come in', async (t) => {
  const token = Uint8Array.of(ROW.token, 7);
  const value = Uint8Array.of(1);
  const coming = textOf(Uint8Array.of(ROW.staged, ...token));
  const inFirst = SortedRows.EMPTY.with(textOf(token), value).with(coming, value);
  const staged = textOf(placeOf({ ...STAGED, current: 4 }, token));
  const one = moved(SortedRows.EMPTY.with(textOf(token), value), STAGED);
  t.not(stateDigest(one), stateDigest(inFirst));
  t.equal(stateDigest(one.with(staged, value)), stateDigest(inFirst));
});
