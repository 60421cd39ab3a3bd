// Every command that docs/OPERATING.md shows is run as it stands there, but for addresses, ids and folders: on the
// local cluster that the page tells how to start. What cannot be run here is at least read by the program.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { ClusterDescription } from '../../scripts/cluster/cluster-files.ts';
import type { ClusterPlan } from '../../scripts/cluster/cluster-plan.ts';
import { readSettings } from '../../src/node/settings/settings.ts';
import { temporaryFolder } from '../hard/server-process.ts';
import { endClusterWithProcess } from './cluster-folder.ts';

t.setTimeout(300_000);

/** What was compiled lies one folder below the root of the project. */
const BUILT = join(import.meta.dirname, '..', '..');
const PAGE = readFileSync(join(BUILT, '..', 'docs', 'OPERATING.md'), 'utf8');
const CONCLAVE = join(BUILT, 'src', 'main.js');
const CLUSTER = join(BUILT, 'scripts', 'cluster', 'main.js');
/** Those of the page, for the server that shall lead and for the one that is removed. */
const LEADS_NEXT = '5e26a3af-f4fc-4104-a8bb-4da9f19cb278';
const REMOVED = '10b71f14-4b08-4ae5-840c-f86d39e7d330';

const commands = [...PAGE.matchAll(/^\$ (.*)$/gm)].map(([, command]) => command!);
const clusterCommands = commands.filter((command) => command.startsWith('npm run cluster -- '));
const starts = commands.filter((command) => /^(?:npm start|node) /.test(command));
const others = commands.filter(
  (command) => !clusterCommands.includes(command) && !starts.includes(command),
);

interface Ended {
  readonly status: number | null;
  readonly out: string;
}

/** Runs a line in a shell in which the words of the page stand for what was built here. */
function run(line: string, environment: Readonly<Record<string, string>>): Promise<Ended> {
  const words =
    'npx() { shift; "$NODE" "$CONCLAVE" "$@"; }; cluster() { "$NODE" "$CLUSTER" --dir "$FOLDER" "$@"; }';
  const child = spawn('sh', ['-c', `${words}\n${line}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, NODE: process.execPath, CONCLAVE, CLUSTER, ...environment },
  });
  let out = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (piece: string) => {
      out += piece;
    });
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, out })));
}

t.test('OPERATING: the commands that it shows do what they say', async (t) => {
  const root = temporaryFolder(t);
  const folder = join(root, 'cluster');
  const environment: Record<string, string> = { FOLDER: folder };
  endClusterWithProcess(folder);
  t.teardown(async () => {
    if (existsSync(join(folder, 'plan.json'))) await run('cluster down', environment);
  });
  const good = async (line: string): Promise<string> => {
    const { status, out } = await run(line, environment);
    t.equal(status, 0, `${line}\n${out}`);
    return out;
  };
  t.match(clusterCommands[0], / up /);
  t.match(clusterCommands.at(-1), / down$/);
  for (const command of clusterCommands.slice(0, -1))
    await good(command.replace('npm run cluster --', 'cluster'));

  const { nodes, management_token } = JSON.parse(
    readFileSync(join(folder, 'cluster.json'), 'utf8'),
  ) as ClusterDescription;
  const idOf = (place: number): string =>
    readFileSync(join(nodes[place]!.data_dir, 'node-id'), 'utf8').trim();
  environment.CONCLAVE_TOKEN = management_token;
  environment.CONCLAVE_HTTP_ADDR = `http://${nodes[0]!.http}`;
  const here = (command: string): string =>
    command
      .replaceAll('/root/', `${root}/`)
      .replaceAll('/backup/', `${root}/`)
      .replace('2026-11-21', '$(date +%F)')
      .replace(LEADS_NEXT, idOf(0))
      .replace(REMOVED, idOf(2))
      .replace('http://127.0.0.1:8501', environment.CONCLAVE_HTTP_ADDR!);
  t.ok(others.length >= 12, 'the commands are found');
  for (const command of others) await good(here(command));

  const kept = await good('npx conclave acl token create --description kept');
  await good('cluster down --keep');
  const path = join(folder, 'plan.json');
  const plan = JSON.parse(readFileSync(path, 'utf8')) as ClusterPlan;
  const gone = plan.nodes[2]!.name;
  const clusterKey = (await good('npx conclave keygen')).trim();
  const left = plan.nodes.filter(({ name }) => name !== gone);
  writeFileSync(path, JSON.stringify({ ...plan, clusterKey, nodes: left }));
  await good('cluster up');
  const [, accessor = ''] = /AccessorID: +(\S+)/.exec(kept) ?? [];
  t.match(await good(`npx conclave acl token read ${accessor}`), 'kept', 'with another key');
  await good('cluster down');
});

t.test('OPERATING: the flags with which it starts servers are known', async (t) => {
  t.equal(starts.length, 7);
  for (const command of starts) {
    const flags = [...command.matchAll(/ --(?!max-semi|config-file)([a-z-]+) (\S+)/g)];
    const read = (): unknown =>
      readSettings({
        flags: Object.fromEntries(flags.map(([, name, value]) => [name!, value!])),
        files: [],
        environment: {},
      });
    t.doesNotThrow(read, command);
  }
});
