// What the file says that lets an operator bootstrap again.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { SecretId } from '../../src/acl/ids.ts';
import { resetIndexOf } from '../../src/node/settings/reset-index.ts';
import { takeBootstrapReset } from '../../src/platform-node/disk/files.ts';

const SECRET = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757a' as SecretId;
const OTHER = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757b' as SecretId;

t.test('reset index: a number, nothing, or what no bootstrap has', (t) => {
  for (const [text, index] of [
    ['12', 12],
    [undefined, undefined],
    ['twelve', Number.NaN],
    [`twelve ${SECRET}`, Number.NaN],
    [`12 ${SECRET} more`, Number.NaN],
    // A command that was to make the secret, and is not installed, leaves the blank.
    ['12 \n', Number.NaN],
    ['12\t\r\n', Number.NaN],
    [' 12\r\n', 12],
    ['\uFEFF12\n\n', 12],
  ] as const) {
    for (const secret of [undefined, SECRET]) {
      let isTaken: boolean | undefined;
      const take = (isForAsker: (text: string) => boolean): string | undefined => {
        isTaken = text !== undefined && isForAsker(text);
        return isTaken ? text : undefined;
      };
      t.same(resetIndexOf(secret, take), index, JSON.stringify(text));
      t.equal(isTaken, index === 12, 'what nobody can read stays for whoever mends it');
    }
  }
  t.end();
});

t.test('reset index: one with a secret is for whoever asks for that, and stays for others', (t) => {
  const folder = t.testdir();
  const file = join(folder, 'acl-bootstrap-reset');
  const indexFor = (secret: SecretId | undefined): number | undefined =>
    resetIndexOf(secret, (isForAsker) => takeBootstrapReset(folder, isForAsker));
  writeFileSync(file, `12 ${SECRET}\n`);
  for (const secret of [undefined, OTHER, SECRET.toUpperCase() as SecretId]) {
    t.equal(indexFor(secret), undefined);
  }
  t.equal(indexFor(SECRET), 12);
  t.equal(existsSync(file), false, 'it works once');
  writeFileSync(file, '12\n');
  t.equal(indexFor(OTHER), 12, 'without one it is for anybody');
  t.equal(existsSync(file), false);
  t.equal(indexFor(OTHER), undefined);
  // Whoever asks all the time sees it while the operator writes it.
  for (const begun of ['', '12 ', '12\t']) {
    writeFileSync(file, begun);
    t.equal(indexFor(OTHER), undefined, `${JSON.stringify(begun)}: a secret may be on its way`);
    t.equal(existsSync(file), true);
  }
  t.end();
});

t.test(
  'reset index: a file of another user is named to whoever needs it, without its path',
  (t) => {
    const closed = Object.assign(new Error("EACCES: permission denied, open '/secret/place'"), {
      code: 'EACCES',
    });
    const take = (): never => {
      throw closed;
    };
    t.throws(() => resetIndexOf(undefined, take), {
      code: 'invalid',
      message: /^the leader cannot read and delete its file acl-bootstrap-reset \(EACCES\): give /,
      cause: closed,
    });
    t.end();
  },
);
