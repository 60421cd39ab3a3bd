// What a state says of itself that comes from somebody else: each word of it is looked at, before it is gone on with.

import t from 'tap';
import { EMPTY_META, type Meta } from '../../src/state/rows/meta.ts';
import { COUNTER_MAX, wrongInMeta } from '../../src/state/rows/meta-check.ts';

const HASH = new Uint8Array(32);
const GOOD: Meta = {
  ...EMPTY_META,
  ...{ index: 9, position: { epoch: 1, seq: 5 }, bootstrapIndex: 9, level: 1 },
  ...{ appliedEntry: { index: 7, term: 2, hash: HASH }, groupRecord: HASH },
};

const metaWith = (given: Readonly<Record<string, unknown>>): Meta =>
  ({ ...GOOD, ...given }) as Meta;

t.test('meta: what can be gone on with is taken', (test) => {
  test.equal(wrongInMeta(EMPTY_META), undefined);
  test.equal(wrongInMeta(GOOD), undefined);
  test.equal(wrongInMeta(metaWith({ index: COUNTER_MAX })), undefined);
  test.equal(
    wrongInMeta(metaWith({ tableIndexes: { ...GOOD.tableIndexes, tokens: 9 } })),
    undefined,
  );
  test.end();
});

t.test('meta: and nothing else', (test) => {
  const entry = GOOD.appliedEntry!;
  const wrong: readonly (readonly [Readonly<Record<string, unknown>>, RegExp])[] = [
    [{ index: COUNTER_MAX + 1 }, /its index is 4503599627370497$/],
    [{ index: -1 }, /its index is -1$/],
    [{ index: 'a'.repeat(99) }, /its index is no number$/],
    [{ position: { epoch: COUNTER_MAX + 1, seq: 5 } }, /its position is 4503599627370497\.5$/],
    [{ position: { epoch: 1, seq: 0.5 } }, /its position is 1\.0\.5$/],
    [{ bootstrapIndex: 10 }, /an index beyond its own, which is 9$/],
    [{ tableIndexes: { ...GOOD.tableIndexes, tokens: 10 } }, /an index beyond its own/],
    [{ tableIndexes: { ...GOOD.tableIndexes, tokens: null } }, /an index beyond its own/],
    [{ globalDigest: new Uint8Array(31) }, /its digests are none$/],
    [{ fullDigest: 'x'.repeat(32) }, /its digests are none$/],
    [{ totals: { ...GOOD.totals, tokens: -1 } }, /its totals are none$/],
    [{ level: 0 }, /its feature level is 0$/],
    [{ level: 1.5 }, /its feature level is 1\.5$/],
    [{ level: null }, /its feature level is no number$/],
    [{ appliedEntry: { ...entry, index: COUNTER_MAX + 1 } }, /its last entry is none$/],
    [{ appliedEntry: { ...entry, term: '2' } }, /its last entry is none$/],
    [{ appliedEntry: { ...entry, hash: new Uint8Array(33) } }, /its last entry is none$/],
    [{ groupRecord: 'x' }, /its group is none$/],
  ];
  for (const [given, says] of wrong) test.match(wrongInMeta(metaWith(given)), says);
  test.end();
});
