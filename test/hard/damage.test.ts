// Every file of a stopped server's data folder, damaged as bad disks and careless people do it. Whatever comes of it:
// the server has all that it had, or it refuses and says what to do; never less in silence.

import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import t from 'tap';
import { messageOf } from '../../cluster/base/message-of.ts';
import { openNode } from '../../src/node/node.ts';
import { openSystemPlatform } from '../../src/platform-node/system-platform.ts';
import { askJson } from './asking.ts';
import { temporaryFolder } from './server-process.ts';
import { settingsOn } from './settings-on.ts';

t.setTimeout(120_000);

const TOKENS = 60;
const PAGE_BYTES = 4096;
const ADVICE = /restore|move|check data_dir|remove|join anew/;

/** How a folder with damage was taken: refused with this text, or opened with these tokens, as text. */
type Taken = { readonly refused: string } | { readonly tokens: string };

/** Opens a node in this process, which the product would end when a store fails. */
async function openOn(dataFolder: string) {
  const settings = settingsOn(dataFolder);
  const platform = {
    ...openSystemPlatform(settings),
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    exitAfterFatal: () => undefined,
  };
  return openNode({ settings, platform, version: 'test' });
}

async function tokensOf(node: Awaited<ReturnType<typeof openOn>>): Promise<string> {
  const port = node.addresses[0]?.port ?? 0;
  return JSON.stringify(await askJson(port, { path: '/v1/acl/tokens' }));
}

async function take(dataFolder: string): Promise<Taken> {
  let node: Awaited<ReturnType<typeof openOn>>;
  try {
    node = await openOn(dataFolder);
  } catch (error) {
    return { refused: messageOf(error) };
  }
  try {
    return { tokens: await tokensOf(node) };
  } catch (error) {
    // The store failed as it was read: the process would have ended with this.
    return { refused: `${(error as Error).message}; restore` };
  } finally {
    await node.close().catch(() => undefined);
  }
}

const DAMAGES = {
  'a flipped bit': (path: string) => {
    const bytes = readFileSync(path);
    const at = bytes.length >> 1;
    bytes[at] = bytes[at]! ^ 0x10;
    writeFileSync(path, bytes);
  },
  'a lost tail': (path: string) => {
    truncateSync(path, readFileSync(path).length >> 1);
  },
  'a page of zeros': (path: string) => {
    const bytes = readFileSync(path);
    const from = Math.max(0, (bytes.length >> 1) - PAGE_BYTES / 2);
    bytes.fill(0, from, Math.min(bytes.length, from + PAGE_BYTES));
    writeFileSync(path, bytes);
  },
} as const;

function* filesIn(folder: string): Iterable<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesIn(path);
    else if (readFileSync(path).length > 0) yield path;
  }
}

t.test('damage: in whatever file, it is harmless or refused with advice', async (t) => {
  const folder = temporaryFolder(t);
  const whole = join(folder, 'whole');
  const first = await openOn(whole);
  const port = first.addresses[0]?.port ?? 0;
  for (let serial = 0; serial < TOKENS; serial += 1) {
    const body = { Description: `token ${serial} ${'x'.repeat(serial * 3)}` };
    await askJson(port, { method: 'PUT', path: '/v1/acl/token', body });
  }
  await first.close();
  // Opened once more, LevelDB has moved what was written into tables.
  const second = await openOn(whole);
  await askJson(second.addresses[0]?.port ?? 0, { method: 'PUT', path: '/v1/acl/token', body: {} });
  const expected = await tokensOf(second);
  await second.close();
  const files = [...filesIn(whole)].map((path) => relative(whole, path));
  t.ok(
    files.some((file) => file.endsWith('.ldb')),
    'there are tables among them',
  );
  for (const file of files) {
    for (const [says, spoil] of Object.entries(DAMAGES)) {
      const copy = join(folder, 'spoilt');
      cpSync(whole, copy, { recursive: true });
      spoil(join(copy, file));
      const taken = await take(copy);
      rmSync(copy, { recursive: true });
      const what = `${says} of ${file}`;
      if ('tokens' in taken) t.equal(taken.tokens, expected, `${what} is harmless`);
      else t.match(taken.refused, ADVICE, `${what} is refused`);
    }
  }
});
