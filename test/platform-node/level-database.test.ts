// What is left open on LevelDB is closed with it, and what was closed is held by nothing.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t, { type Test } from 'tap';
import { LevelDatabase } from '../../src/platform-node/disk/level-database.ts';

const ROWS = 20;

async function openWithRows(test: Test): Promise<LevelDatabase> {
  const encoding = { keyEncoding: 'buffer', valueEncoding: 'buffer' };
  const database = new LevelDatabase(test.testdir(), encoding);
  await database.open();
  const batch = database.batch();
  for (let row = 0; row < ROWS; row += 1) batch.put(Uint8Array.of(row), Uint8Array.of(row));
  await batch.write();
  return database;
}

t.test('closing a database closes what is still open on it', async (test) => {
  const database = await openWithRows(test);
  const iterators = Array.from({ length: 5 }, () => database.iterator());
  const snapshots = [database.snapshot(), database.snapshot()];
  for (const iterator of iterators) test.equal((await iterator.nextv(10)).length, 10);
  // The first, one in the middle, the last.
  for (const place of [0, 2, 4]) await iterators[place]?.close();
  await snapshots[0]?.close();
  await database.close();
  test.equal(database.status, 'closed');
  for (const iterator of iterators) {
    await test.rejects(iterator.next(), { code: 'LEVEL_ITERATOR_NOT_OPEN' });
  }
});

t.test('a read under way is waited for', async (test) => {
  const database = await openWithRows(test);
  const reading = database.iterator().nextv(ROWS);
  const closing = database.close();
  test.equal((await reading).length, ROWS);
  await closing;
  test.equal(database.status, 'closed');
});

t.test('no set ever has what is opened: see the head of LevelDatabase', async (test) => {
  const database = await openWithRows(test);
  const added: unknown[] = [];
  const { add } = Set.prototype;
  Set.prototype.add = function (value: unknown) {
    added.push(value);
    return add.call(this, value);
  };
  test.teardown(() => {
    Set.prototype.add = add;
  });
  const iterator = database.iterator();
  const snapshot = database.snapshot();
  Set.prototype.add = add;
  test.notOk(added.includes(iterator));
  test.notOk(added.includes(snapshot));
  await database.close();
});

t.test(
  'an iterator is closed once, by whoever reads from it or with the database',
  async (test) => {
    const database = await openWithRows(test);
    const [done, left] = [database.iterator(), database.iterator()];
    test.equal((await done.nextv(ROWS)).length, ROWS);
    await database.closeIterator(done);
    const closing = database.close();
    await database.closeIterator(left);
    await test.rejects(left.next(), { code: 'LEVEL_ITERATOR_NOT_OPEN' });
    await closing;
    test.equal(database.status, 'closed');
  },
);

t.test('the rows that a closed iterator read last go with the next young garbage', async (test) => {
  const rowBytes = 64 * 1024;
  const database = await openWithRows(test);
  await database.put(Uint8Array.of(0), new Uint8Array(rowBytes));
  const collectYoung = youngCollection();
  const read = async (count: number): Promise<void> => {
    for (let time = 1; time <= count; time += 1) {
      const iterator = database.iterator();
      await iterator.nextv(ROWS);
      await database.closeIterator(iterator);
      if (time % 50 === 0) collectYoung();
    }
  };
  await read(200);
  const before = process.memoryUsage.rss();
  const readings = 4_000;
  await read(readings);
  const grownBytes = process.memoryUsage.rss() - before;
  test.ok(grownBytes < (readings * rowBytes) / 4, `${readings} rows of 64 KiB left ${grownBytes}`);
});

/** Of the engine, which has it under a flag that can be set late for what is made from then on. */
function youngCollection(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;
  setFlagsFromString('--no-expose-gc');
  return () => collect({ type: 'minor' });
}
