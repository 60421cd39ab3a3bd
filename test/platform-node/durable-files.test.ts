// What a server must find again after a power cut beside its databases.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { makeFolder, writeWhole } from '../../src/platform-node/durable-files.ts';
import { keptNodeId } from '../../src/platform-node/files.ts';

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

t.test('folders: are made with those above them, for their owner alone', async (t) => {
  const folder = emptyFolder(t);
  makeFolder(join(folder, 'a', 'b', 'c'));
  makeFolder(join(folder, 'a', 'b', 'c'));
  for (const made of ['a', 'a/b', 'a/b/c'])
    t.equal(statSync(join(folder, made)).mode & 0o777, 0o700, made);
});

t.test('the id of a server: is kept, and never made anew beside a log', async (t) => {
  const folder = emptyFolder(t);
  t.equal(keptNodeId(folder, ID), ID);
  t.equal(keptNodeId(folder, OTHER_ID), ID);
  mkdirSync(join(folder, 'log'));
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
