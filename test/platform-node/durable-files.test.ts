// What a server must find again after a power cut beside its databases.

import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { endWithProcess, exitAtSignals } from '../../scripts/exit-at-signals.ts';
import { makeFolder, writeWhole } from '../../src/platform-node/disk/durable-files.ts';
import { keptNodeId } from '../../src/platform-node/disk/files.ts';
import { adviceOn } from '../../src/platform-node/disk/level-kv.ts';
import { createWholeFile } from '../../src/platform-node/disk/whole-file.ts';
import { openJsonLog } from '../../src/platform-node/process/json-log.ts';

exitAtSignals();

const DISK = join(import.meta.dirname, '..', '..', 'src', 'platform-node', 'disk');
const WHOLE_FILE = pathToFileURL(join(DISK, 'whole-file.js')).href;
const DURABLE_FILES = pathToFileURL(join(DISK, 'durable-files.js')).href;
const ID = '11111111-2222-3333-4444-555555555555';
const OTHER_ID = '99999999-2222-3333-4444-555555555555';

function emptyFolder(t: { teardown(action: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-files-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

t.test('files: are there whole, in place of what had their name', async (t) => {
  const path = join(emptyFolder(t), 'one');
  writeWhole(path, 'first\n');
  writeWhole(path, 'second\n');
  t.equal(readFileSync(path, 'utf8'), 'second\n');
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.notOk(existsSync(`${path}.new`));
});

t.test('files: are not half of it where the disk takes no more than that', async (t) => {
  const path = join(emptyFolder(t), 'one');
  const script = `
    import { writeWhole } from ${JSON.stringify(DURABLE_FILES)};
    writeWhole(process.argv[1], 'first');
    try {
      writeWhole(process.argv[1], 'x'.repeat(5_000));
    } catch (error) {
      console.log(error.code);
    }
  `;
  const node = [process.execPath, '--input-type=module', '--eval', script, path];
  const limited = ['-c', 'ulimit -f 2; exec "$@"', 'sh', ...node];
  t.equal(execFileSync('sh', limited, { encoding: 'utf8' }), 'EFBIG\n');
  t.equal(readFileSync(path, 'utf8'), 'first');
});

t.test('folders: are made with those above them, for their owner alone', async (t) => {
  const folder = emptyFolder(t);
  makeFolder(join(folder, 'a', 'b', 'c'));
  makeFolder(join(folder, 'a', 'b', 'c'));
  for (const made of ['a', 'a/b', 'a/b/c'])
    t.equal(statSync(join(folder, made)).mode & 0o777, 0o700, made);
});

t.test('folders: where none can be made it is refused, and not tried for ever', async (t) => {
  const file = join(emptyFolder(t), 'file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'below'), '/proc/none/below']) {
    t.throws(() => makeFolder(path), /EEXIST|ENOTDIR|ENOENT/, path);
  }
});

t.test('whole files: take the place of files alone, also behind a link', async (t) => {
  const folder = emptyFolder(t);
  const target = join(folder, 'target');
  const link = join(folder, 'link');
  writeFileSync(target, 'old');
  symlinkSync(target, link);
  const file = await createWholeFile(link);
  await file.write(Buffer.from('new'));
  await file.commit();
  t.equal(readFileSync(target, 'utf8'), 'new');
  t.ok(lstatSync(link).isSymbolicLink());
  await t.rejects(createWholeFile('/dev/null'), /\/dev\/null is there and is no file/);
  await t.rejects(createWholeFile(folder), /is there and is no file/);
});

t.test('a store that only lacks room or rights is not said to be damaged', async (t) => {
  for (const [said, next] of [
    ['IO error: /x/000005.log: No space left on device', 'make room on its disk'],
    ['IO error: /x/CURRENT: Too many open files', 'let the process open more files'],
    ['IO error: /x/LOCK: Permission denied', 'give its folder to the user of this process'],
    ['IO error: /x/LOCK: Read-only file system', 'mount its disk for writing'],
  ] as const) {
    t.match(adviceOn(new Error(said)), next);
    t.notMatch(adviceOn(new Error(said)), 'move it away');
  }
  const locked = (why: string) =>
    Object.assign(new Error(`IO error: lock /x/LOCK: ${why}`), { code: 'LEVEL_LOCKED' });
  t.equal(adviceOn(locked('already held by process')), 'another process has it open');
  t.match(adviceOn(locked('No locks available')), 'put data_dir on a disk that has locks');
  const advice = adviceOn(new Error('Corruption: 3 missing files'));
  t.match(advice, /: of several servers, move the data folder away .*never put back an old copy/);
  t.match(advice, 'of one that is alone, restore the folder from a copy');
});

t.test('the log: a line that cannot be written fails nobody', async (t) => {
  const descriptor = openSync('/dev/full', 'w');
  t.teardown(() => closeSync(descriptor));
  const log = openJsonLog('info', descriptor);
  for (let count = 0; count < 3; count += 1) log.error({ count }, 'there is no room for this');
  t.pass();
});

t.test('the log: hides a secret, and says where there is none', async (t) => {
  const path = join(emptyFolder(t), 'log');
  const descriptor = openSync(path, 'w');
  t.teardown(() => closeSync(descriptor));
  const log = openJsonLog('info', descriptor);
  log.info({ settings: { cluster_key: 'c2VjcmV0' }, secret: 'c2VjcmV0' }, 'set');
  log.info({ settings: { cluster_key: '' } }, 'not set');
  const [set = '', notSet = ''] = readFileSync(path, 'utf8').split('\n');
  t.match(set, /"cluster_key":"<hidden>".*"secret":"<hidden>"/);
  t.match(notSet, /"cluster_key":""/);
});

for (const database of ['log', 'state', 'state-3']) {
  t.test(`the id of a server: is kept, and never made anew beside a ${database}`, async (t) => {
    const folder = emptyFolder(t);
    t.equal(keptNodeId(folder, ID), ID);
    t.equal(keptNodeId(folder, OTHER_ID), ID);
    mkdirSync(join(folder, database));
    t.equal(keptNodeId(folder, OTHER_ID), ID);
    for (const left of ['', '\n', 'half-an-id', undefined]) {
      if (left === undefined) rmSync(join(folder, 'node-id'));
      else writeFileSync(join(folder, 'node-id'), left);
      t.throws(
        () => keptNodeId(folder, OTHER_ID),
        /node-id does not hold the id of a server any more/,
      );
    }
    t.notOk(existsSync(join(folder, 'node-id')));
  });
}

t.test(
  'files: a signal in the middle of one leaves nothing of it, and ends the process',
  async (t) => {
    const folder = emptyFolder(t);
    const script = `
    import { createWholeFile } from ${JSON.stringify(WHOLE_FILE)};
    const before = await createWholeFile('before');
    await before.write(Buffer.from('whole'));
    await before.commit();
    await (await createWholeFile('given-up')).discard();
    const file = await createWholeFile('one');
    await file.write(Buffer.from('secret'));
    console.log(process.listenerCount('SIGINT'));
    setTimeout(() => file.commit(), 60_000);
  `;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
        cwd: folder,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      endWithProcess(child);
      const ended = new Promise((resolve) => child.once('exit', (_, by) => resolve(by)));
      const says = await new Promise((resolve) => child.stdout.once('data', resolve));
      t.equal(String(says), '1\n', 'what is over listens no longer');
      t.equal(readdirSync(folder).length, 2);
      child.kill(signal);
      t.equal(await ended, signal);
      t.same(readdirSync(folder), ['before']);
    }
  },
);
