// The commands of the local cluster: what a person types, and what is printed.

import { randomBytes, randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { type ClusterDescription, ClusterFiles } from './cluster-files.ts';
import {
  type ClusterPlan,
  type ClusterShape,
  DATACENTERS_MAX,
  datacentersOf,
  nodesNamed,
  PORTS_OF_A_NODE,
  planCluster,
  SERVERS_MAX,
} from './cluster-plan.ts';
import { ClusterRefusal } from './cluster-refusal.ts';
import { freePorts } from './free-ports.ts';
import type { Between } from './local-cluster.ts';
import { showLogs } from './show-logs.ts';
import { statusText } from './status-table.ts';
import { type ClusterState, hasServers, type Order } from './supervisor/orders.ts';
import { SupervisorClient } from './supervisor/supervisor-client.ts';

const DATACENTERS = 2;
const SERVERS = 3;
const DELAY_MAX_MS = 10_000;
const CLUSTER_KEY_BYTES = 32;
const WATCH_MS = 1_000;
const CLEAR_SCREEN = '\x1b[H\x1b[2J';

const FAULTS = [
  {
    kind: 'kill',
    says: 'end a server, or all of a datacenter, at once (SIGKILL)',
    done: 'is killed; `restart` brings it back',
  },
  {
    kind: 'pause',
    says: 'hold it still: it answers nothing',
    done: 'stands still; `resume` lets it go on',
  },
  { kind: 'resume', says: 'let it go on', done: 'goes on' },
] as const;

export function addClusterCommands(program: Command): void {
  addLife(program);
  addLooks(program);
  addFaults(program);
  addLines(program);
  addMembers(program);
}

interface UpOptions {
  readonly datacenters?: number;
  readonly servers?: number;
  readonly wanDelay?: number;
}

function addLife(program: Command): void {
  program
    .command('up')
    .description('start a cluster, or what does not run of the one that is there')
    .option('--datacenters <n>', `how many (default ${DATACENTERS})`, counted(1, DATACENTERS_MAX))
    .option('--servers <n>', `of each datacenter (default ${SERVERS})`, counted(1, SERVERS_MAX))
    .option('--wan-delay <ms>', 'from one datacenter to another', counted(0, DELAY_MAX_MS))
    .action(async (options: UpOptions) => await up(filesOf(program), options));
  program
    .command('down')
    .description('end all servers and remove their data')
    .option('--keep', 'keep the data: `up` goes on with it')
    .action(async ({ keep }: { readonly keep?: true }) => await down(filesOf(program), keep));
}

function addLooks(program: Command): void {
  program
    .command('status')
    .description('what runs, who leads, how far each server is')
    .option('--watch', 'again and again, until Ctrl-C')
    .action(async ({ watch }: { readonly watch?: true }) => await status(filesOf(program), watch));
  program
    .command('logs [node]')
    .description('the last lines of the log of one server, or of all')
    .option('-f, --follow', 'and what is added, until Ctrl-C')
    .action(async (name: string | undefined, { follow }: { readonly follow?: true }) => {
      const { cluster } = await ordered(program, { kind: 'state' });
      const nodes = cluster.nodes.filter((node) => name === undefined || node.name === name);
      if (nodes.length === 0) throw noSuchNode(cluster, name ?? '');
      const write = (text: string): boolean => {
        process.stdout.write(text);
        return process.stdout.writable;
      };
      await showLogs({ nodes, isFollowed: follow === true, write });
    });
}

function addFaults(program: Command): void {
  for (const { kind, says, done } of FAULTS) {
    program
      .command(`${kind} <name>`)
      .description(says)
      .action(async (name: string) => {
        await ordered(program, { kind, name });
        say(`${name} ${done}`);
      });
  }
  program
    .command('restart <name>')
    .description('stop a server in good order if it runs, start it, and wait until it is ready')
    .option('--replace-disk', 'with an empty disk: its data is removed while it is down')
    .action(async (name: string, { replaceDisk }: { readonly replaceDisk?: true }) => {
      await ordered(program, { kind: 'restart', name, isDiskReplaced: replaceDisk === true });
    });
}

function addLines(program: Command): void {
  program
    .command('partition <a> <b>')
    .description('cut the lines between two nodes or datacenters')
    .option('--one-way', 'only what A sends to B is lost')
    .action(async (from: string, to: string, { oneWay }: { readonly oneWay?: true }) => {
      const between: Between = { from, to, isOneWay: oneWay === true };
      await ordered(program, { kind: 'partition', between });
      say(`${from} and ${to} are cut off${oneWay ? ' one way' : ''}; \`heal\` mends it`);
    });
  program
    .command('delay')
    .argument('<a>')
    .argument('<b>')
    .argument('<ms>', '', counted(0, DELAY_MAX_MS))
    .description('slow the lines between two nodes or datacenters; 0 is as it was')
    .option('--one-way', 'only what A sends to B')
    .action(
      async (from: string, to: string, delayMs: number, { oneWay }: { readonly oneWay?: true }) => {
        const between: Between = { from, to, isOneWay: oneWay === true };
        await ordered(program, { kind: 'delay', between, delayMs });
        say(`from ${from} to ${to}${oneWay ? '' : ' and back'}: ${delayMs} ms`);
      },
    );
  program
    .command('heal [a] [b]')
    .description('mend the cuts between two, or all; delays stay')
    .action(async (from?: string, to?: string) => {
      if (from !== undefined && to === undefined)
        throw new ClusterRefusal('name both ends, or none to mend everything');
      const isAll = from === undefined || to === undefined;
      await ordered(
        program,
        isAll ? { kind: 'heal' } : { kind: 'heal', between: { from, to, isOneWay: false } },
      );
      say(isAll ? 'all lines are mended' : `the lines between ${from} and ${to} are mended`);
    });
}

function addMembers(program: Command): void {
  program
    .command('promote <datacenter>')
    .description('make it the primary: the one that is hands over, and nothing is lost')
    .action(async (name: string) => {
      await ordered(program, { kind: 'promote', name });
      say(`${name} is the primary`);
    });
  program
    .command('add [datacenter]')
    .description('one more server; default: in the primary datacenter')
    .action(async (datacenter?: string) => {
      const files = filesOf(program);
      const chosen = datacenter ?? files.plan()?.primaryDatacenter ?? '';
      await ordered(program, { kind: 'add', datacenter: chosen });
    });
  program
    .command('remove <node>')
    .description('take a server out of its group, end it, and remove its data')
    .action(async (name: string) => {
      await ordered(program, { kind: 'remove', name });
    });
}

async function up(files: ClusterFiles, options: UpOptions): Promise<void> {
  const found = files.plan();
  if (found !== undefined) requireSameShape(found, options);
  if (found === undefined) {
    files.ensureFolder();
    files.keepPlan(await newPlan(options));
  }
  const client = await SupervisorClient.findOrStart(files, say);
  const { nodes } = files.plan()!;
  say(`Starting ${nodes.length} servers in ${datacentersOf(files.plan()!).join(', ')}.`);
  const state = await interruptible(client, found === undefined);
  say('');
  process.stdout.write(await statusText(state, hasColors()));
  say(nextThings(state.cluster, files));
}

/** Ctrl-C before all are ready: nothing of what was started goes on, unless some of the cluster ran before. */
async function interruptible(client: SupervisorClient, isNew: boolean): Promise<ClusterState> {
  const interrupted = new Promise<'interrupted'>((resolve) => {
    process.once('SIGINT', () => resolve('interrupted'));
  });
  const hasRun = hasServers(await client.order({ kind: 'state' }));
  const leaving = new AbortController();
  const started = client.order({ kind: 'up', isNew }, say, leaving.signal);
  const first = await Promise.race([started, interrupted]);
  if (first !== 'interrupted') return first;
  started.catch(() => undefined);
  if (hasRun) {
    leaving.abort();
    throw new ClusterRefusal('interrupted; what runs goes on\nNext: `npm run cluster -- status`');
  }
  say('Interrupted: ending what was started.');
  await client.order({ kind: 'down', isKept: !isNew });
  throw new ClusterRefusal(
    isNew ? 'interrupted; nothing is left' : 'interrupted; the data is kept',
  );
}

async function newPlan(options: UpOptions): Promise<ClusterPlan> {
  const shape: ClusterShape = {
    datacenters: options.datacenters ?? DATACENTERS,
    servers: options.servers ?? SERVERS,
    wanDelayMs: options.wanDelay ?? 0,
  };
  const ports = await freePorts(shape.datacenters * shape.servers * PORTS_OF_A_NODE);
  return planCluster(shape, ports, {
    managementToken: randomUUID(),
    clusterKey: randomBytes(CLUSTER_KEY_BYTES).toString('base64'),
  });
}

/** A cluster that is there is started as it is. */
function requireSameShape(plan: ClusterPlan, options: UpOptions): void {
  const datacenters = datacentersOf(plan);
  const isOther =
    (options.datacenters ?? datacenters.length) !== datacenters.length ||
    (options.wanDelay ?? plan.wanDelayMs) !== plan.wanDelayMs ||
    datacenters.some(
      (name) =>
        nodesNamed(plan, name).length !== (options.servers ?? nodesNamed(plan, name).length),
    );
  if (!isOther) return;
  throw new ClusterRefusal(
    `there is a cluster of another shape already: ${plan.nodes.map(({ name }) => name).join(', ')}\n` +
      'Next: `npm run cluster -- up` without options starts it as it is; `npm run cluster -- down` removes it.',
  );
}

async function down(files: ClusterFiles, keep: true | undefined): Promise<void> {
  if (files.plan() === undefined)
    throw new ClusterRefusal(`there is no cluster in ${files.folder}`);
  const client = await SupervisorClient.findOrStart(files, say);
  await client.order({ kind: 'down', isKept: keep === true }, say);
  say(
    keep
      ? 'All servers have ended; `up` goes on with their data.'
      : 'All servers have ended, and their data is gone.',
  );
}

async function status(files: ClusterFiles, watch: true | undefined): Promise<void> {
  const client = await SupervisorClient.find(files, say);
  const look = async (): Promise<string> =>
    await statusText(await client.order({ kind: 'state' }), hasColors());
  const isLive = watch === true && process.stdout.isTTY;
  process.stdout.write(`${isLive ? CLEAR_SCREEN : ''}${await look()}`);
  while (isLive) {
    await pause(WATCH_MS);
    process.stdout.write(`${CLEAR_SCREEN}${await look()}`);
  }
}

async function ordered(program: Command, order: Order): Promise<ClusterState> {
  const client = await SupervisorClient.find(filesOf(program), say);
  return await client.order(order, say);
}

function filesOf(program: Command): ClusterFiles {
  return new ClusterFiles(resolve(program.opts<{ readonly dir: string }>().dir));
}

function counted(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`expected a whole number from ${least} to ${most}.`);
  };
}

function noSuchNode({ nodes }: ClusterDescription, name: string): ClusterRefusal {
  return new ClusterRefusal(
    `there is no node ${JSON.stringify(name)} here; nodes: ${nodes.map((node) => node.name).join(', ')}`,
  );
}

function hasColors(): boolean {
  return process.stdout.isTTY === true && !process.env.NO_COLOR;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** What a person wants to try when it runs. */
function nextThings({ nodes }: ClusterDescription, { folder }: ClusterFiles): string {
  const [first, second] = nodes;
  const file = `${folder}/cluster.json`;
  const token = `$(node -p 'require("${file}").management_token')`;
  return `
The management token and all addresses are in ${file}

Next:
  export CONCLAVE_HTTP_ADDR=http://${first?.http} CONCLAVE_TOKEN=${token}
  npx conclave acl token create --description "made at ${first?.name}"
  npm run cluster -- status --watch
  npm run cluster -- kill ${second?.name ?? first?.name}
  npm run cluster -- restart ${second?.name ?? first?.name}
  npm run cluster -- partition ${first?.name} ${nodes.at(-1)?.name}
  npm run cluster -- heal
  npm run cluster -- down`;
}
