// A database with more tables than are read on the spot: threads read them, and none is left out.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { Kv } from '../../cluster/platform/kv.ts';
import { openLevelKv } from '../../src/platform-node/level-kv.ts';

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

const folder = mkdtempSync(join(tmpdir(), 'conclave-tables-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

function open(): Promise<Kv> {
  const failed = (cause: Error): void => void t.fail(`the store failed: ${cause.message}`);
  return openLevelKv({ folder, name: 'state', onFatal: failed, tuning: TUNING });
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
      const bytes = readFileSync(table);
      const spoilt = Buffer.from(bytes);
      const at = spoilt.length >> 1;
      spoilt[at] = spoilt[at]! ^ 1;
      writeFileSync(table, spoilt);
      await t.rejects(open(), { message: new RegExp(`${table} is damaged at byte`) });
      writeFileSync(table, bytes);
    }
    const kv = await open();
    t.ok(
      Buffer.from(rowOf(1)).equals(kv.get(Uint8Array.of(1)) ?? Buffer.of()),
      'whole tables are served',
    );
    await kv.close();
  },
);
