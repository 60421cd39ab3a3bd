// A database with more tables than are read on the spot: threads read them, and none is left out.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { Kv } from '../../cluster/platform/kv.ts';
import { databaseFolder, levelFolder } from '../../src/platform-node/disk/files.ts';
import { openLevelKv } from '../../src/platform-node/disk/level-kv.ts';
import { TableChecks } from '../../src/platform-node/disk/table-checks.ts';
import { damagedTables } from '../../src/platform-node/disk/table-files.ts';

t.setTimeout(300_000);

const ROWS = 20;
const ROW_BYTES = 1024 * 1024;
const TUNING = {
  cacheBytes: 1024 * 1024,
  writeBufferBytes: 1024 * 1024,
  blockBytes: 4096,
  tableBytes: 4 * 1024 * 1024,
  isCompressed: false,
};

const dataFolder = mkdtempSync(join(tmpdir(), 'conclave-tables-'));
const folder = databaseFolder(dataFolder, 'state', 0);
t.teardown(() => rmSync(dataFolder, { recursive: true, force: true }));

function open(tableChecks = new TableChecks()): Promise<Kv> {
  const failed = (cause: Error): void => void t.fail(`the store failed: ${cause.message}`);
  return openLevelKv({ folder, name: 'state', onFatal: failed, tableChecks, tuning: TUNING });
}

/** Flips one bit in the middle; gives what puts it right. */
function spoil(table: string): () => void {
  const bytes = readFileSync(table);
  const spoilt = Buffer.from(bytes);
  const at = spoilt.length >> 1;
  spoilt[at] = spoilt[at]! ^ 1;
  writeFileSync(table, spoilt);
  return () => writeFileSync(table, bytes);
}

/** The same bytes every time, which hold no pattern that could be damaged unnoticed. */
function rowOf(serial: number): Uint8Array {
  const row = new Uint32Array(ROW_BYTES / 4);
  for (let at = 0; at < row.length; at += 1)
    row[at] = Math.imul(at + serial * row.length, 2654435761);
  return new Uint8Array(row.buffer);
}

async function tablesWritten(): Promise<readonly string[]> {
  const kv = await open();
  for (let serial = 0; serial < ROWS; serial += 1) {
    await kv.write([{ type: 'put', key: Uint8Array.of(serial), value: rowOf(serial) }]);
  }
  await kv.close();
  // Opened once more, what was written last is in a table too.
  await (await open()).close();
  const location = join(folder, 'level');
  return readdirSync(location)
    .filter((file) => file.endsWith('.ldb'))
    .map((file) => join(location, file));
}

t.test(
  'table check: a flipped bit is found at the start, whichever thread has the table',
  async (t) => {
    const tables = await tablesWritten();
    t.ok(tables.length > 4, 'each thread has several');
    for (const table of [...tables.slice(0, 4), ...tables.slice(-1)]) {
      const repair = spoil(table);
      await t.rejects(open(), { message: new RegExp(`${table} is damaged at byte`) });
      repair();
    }
    const kv = await open();
    t.ok(
      Buffer.from(rowOf(1)).equals(kv.get(Uint8Array.of(1)) ?? Buffer.of()),
      'whole tables are served',
    );
    await kv.close();
  },
);

t.test(
  'table check: no byte of a table is left out, of the filter of its keys neither',
  async (t) => {
    const small = databaseFolder(dataFolder, 'small', 0);
    const options = { folder: small, name: 'small', onFatal: () => t.fail(), tuning: TUNING };
    const openSmall = () => openLevelKv({ ...options, tableChecks: new TableChecks() });
    const kv = await openSmall();
    const keys = Array.from({ length: 64 }, (_, serial) => Uint8Array.of(serial));
    for (const key of keys) await kv.write([{ type: 'put', key, value: key }]);
    await kv.close();
    await (await openSmall()).close();
    const location = levelFolder(small);
    const [file = ''] = readdirSync(location).filter((each) => each.endsWith('.ldb'));
    const bytes = readFileSync(join(location, file));
    t.ok(
      bytes.includes('filter.'),
      'where it says that a key is not there, nobody looks any further',
    );
    const found = (spoilt: Uint8Array): boolean => {
      writeFileSync(join(location, file), spoilt);
      return damagedTables(location, [file]).length > 0;
    };
    const passed = [...bytes.keys()].filter((at) => {
      const isFooter = at >= bytes.length - 48;
      return (
        !isFooter &&
        !found(Uint8Array.from(bytes, (byte, place) => (place === at ? byte ^ 1 : byte)))
      );
    });
    t.same(passed, [], 'bytes whose damage is not seen');
    t.notOk(found(bytes));
    rmSync(small, { recursive: true });
  },
);

t.test('table checks: begun before the opening, they are the ones that it waits for', async (t) => {
  const location = levelFolder(folder);
  const tables = readdirSync(location).filter((file) => file.endsWith('.ldb'));
  const repair = spoil(join(location, tables[0]!));
  const checks = new TableChecks();
  checks.begin(dataFolder, ['log', 'state']);
  await t.rejects(open(checks), { message: /is damaged at byte/ });
  repair();
  await (await open(checks)).close();
  t.pass('each is good for one opening');

  const later = new TableChecks();
  later.begin(dataFolder, ['state']);
  const begun = later.take(location);
  const repairAgain = spoil(join(location, tables[0]!));
  await begun.damage();
  await t.rejects(open(later), { message: /is damaged at byte/ }, 'the second looks anew');
  repairAgain();
});

t.test('table checks: every generation is read, and a missing folder is none', async (t) => {
  const other = databaseFolder(dataFolder, 'state', 3);
  cpSync(folder, other, { recursive: true });
  const [table] = readdirSync(levelFolder(other)).filter((file) => file.endsWith('.ldb'));
  const checks = new TableChecks();
  spoil(join(levelFolder(other), table!));
  checks.begin(dataFolder, ['log', 'state']);
  const damage = await checks.take(levelFolder(other)).damage();
  t.equal(damage?.file, table);
  t.equal(await checks.take(levelFolder(folder)).damage(), undefined);
  checks.begin(join(dataFolder, 'nowhere'), ['state']);
});
