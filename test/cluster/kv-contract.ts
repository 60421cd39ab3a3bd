// What every key-value store must do, whatever it is made of. Each backend runs the whole of it.

import type { Test } from 'tap';
import type { Kv, KvRange, KvRow, KvWrite } from '../../cluster/platform/kv.ts';

const key = (...bytes: readonly number[]): Uint8Array => Uint8Array.from(bytes);
const put = (at: Uint8Array, value: string): KvWrite => ({
  type: 'put',
  key: at,
  value: Buffer.from(value),
});
const ALL = { from: key(0), to: key(255, 255) };

export async function textsOf(
  rows: AsyncIterable<readonly KvRow[]>,
): Promise<readonly (readonly [string, string])[]> {
  const texts: (readonly [string, string])[] = [];
  for await (const slice of rows) {
    for (const row of slice) {
      texts.push([Buffer.from(row.key).toString('hex'), Buffer.from(row.value).toString()]);
    }
  }
  return texts;
}

const CASES: Readonly<Record<string, (test: Test, kv: Kv) => Promise<void>>> = {
  'get gives what was written, and undefined for what was not': async (test, kv) => {
    await kv.write([put(key(1), 'one'), put(key(2), '')]);
    test.equal(Buffer.from(kv.get(key(1)) ?? []).toString(), 'one');
    test.equal(kv.get(key(2))?.length, 0);
    test.equal(kv.get(key(3)), undefined);
  },
  'a batch applies its writes in order': async (test, kv) => {
    await kv.write([put(key(1), 'a'), { type: 'del', key: key(1) }, put(key(2), 'x')]);
    await kv.write([{ type: 'del', key: key(2) }, put(key(2), 'y')]);
    test.same(await textsOf(kv.rows(ALL)), [['02', 'y']]);
  },
  'the bytes of a batch may be used again when it is on its way': async (test, kv) => {
    const value = Buffer.from('before');
    const writing = kv.write([{ type: 'put', key: key(1), value }]);
    value.write('AFTER!');
    await writing;
    test.equal(Buffer.from(kv.get(key(1)) ?? []).toString(), 'before');
  },
  'rows come in byte order, from the first key up to and without the last': async (test, kv) => {
    const keys = [key(128), key(127, 255), key(127), key(128, 0), key(200), key(129)];
    await kv.write(keys.map((each) => put(each, 'v')));
    const found = await textsOf(kv.rows({ from: key(127), to: key(200) }));
    test.same(
      found.map(([text]) => text),
      ['7f', '7fff', '80', '8000', '81'],
    );
  },
  'a range can be read backwards and cut off': async (test, kv) => {
    await kv.write([1, 2, 3, 4].map((each) => put(key(each), String(each))));
    const range: KvRange = { from: key(1), to: key(4), reverse: true, limit: 2 };
    test.same(await textsOf(kv.rows(range)), [
      ['03', '3'],
      ['02', '2'],
    ]);
    test.same(await textsOf(kv.rows({ ...range, limit: 0 })), []);
  },
  'rows and snapshots are as of the moment of the call': async (test, kv) => {
    await kv.write([put(key(1), 'old'), put(key(2), 'old')]);
    const rows = kv.rows(ALL);
    const snapshot = kv.snapshot();
    await kv.write([put(key(1), 'new'), { type: 'del', key: key(2) }, put(key(3), 'new')]);
    const old = [
      ['01', 'old'],
      ['02', 'old'],
    ];
    test.same(await textsOf(rows), old);
    test.same(await textsOf(snapshot.rows(ALL)), old);
    test.equal(Buffer.from(snapshot.get(key(2)) ?? []).toString(), 'old');
    test.equal(snapshot.get(key(3)), undefined);
    await snapshot.close();
    test.equal(kv.get(key(2)), undefined);
  },
  'a long range comes in several slices, and may be left early': async (test, kv) => {
    const writes = Array.from({ length: 1000 }, (_, each) =>
      put(key(each >> 8, each & 255), 'x'.repeat(200)),
    );
    await kv.write(writes);
    let slices = 0;
    let rows = 0;
    for await (const slice of kv.rows(ALL)) {
      slices += 1;
      rows += slice.length;
    }
    test.equal(rows, 1000);
    test.ok(slices > 1);
    for await (const slice of kv.rows(ALL)) {
      test.ok(slice.length < 1000);
      break;
    }
  },
  'slices are no larger than what will be taken, and all rows come': async (test, kv) => {
    const writes = Array.from({ length: 100 }, (_, each) => put(key(each), 'x'));
    await kv.write(writes);
    const sizes: number[] = [];
    for await (const slice of kv.rows({ ...ALL, sliceRows: 30 })) sizes.push(slice.length);
    test.same(sizes, [30, 30, 30, 10]);
  },
  'of rows whose keys nobody looks at, the values come alone': async (test, kv) => {
    await kv.write([1, 2, 3, 4].map((each) => put(key(each), String(each))));
    const range: KvRange = { from: key(1), to: key(4), isValuesOnly: true };
    const values = ['1', '2', '3'].map((value) => ['', value]);
    test.same(await textsOf(kv.rows(range)), values);
    const snapshot = kv.snapshot();
    test.same(await textsOf(snapshot.rows({ ...range, reverse: true, limit: 2 })), [
      ['', '3'],
      ['', '2'],
    ]);
    await snapshot.close();
  },
  'a range begins and ends where its bytes say, whatever they are': async (test, kv) => {
    const bytes = [0, 1, 0x7f, 0x80, 0xc3, 0xbf, 0xfe];
    const keys = bytes.flatMap((first) => bytes.map((second) => key(first, second)));
    keys.sort(Buffer.compare);
    const nameOf = (at: Uint8Array): string => Buffer.from(at).toString('hex');
    await kv.write(keys.map((at) => put(at, nameOf(at))));
    for (const [place, from] of keys.entries()) {
      for (const isValuesOnly of [false, true]) {
        for (const to of [from, ...keys.slice(place + 1, place + 4), ALL.to]) {
          const wanted = keys.slice(place).filter((at) => Buffer.compare(at, to) < 0);
          const rows = await textsOf(kv.rows({ from, to, isValuesOnly }));
          test.same(
            rows.map(([, value]) => value),
            wanted.map(nameOf),
            `${nameOf(from)} to ${nameOf(to)}`,
          );
        }
      }
    }
  },
  'a second batch while one is in flight is a mistake of the caller': async (test, kv) => {
    const first = kv.write([put(key(1), 'first')]);
    await test.rejects(kv.write([put(key(1), 'second')]), { name: 'AssertionError' });
    await first;
    test.equal(Buffer.from(kv.get(key(1)) ?? []).toString(), 'first');
  },
  'closing breaks off lists and snapshots that are not through; none of them just ends': async (
    test,
    kv,
  ) => {
    const writes = Array.from({ length: 2000 }, (_, each) =>
      put(key(each >> 8, each & 255), 'x'.repeat(200)),
    );
    await kv.write(writes);
    const snapshot = kv.snapshot();
    const lists = [kv.rows(ALL), snapshot.rows(ALL), kv.rows(ALL)].map((slices) =>
      slices[Symbol.asyncIterator](),
    );
    for (const list of lists.slice(0, 2)) test.equal((await list.next()).done, false);
    await kv.close();
    for (const list of lists) {
      const rest = (async () => {
        while ((await list.next()).done !== true);
      })();
      await test.rejects(rest);
    }
    test.throws(() => snapshot.get(key(0, 0)));
    test.throws(() => snapshot.rows(ALL));
  },
  'a closed store refuses everything, and closing twice is harmless': async (test, kv) => {
    await kv.write([put(key(1), 'one')]);
    await kv.close();
    await kv.close();
    test.throws(() => kv.get(key(1)));
    test.throws(() => kv.rows(ALL));
    await test.rejects(kv.write([put(key(1), 'two')]));
  },
};

/** Runs every case on a store of its own. */
export async function kvContract(test: Test, open: (place: string) => Promise<Kv>): Promise<void> {
  for (const [name, check] of Object.entries(CASES)) {
    await test.test(name, async (inner) => {
      const kv = await open(name.replaceAll(/\W+/g, '-'));
      inner.teardown(() => kv.close());
      await check(inner, kv);
    });
  }
}
