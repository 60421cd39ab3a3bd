// The key-value stores: the contract over both, and what only a store on disk can do wrong.

import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Kv } from '../../cluster/platform/kv.ts';
import { openLevelKv } from '../../src/platform-node/disk/level-kv.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { kvContract } from './kv-contract.ts';

const KEY = Uint8Array.of(1);

async function openAt(
  folder: string,
  onFatal: (cause: Error) => void = (cause) => t.fail(cause.message),
): Promise<Kv> {
  return openLevelKv({ folder, name: 'state', onFatal });
}

t.test('the store in memory keeps the contract', (test) =>
  kvContract(test, () => Promise.resolve(new MemoryKv())),
);

t.test('the store on disk keeps the contract', async (test) => {
  const root = test.testdir();
  await kvContract(test, (place) => openAt(join(root, place)));
});

t.test('a store on disk', async (test) => {
  const root = test.testdir();

  await test.test('has its rows again after closing and opening', async (inner) => {
    const folder = join(root, 'reopened');
    const first = await openAt(folder);
    await first.write([{ type: 'put', key: KEY, value: Buffer.from('kept') }]);
    await first.close();
    const second = await openAt(folder);
    inner.equal(Buffer.from(second.get(KEY) ?? []).toString(), 'kept');
    await second.close();
  });

  await test.test('is not made anew when its CURRENT file is lost', async (inner) => {
    const folder = join(root, 'lost-current');
    const kv = await openAt(folder);
    await kv.write([{ type: 'put', key: KEY, value: KEY }]);
    await kv.close();
    const files = readdirSync(join(folder, 'level'));
    rmSync(join(folder, 'level', 'CURRENT'));
    await inner.rejects(openAt(folder), { name: 'LevelKvError', message: /was here before/ });
    inner.same(
      readdirSync(join(folder, 'level')).filter((file) => file.endsWith('.log')),
      files.filter((file) => file.endsWith('.log')),
      'nothing is deleted',
    );
  });

  await test.test(
    'is not made anew over tables whose VERSION and CURRENT are lost',
    async (inner) => {
      const folder = join(root, 'lost-both');
      mkdirSync(join(folder, 'level'), { recursive: true });
      writeFileSync(join(folder, 'level', '000005.ldb'), 'rows');
      await inner.rejects(openAt(folder), { message: /neither CURRENT nor a VERSION/ });
      inner.ok(existsSync(join(folder, 'level', '000005.ldb')));
    },
  );

  await test.test('is not opened as another store, nor twice', async (inner) => {
    const folder = join(root, 'one-purpose');
    const kv = await openAt(folder);
    await inner.rejects(openAt(folder), { message: /another process has it open/ });
    await kv.close();
    const asLog = openLevelKv({ folder, name: 'log', onFatal: () => undefined });
    await inner.rejects(asLog, { message: /expected .*"log"/ });
  });

  await test.test('is of no use after its first failure, and says so once', async (inner) => {
    const folder = join(root, 'failing');
    const failures: Error[] = [];
    const kv = await openAt(folder, (cause) => failures.push(cause));
    // A batch that LevelDB itself refuses stands for a full disk.
    const broken = { type: 'put', key: undefined, value: KEY } as unknown as {
      type: 'put';
      key: Uint8Array;
      value: Uint8Array;
    };
    await inner.rejects(kv.write([broken]));
    await inner.rejects(kv.write([{ type: 'put', key: KEY, value: KEY }]), /failed before/);
    await inner.rejects(kv.write([broken]), /failed before/);
    inner.throws(() => kv.get(KEY), /failed before/);
    inner.equal(failures.length, 1);
    await kv.close();
  });

  await test.test('reports damaged tables instead of opening', async (inner) => {
    const folder = join(root, 'damaged');
    const kv = await openAt(folder);
    await kv.write([{ type: 'put', key: KEY, value: KEY }]);
    await kv.compact({ from: KEY, to: Uint8Array.of(2) });
    await kv.close();
    const table = readdirSync(join(folder, 'level')).find((file) => file.endsWith('.ldb')) ?? '';
    const file = openSync(join(folder, 'level', table), 'r+');
    ftruncateSync(file, 10);
    closeSync(file);
    const failures: Error[] = [];
    const opening = openAt(folder, (cause) => failures.push(cause)).then((opened) => {
      inner.throws(() => opened.get(KEY));
      inner.equal(failures.length, 1);
      return opened.close();
    });
    await opening.catch((error: Error) => inner.equal(error.name, 'LevelKvError'));
  });
});
