// The sizes of a log's entries, against a plain list of them.

import fc from 'fast-check';
import t from 'tap';
import { LogSizes } from '../../../cluster/log/log-sizes.ts';

interface Step {
  readonly kind: 'add' | 'cut' | 'trim';
  readonly sizes: readonly number[];
  /** Of what is kept. */
  readonly part: number;
}

const STEP: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('add', 'add', 'cut', 'trim'),
  sizes: fc.array(fc.nat(50), { maxLength: 700 }),
  part: fc.double({ min: 0, max: 1, noNaN: true }),
});

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}

t.test('sizes: are those of the entries that are kept', async () => {
  fc.assert(
    fc.property(fc.nat(5_000), fc.array(STEP, { maxLength: 25 }), (from, steps) => {
      const sizes = new LogSizes(from);
      let start = from;
      let kept: number[] = [];
      for (const { kind, sizes: more, part } of steps) {
        const count = Math.floor(part * kept.length);
        if (kind === 'trim') {
          start += count;
          kept = kept.slice(count);
          sizes.trim(start);
        } else {
          if (kind === 'cut') {
            kept = kept.slice(0, count);
            sizes.cut(start + count + 1);
          }
          for (const size of more) sizes.add(size);
          kept = [...kept, ...more];
        }
        for (const at of [0, count, kept.length]) {
          const behind = sum(kept.slice(at));
          if (sizes.behind(start + at) !== behind)
            throw new Error(`behind ${start + at}: ${behind}`);
        }
        if (sizes.behind(0) !== sum(kept)) throw new Error('what is gone counts');
        const bytes = Math.floor(part * 2 * sum(kept));
        const beyond = kept.findIndex((_, at) => sum(kept.slice(at)) <= bytes);
        const expected = start + (beyond < 0 ? kept.length : beyond);
        if (sizes.lastBeyond(bytes) !== expected) throw new Error(`beyond ${bytes}: ${expected}`);
      }
    }),
  );
});
