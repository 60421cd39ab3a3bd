// What is left open on LevelDB is closed with it, and what was closed is held by nothing.

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
