// What an acknowledgement is worth. Real processes are killed under load, told to stop under load,
// started where they must not be, and given files that a bad disk has changed.

import { randomInt } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { messageOf } from '../../cluster/base/message-of.ts';
import { openNode } from '../../src/node/node.ts';
import { openSystemPlatform } from '../../src/platform-node/system-platform.ts';
import { certify, makeAuthority } from '../support/certificates.ts';
import { until } from '../support/running/running-group.ts';
import { ask, askJson, stateOf } from './asking.ts';
import { CrashLoad, randomFrom } from './crash-load.ts';
import { startAndKill, startRefused, startServer, temporaryFolder } from './server-process.ts';
import { settingsOn } from './settings-on.ts';

const ROUNDS = 3;

t.test('crash: what was acknowledged survives, what was not is whole or absent', async (t) => {
  const seed = Number(process.env.HARD_SEED ?? randomInt(2 ** 31));
  t.comment(`seed ${seed}; again with HARD_SEED=${seed}`);
  const random = randomFrom(seed);
  const dataFolder = join(temporaryFolder(t), 'data');
  const load = new CrashLoad(random);
  let server = await startServer(t, { dataFolder });
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = load.acknowledgedCount;
    const running = load.run(server.port);
    await until('a write is acknowledged', () => load.acknowledgedCount > before);
    await new Promise((resolve) => setTimeout(resolve, random() * 400));
    await server.end('SIGKILL');
    await running;
    t.ok(load.acknowledgedCount > before, `${load.acknowledgedCount - before} acknowledged`);
    // Some servers do not even live to see the end of their start.
    await startAndKill(t, { dataFolder }, random() * 600);
    server = await startServer(t, { dataFolder });
    t.same(await load.faults(server.port), [], `round ${round}`);
    t.same(await load.retryFaults(server.port), [], `round ${round}, asked again`);
  }

  const running = load.run(server.port);
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.same(await server.end('SIGTERM'), { code: 0, signal: null }, 'stops under load with status 0');
  await running;
  server = await startServer(t, { dataFolder });
  t.same(await load.faults(server.port), [], 'after a stop under load');
  t.same(await load.retryFaults(server.port), []);
  const state = await stateOf(server.port);
  t.same(await server.end('SIGINT'), { code: 0, signal: null });
  server = await startServer(t, { dataFolder });
  t.equal(await stateOf(server.port), state, 'a restart changes neither index nor digests');
  await server.end('SIGKILL');
  server = await startServer(t, { dataFolder });
  t.equal(await stateOf(server.port), state);
  await server.end('SIGTERM');
});

t.test('start: a server that cannot run says why and what to do', async (t) => {
  const folder = temporaryFolder(t);
  const running = await startServer(t, { dataFolder: join(folder, 'data') });
  const locked = await startRefused(t, { dataFolder: join(folder, 'data') });
  t.equal(locked.ending.code, 1);
  t.match(locked.output, 'another process has it open');
  t.match(locked.output, join(folder, 'data'));
  const taken = await startRefused(t, {
    dataFolder: join(folder, 'other'),
    flags: { 'ports-http': String(running.port) },
  });
  t.equal(taken.ending.code, 1);
  t.match(taken.output, `127.0.0.1:${running.port}`);
  t.match(taken.output, 'Next: choose another port');
  const { key, cert } = certify(makeAuthority('here'), 'server');
  writeFileSync(join(folder, 'key'), key);
  writeFileSync(join(folder, 'cert'), cert);
  const secure = await startRefused(t, {
    dataFolder: join(folder, 'other'),
    flags: {
      'ports-https': String(running.port),
      'tls-key-file': join(folder, 'key'),
      'tls-cert-file': join(folder, 'cert'),
    },
  });
  t.match(secure.output, 'Next: choose another port with --ports-https');
  t.equal((await ask(running.port, { path: '/livez' })).status, 200, 'the first one is unharmed');
  await running.end('SIGTERM');

  writeFileSync(join(folder, 'file'), '');
  const inTheWay = await startRefused(t, { dataFolder: join(folder, 'file') });
  t.equal(inTheWay.ending.code, 1);
  t.match(inTheWay.output, join(folder, 'file'));
  t.match(inTheWay.output, 'Next: ');
  if (process.getuid?.() === 0) return;
  mkdirSync(join(folder, 'closed'), { mode: 0o500 });
  const closed = await startRefused(t, { dataFolder: join(folder, 'closed') });
  t.equal(closed.ending.code, 1);
  t.match(closed.output, join(folder, 'closed'));
  t.match(closed.output, 'Next: choose a folder');
  chmodSync(join(folder, 'closed'), 0o700);
});

t.test('start: a server whose ACLs are off says that it asks nobody for a token', async (t) => {
  const dataFolder = join(temporaryFolder(t), 'data');
  const server = await startServer(t, { dataFolder, flags: { 'acl-enabled': 'false' } });
  await until('it says what comes next', () => server.output().includes('Next'));
  t.match(server.output(), '  acl         off (nobody is asked for a token)');
  t.match(server.output(), '"msg":"acl.enabled is false: whoever asks may save the state');
  t.match(server.output(), 'Next, before anybody relies on it: set acl.enabled to true');
  t.notMatch(server.output(), 'acl bootstrap');
  await server.end('SIGTERM');
});

/** How a folder with damage was taken: refused with this text, or opened with so many tokens. */
type Taken = { readonly refused: string } | { readonly tokens: number };

/** Opens a node in this process, which the product would end when a store fails. */
async function openOn(dataFolder: string) {
  const settings = settingsOn(dataFolder);
  const platform = { ...openSystemPlatform(settings), exitAfterFatal: () => undefined };
  return openNode({ settings, platform, version: 'test' });
}

/** The newest write-ahead log of a store. */
function walOf(dataFolder: string, store: string): string {
  const level = join(dataFolder, store, 'level');
  const files = readdirSync(level).filter((file) => file.endsWith('.log'));
  return join(level, String(files.sort().at(-1)));
}

function sizeOf(path: string): number {
  return statSync(path).size;
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = bytes[at]! ^ 0x10;
  writeFileSync(path, bytes);
}

async function take(dataFolder: string): Promise<Taken> {
  try {
    const node = await openOn(dataFolder);
    const port = node.addresses[0]?.port ?? 0;
    const tokens = await askJson<unknown[]>(port, { path: '/v1/acl/tokens' });
    await node.close();
    return { tokens: tokens.length };
  } catch (error) {
    return { refused: messageOf(error) };
  }
}

t.test(
  'damage: a changed file is harmless or refused, and never loses writes in silence',
  async (t) => {
    const folder = temporaryFolder(t);
    const whole = join(folder, 'whole');
    const node = await openOn(whole);
    const port = node.addresses[0]?.port ?? 0;
    for (let serial = 0; serial < 200; serial += 1) {
      await askJson(port, {
        method: 'PUT',
        path: '/v1/acl/token',
        body: { Description: `t${serial}` },
      });
    }
    await node.close();
    // What comes after the crash of a machine is the tail of a log, so this is what must not be refused.
    const expected = await take(copyOf('intact'));
    t.same(expected, { tokens: 202 });

    function copyOf(name: string): string {
      const copy = join(folder, name);
      cpSync(whole, copy, { recursive: true });
      return copy;
    }

    let refusals = 0;
    const damage = async (says: string, store: string, spoil: (wal: string) => void) => {
      const copy = copyOf('spoilt');
      const level = join(copy, store, 'level');
      const wal = readdirSync(level)
        .filter((file) => file.endsWith('.log'))
        .sort()
        .at(-1);
      spoil(join(level, String(wal)));
      const taken = await take(copy);
      rmSync(copy, { recursive: true });
      if ('tokens' in taken) t.same(taken, expected, `${says} of ${store} is harmless`);
      else t.match(taken.refused, /restore|move/, `${says} of ${store} is refused with advice`);
      if ('refused' in taken) refusals += 1;
    };
    for (const store of ['log', 'state']) {
      for (let part = 0; part < 8; part += 1) {
        await damage(`a flipped bit in part ${part}`, store, (wal) => {
          flip(wal, Math.floor((sizeOf(wal) * (part + 0.5)) / 8));
        });
      }
      for (const share of [0, 0.3, 0.99]) {
        await damage(`an end at ${share}`, store, (wal) => {
          truncateSync(wal, Math.floor(sizeOf(wal) * share));
        });
      }
      await damage('a sector of zeros', store, (wal) => {
        const bytes = readFileSync(wal);
        bytes.fill(0, bytes.length >> 1, (bytes.length >> 1) + 512);
        writeFileSync(wal, bytes);
      });
      for (const file of ['CURRENT', 'VERSION']) {
        await damage(`a lost ${file}`, store, (wal) => {
          const parts = file === 'CURRENT' ? [wal, '..', file] : [wal, '..', '..', file];
          rmSync(join(...parts));
        });
      }
    }
    t.ok(refusals > 15, `${refusals} refusals`);
  },
);

t.test(
  'damage: half a batch at the end, as a power cut leaves it, is no reason to refuse',
  async (t) => {
    const folder = temporaryFolder(t);
    const whole = join(folder, 'whole');
    const node = await openOn(whole);
    const port = node.addresses[0]?.port ?? 0;
    const create = (Description: string) =>
      askJson(port, { method: 'PUT', path: '/v1/acl/token', body: { Description } });
    await create('small');
    const lastBatchAt = { log: sizeOf(walOf(whole, 'log')), state: sizeOf(walOf(whole, 'state')) };
    // Large enough for several fragments, of which all but the first one stay readable.
    await create('x'.repeat(200_000));
    await node.close();

    const torn = async (...stores: readonly ('log' | 'state')[]) => {
      const copy = join(folder, stores.join());
      cpSync(whole, copy, { recursive: true });
      for (const store of stores) flip(walOf(copy, store), lastBatchAt[store] + 100);
      return take(copy);
    };
    t.same(await torn('state'), { tokens: 4 }, 'what the state lost comes from the log');
    t.same(
      await torn('log', 'state'),
      { tokens: 3 },
      'a batch that no store has was never told of',
    );
    t.match(await torn('log'), { refused: /quarantined/ }, 'a log that lost what the state has');
  },
);
