// The documents keep their word: the tour of the README is walked as a person would walk it, against
// the program as it is started from a shell, and what it prints must be what the README shows. What
// the other documents list (settings, figures, endpoints, numbers on disk) is all that there is.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import t from 'tap';
import { endWithProcess } from '../../scripts/exit-at-signals.ts';
import type { Endpoint } from '../../src/api/endpoints/endpoint.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import {
  OPERATOR_ENDPOINTS,
  SNAPSHOT_ENDPOINTS,
} from '../../src/api/endpoints/endpoints-operator.ts';
import { ENDPOINT_BY_OPERATION } from '../../src/http/routes/operation-types.ts';
import {
  flagOf,
  SETTING_KEYS,
  type SettingKey,
  takesText,
} from '../../src/node/settings/settings-keys.ts';
import { CHANGE_NUMBER } from '../../src/state/commands/command-codec.ts';
import { ROW } from '../../src/state/rows/tables.ts';
import { Client, runNode } from '../support/running/running-node.ts';
import { endClusterWithProcess } from './cluster-folder.ts';

/** What was compiled lies one folder below the root of the project. */
const BUILT = join(import.meta.dirname, '..', '..');
const ROOT_FOLDER = join(BUILT, '..');
const MAIN = join(BUILT, 'src', 'main.js');
const CLUSTER_MAIN = join(BUILT, 'scripts', 'cluster', 'main.js');
const ELLIPSIS = '…';
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const START_MS = 60_000;

/** The second tour begins here. */
const CLUSTER_HEADING = '## Two datacenters\n';

interface Step {
  readonly command: string;
  readonly shown: readonly string[];
}

function documentText(name: string): string {
  return readFileSync(join(ROOT_FOLDER, name), 'utf8');
}

/** The fenced blocks of a text with this word behind the fence. */
function blocksOf(text: string, word: string): readonly string[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, found]) => found === word)
    .map(([, , content = '']) => content);
}

/** A command goes on in the next line after a backslash; what follows it is what it prints. */
function stepsOf(block: string): readonly Step[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [, command = '', shown = ''] = /^((?:.*\\\n)*.*\n)([\s\S]*)$/.exec(part) ?? [];
      return { command: command.trim(), shown: shown === '' ? [] : shown.trimEnd().split('\n') };
    });
}

/** The ids, secrets and addresses of the README, by those that stand for them in this run. */
class Names {
  readonly #actualByShown: Map<string, string>;

  constructor(actualByShown: Readonly<Record<string, string>>) {
    this.#actualByShown = new Map(Object.entries(actualByShown));
  }

  translated(text: string): string {
    let result = text;
    for (const [shown, actual] of this.#actualByShown) result = result.replaceAll(shown, actual);
    return result;
  }

  /** Whether the line is what is shown; ids that are shown for the first time are learned. */
  fits(shown: string, actual: string): boolean {
    const translated = this.translated(shown);
    const fresh = (shown.match(UUID) ?? []).filter((id) => !this.#actualByShown.has(id));
    const pattern = fresh.reduce(
      (text, id) => text.replace(id, `(${UUID.source})`),
      translated.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
    );
    const found = new RegExp(`^${pattern}$`).exec(actual);
    if (found === null) return false;
    fresh.forEach((id, place) => {
      this.#actualByShown.set(id, found[place + 1] ?? '');
    });
    return true;
  }

  /** The first line that is not as shown, or undefined. An ellipsis stands for any lines. */
  difference(shown: readonly string[], actual: readonly string[]): string | undefined {
    let place = 0;
    for (const [index, line] of shown.entries()) {
      if (line === ELLIPSIS) continue;
      const maySkip = shown[index - 1] === ELLIPSIS;
      while (maySkip && place < actual.length && !this.fits(line, actual[place] ?? '')) place += 1;
      if (!this.fits(line, actual[place] ?? '')) {
        return `shown ${JSON.stringify(line)}, printed ${JSON.stringify(actual[place])}`;
      }
      place += 1;
    }
    const isWhole = shown.at(-1) === ELLIPSIS || place === actual.length;
    return isWhole ? undefined : `printed and not shown: ${JSON.stringify(actual[place])}`;
  }
}

interface Ended {
  readonly status: number | null;
  readonly out: string;
}

/** `npx conclave` and `npm run cluster --`, as they were built here. */
const BUILT_HERE = `
npx() { shift; "$NODE" "$MAIN" "$@"; }
npm() { shift 3; "$NODE" "$CLUSTER_MAIN" --dir "$CLUSTER_FOLDER" "$@"; }`;

/** Runs a line in a shell that knows these two. */
function runInShell(line: string, environment: Readonly<Record<string, string>>): Promise<Ended> {
  const child = spawn('sh', ['-c', `${BUILT_HERE}\n${line}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, NODE: process.execPath, MAIN, CLUSTER_MAIN, ...environment },
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    out += piece;
  });
  return new Promise((resolve) => {
    child.once('close', (status) => resolve({ status, out }));
  });
}

interface Server {
  readonly banner: readonly string[];
  readonly url: string;
  readonly clusterAddress: string;
  stop(): Promise<number | null>;
}

/** Resolves when the server has printed what to type next. */
function startServer(dataFolder: string): Promise<Server> {
  const flags = [
    '--data-dir',
    dataFolder,
    '--node-name',
    'vm',
    '--ports-http',
    '0',
    '--ports-cluster',
    '0',
  ];
  const child: ChildProcess = spawn(process.execPath, [MAIN, 'agent', ...flags], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH },
  });
  endWithProcess(child);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let out = '';
  return new Promise((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
      out += piece;
      const url = /listening +(\S+)\n/.exec(out)?.[1];
      const clusterAddress = /cluster +(\S+)\n/.exec(out)?.[1];
      if (url === undefined || clusterAddress === undefined || !out.endsWith('\n\n')) return;
      const stop = (): Promise<number | null> => {
        child.kill('SIGINT');
        return ended;
      };
      resolve({ banner: out.trimEnd().split('\n'), url, clusterAddress, stop });
    });
    child.once('close', (status) => reject(new Error(`the server ended with ${status}: ${out}`)));
    setTimeout(() => reject(new Error(`the server is not ready: ${out}`)), START_MS).unref();
  });
}

t.test('README: its tour can be walked, and prints what it shows', async (t) => {
  const [readme = ''] = documentText('README.md').split(CLUSTER_HEADING);
  const folder = mkdtempSync(join(tmpdir(), 'conclave-tour-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const [shownBanner = ''] = blocksOf(readme, '');
  const [, ...blocks] = blocksOf(readme, 'console');
  const steps = blocks.flatMap(stepsOf);
  t.ok(steps.length >= 8, 'the tour is found');

  const server = await startServer(folder);
  const names = new Names({
    '/home/you/conclave/data': folder,
    'http://127.0.0.1:8500': server.url,
    '127.0.0.1:8300': server.clusterAddress,
    // At another address than the usual one, the next thing to type begins with it.
    '  npx': `  CONCLAVE_HTTP_ADDR=${server.url} npx`,
  });
  t.equal(names.difference(shownBanner.trimEnd().split('\n'), server.banner), undefined, 'banner');

  const environment = { CONCLAVE_HTTP_ADDR: server.url };
  const hasCurl = (await runInShell('curl --version', environment)).status === 0;
  let exports = '';
  for (const { command, shown } of steps) {
    if (command.startsWith('curl ') && !hasCurl) {
      t.comment(`there is no curl here: ${command}`);
      continue;
    }
    if (command.startsWith('export ')) exports += `${names.translated(command)}\n`;
    const { status, out } = await runInShell(exports + names.translated(command), environment);
    t.equal(status, 0, command);
    const lines = out === '' ? [] : out.trimEnd().split('\n');
    t.equal(names.difference(shown, lines), undefined, `${command}: what it prints`);
  }

  t.equal(await server.stop(), 0, 'Ctrl-C ends the server with status 0');
  const again = await startServer(folder);
  const own = { CONCLAVE_HTTP_ADDR: again.url };
  const read = await runInShell(`${exports}npx conclave acl policy read --name web-read`, own);
  t.match(read.out, /^Name: +web-read$/m, 'the data is still there');
  await again.stop();
});

t.test('README: its tour of two datacenters can be walked, and prints what it shows', async (t) => {
  const [, section = ''] = documentText('README.md').split(CLUSTER_HEADING);
  const steps = blocksOf(section, 'console').flatMap(stepsOf);
  t.ok(steps.length >= 12, 'the tour is found');
  const folder = mkdtempSync(join(tmpdir(), 'conclave-tour-'));
  const names = new Names({ './.cluster': folder });
  const environment = { CLUSTER_FOLDER: folder };
  endClusterWithProcess(folder);
  t.teardown(async () => {
    await runInShell('npm run cluster -- down 2>/dev/null', environment);
    rmSync(folder, { recursive: true, force: true });
  });
  let exports = '';
  for (const { command, shown } of steps) {
    const line = names.translated(command);
    if (/^export |^at\(\)/.test(command)) exports += `${line}\n`;
    const difference = async (): Promise<string | undefined> => {
      const { status, out } = await runInShell(exports + line, environment);
      const lines = out === '' ? [] : out.trimEnd().split('\n');
      return status === 0 ? names.difference(shown, lines) : `status ${status}: ${out}`;
    };
    let found = await difference();
    // What is on its way from the other datacenter takes a moment.
    const deadlineMs = Date.now() + START_MS;
    while (found !== undefined && command.includes(' read ') && Date.now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      found = await difference();
    }
    t.equal(found, undefined, command);
  }
});

t.test(
  'README: npx can start the program',
  { skip: basename(BUILT) === 'dist' ? false : 'this build is not the one that npx starts' },
  async (t) => {
    const { bin } = JSON.parse(documentText('package.json')) as { bin: { conclave: string } };
    t.equal(join(ROOT_FOLDER, bin.conclave), MAIN);
    t.ok(statSync(MAIN).mode & 0o100, 'it is executable after every build');
  },
);

/** The cells of the tables below a heading, without the backquotes around code. */
function tableBelow(document: string, heading: string): readonly (readonly string[])[] {
  const [, section = ''] = document.split(`\n${heading}\n`);
  const [own = ''] = section.split(/^#/m);
  return own
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.slice(1, -1).split('|'))
    .map((cells) => cells.map((cell) => cell.trim().replace(/^`([^`]*)`$/, '$1')))
    .slice(2);
}

t.test('OPERATING: the table of settings is the one that the server reads by', async (t) => {
  const rows = tableBelow(documentText('docs/OPERATING.md'), '## Settings');
  const wanted = SETTING_KEYS.map((key: SettingKey) => [
    key.name,
    takesText(key.type),
    String(key.default),
    key.says.replaceAll('|', '\\|'),
  ]);
  t.same(rows, wanted);
  t.equal(new Set(SETTING_KEYS.map(({ name }) => flagOf(name))).size, rows.length);
});

interface Figures {
  readonly Gauges: readonly { readonly Name: string }[];
  readonly Counters: readonly { readonly Name: string }[];
  readonly Samples: readonly { readonly Name: string }[];
}

t.test('OPERATING: every figure that a server shows is explained, and no other', async (t) => {
  const client = new Client(await runNode(t), 'X-Service-');
  await client.get('/status/leader');
  const { Gauges, Counters, Samples } = (await client.get('/agent/metrics'))
    .json as unknown as Figures;
  const shown = [...Gauges, ...Counters, ...Samples].map(({ Name }) => Name);
  const rows = tableBelow(documentText('docs/OPERATING.md'), '## Metrics');
  // Of what not every server has; `system/https` and `system/audit` ask those that do.
  shown.push('conclave.tls.certificate_seconds_left');
  shown.push(...['records', 'lost', 'failing'].map((name) => `conclave.audit.${name}`));
  t.same(rows.map(([name]) => name).sort(), [...new Set(shown)].sort());
});

t.test('HTTP: every endpoint is listed with its method and its right, and no other', async (t) => {
  const rows = tableBelow(documentText('docs/HTTP.md'), '## Endpoints');
  const all: readonly Endpoint[] = [
    ...Object.values<Endpoint>(ENDPOINT_BY_OPERATION),
    ...Object.values<Endpoint>(NODE_ENDPOINTS),
    ...Object.values<Endpoint>(OPERATOR_ENDPOINTS),
    ...Object.values<Endpoint>(SNAPSHOT_ENDPOINTS),
  ];
  const wanted = all.map(({ method, path, access }) => `${method} ${path} ${access}`);
  const found = rows.map(([method, path, access]) => `${method} ${path} ${access}`);
  t.same([...found].sort(), [...wanted].sort());
});

interface Registry {
  readonly 'cluster/log/log-entry.ts': { readonly ROW: Readonly<Record<string, string>> };
}

t.test('DATA: rows and commands are listed with their numbers, and no other', async (t) => {
  const data = documentText('docs/DATA.md');
  const registry = JSON.parse(documentText('scripts/registry.json')) as Registry;
  const rowsOfLog = Object.entries(registry['cluster/log/log-entry.ts'].ROW);
  const listed = (heading: string): object =>
    Object.fromEntries(
      tableBelow(data, heading).map(([number, name]) => [name ?? '', Number(number)]),
    );
  t.same(
    listed('### Rows of the log'),
    Object.fromEntries(rowsOfLog.map(([number, name]) => [name, Number(number)])),
  );
  t.same(listed('### Rows of the state'), ROW);
  t.same(listed('### Commands'), CHANGE_NUMBER);
});
