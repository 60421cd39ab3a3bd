// Where an audit log lies: who may read it, what it is called when it is full, and where a look at its end begins.

import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { RotatingFile } from '../../src/platform-node/disk/audit-file.ts';
import { isHeldBySomebody } from '../../src/platform-node/disk/folder-lock.ts';
import { temporaryFolder } from '../hard/server-process.ts';

t.test('audit file: appended to, for its owner alone, and its end is given', async (t) => {
  const path = join(temporaryFolder(t), 'audit.log');
  const file = new RotatingFile(path, 2);
  t.equal(await file.open(), '');
  await file.append('one\n', false);
  await file.append('two\n', true);
  t.equal(file.sizeBytes, 8);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(await file.open(), 'one\ntwo\n');
  await file.append(`${'x'.repeat(100_000)}\nlast\n`, false);
  const end = await file.open();
  t.equal(end.length, 64 * 1024);
  t.ok(end.endsWith('x\nlast\n'));
  t.equal(file.sizeBytes, 100_014);
  await file.close();
  await t.rejects(file.append('x', false), { message: `${path} is not open` });
  await t.rejects(new RotatingFile(join(path, 'x'), 2).open(), { code: 'ENOTDIR' });
});

t.test(
  'audit file: its end is given from before the zeros that a power cut has left',
  async (t) => {
    const path = join(temporaryFolder(t), 'audit.log');
    const file = new RotatingFile(path, 2);
    t.teardown(() => file.close());
    const block = 64 * 1024;
    const line = `${'x'.repeat(20)}\n`;
    for (const zeros of [1, block - line.length, block, 3 * block + 1]) {
      writeFileSync(path, line + '\0'.repeat(zeros));
      t.equal(await file.open(), `${line}\0`, `${zeros}`);
      t.equal(file.sizeBytes, line.length + zeros);
    }
    writeFileSync(path, '\0'.repeat(2 * block));
    t.equal(await file.open(), '\0');
    writeFileSync(path, `${'x'.repeat(block)}\nlast\0\0`);
    const end = await file.open();
    t.ok(end.length === block + 1 && end.endsWith('x\nlast\0'));
  },
);

t.test('audit file: put aside under numbers, and the oldest goes', async (t) => {
  const path = join(temporaryFolder(t), 'audit.log');
  const file = new RotatingFile(path, 2);
  t.teardown(() => file.close());
  await file.open();
  t.equal(await file.endOfAside(), '', 'nothing is put aside yet');
  for (const text of ['a', 'b', 'c', 'd']) {
    await file.append(text, false);
    if (text !== 'd') await file.rotate();
  }
  t.equal(await file.endOfAside(), 'c');
  const texts = ['', '.1', '.2'].map((end) => readFileSync(path + end, 'utf8'));
  t.same(texts, ['d', 'c', 'b']);
  t.notOk(existsSync(`${path}.3`));
  await file.close();
  const none = new RotatingFile(path, 0);
  await none.open();
  await none.rotate();
  t.equal(await none.endOfAside(), '', 'what is there is not its own');
  t.equal(readFileSync(path, 'utf8'), '', 'or none is kept');
  await none.close();
});

t.test('audit file: what is synced is there under its name, too', async (t) => {
  const folder = temporaryFolder(t);
  const handle = await open(folder);
  await handle.close();
  const handles = Object.getPrototypeOf(handle) as Pick<FileHandle, 'sync'>;
  const { sync } = handles;
  t.teardown(() => Object.assign(handles, { sync }));
  let flushedCount = 0;
  handles.sync = async function (this: FileHandle): Promise<void> {
    if ((await this.stat()).isDirectory()) flushedCount += 1;
    await sync.call(this);
  };
  const file = new RotatingFile(join(folder, 'audit.log'), 2);
  t.teardown(() => file.close());
  await file.open();
  await file.append('a', false);
  t.equal(flushedCount, 0, 'nobody asked for it');
  for (const expected of [1, 2, 3]) {
    for (const text of ['b', 'c']) await file.append(text, true);
    t.equal(flushedCount, expected, 'once for each file');
    if (expected === 1) await file.rotate();
    else await file.open();
  }
});

t.test('audit file: goes on under its name when somebody has moved it away', async (t) => {
  const path = join(temporaryFolder(t), 'audit.log');
  const file = new RotatingFile(path, 2);
  t.teardown(() => file.close());
  await file.open();
  await file.append('before\n', false);
  renameSync(path, `${path}.moved`);
  writeFileSync(path, '');
  t.equal(await file.open(), '');
  await file.append('after\n', false);
  t.equal(readFileSync(path, 'utf8'), 'after\n');
  t.equal(readFileSync(`${path}.moved`, 'utf8'), 'before\n');
});

t.test('audit file: one server writes to it at a time', async (t) => {
  const path = join(temporaryFolder(t), 'audit.log');
  const [one, other] = [new RotatingFile(path, 2), new RotatingFile(path, 2)];
  await one.open();
  const taken = { message: `another server writes to ${path}` };
  await t.rejects(other.open(), taken);
  await one.rotate();
  await one.open();
  await t.rejects(other.open(), taken, 'also behind a rotation, and when it was opened anew');
  await one.close();
  await other.open();
  await other.close();
});

t.test('audit file: where no lock can be made, it goes without', async (t) => {
  const path = join(temporaryFolder(t), 'audit.log');
  writeFileSync(`${path}.lock`, 'no folder');
  const file = new RotatingFile(path, 2);
  await file.open();
  await file.append('one\n', false);
  await file.close();
  t.equal(readFileSync(path, 'utf8'), 'one\n');
});

t.test('audit file: nor does a place without locks count as taken', (t) => {
  const said = (why: string) =>
    Object.assign(new Error(`IO error: lock /logs/audit.log.lock/LOCK: ${why}`), {
      code: 'LEVEL_LOCKED',
    });
  for (const why of ['already held by process', 'Resource temporarily unavailable'])
    t.equal(isHeldBySomebody(said(why)), true, why);
  for (const why of ['No locks available', 'Function not implemented', 'Operation not supported'])
    t.equal(isHeldBySomebody(said(why)), false, why);
  t.equal(isHeldBySomebody(undefined), false);
  t.end();
});
