// The processes of the benchmark of a group: its servers, and three bare ones that replicate bytes and nothing
// else.

import { randomBytes } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Child, portOfAgent, portOfFirstLine, startChild } from './child.ts';
import { MANAGEMENT_SECRET } from './seed.ts';

export interface GroupPlan {
  readonly servers: number;
  /** Empty, for the data; whoever asks deletes it. */
  readonly workFolder: string;
}

export interface Server {
  readonly name: string;
  readonly clusterPort: number;
  readonly child: Child;
}

const here = import.meta.dirname;
const MAIN_SCRIPT = join(dirname(dirname(here)), 'src', 'main.js');
const NODE_OPTIONS = ['--max-semi-space-size=16'];
const CLUSTER_KEY = randomBytes(32).toString('base64');
const LEADER_WAIT_MS = 30_000;

/** Resolves when all are ready. `run` names their folders. */
export async function startServers(options: GroupPlan, run: string): Promise<Server[]> {
  const ports = await Promise.all(Array.from({ length: options.servers }, freePort));
  const starting = ports.map((clusterPort, place) =>
    startServer(options, run, {
      name: `node-${place + 1}`,
      clusterPort,
      join: ports,
      expect: options.servers,
    }),
  );
  const servers = await Promise.all(starting);
  for (const { child } of servers) await answering(child.port, '/readyz');
  return servers;
}

export async function startServer(
  options: GroupPlan,
  run: string,
  plan: {
    readonly name: string;
    readonly clusterPort: number;
    readonly join: readonly number[];
    readonly expect: number;
  },
): Promise<Server> {
  const child = await startChild({
    script: MAIN_SCRIPT,
    nodeOptions: NODE_OPTIONS,
    environment: {
      CONCLAVE_CLUSTER_KEY: CLUSTER_KEY,
      CONCLAVE_ACL_TOKENS_INITIAL_MANAGEMENT: MANAGEMENT_SECRET,
    },
    arguments: [
      'agent',
      '--data-dir',
      join(options.workFolder, `${run}-${plan.name}`),
      '--node-name',
      plan.name,
      '--ports-http',
      '0',
      '--ports-cluster',
      String(plan.clusterPort),
      '--bootstrap-expect',
      String(plan.expect),
      '--retry-join',
      plan.join.map((port) => `127.0.0.1:${port}`).join(','),
      // One client address has all the connections here.
      '--limits-http-max-conns-per-client',
      '0',
      '--log-level',
      'error',
    ],
    portOf: portOfAgent,
  });
  return { name: plan.name, clusterPort: plan.clusterPort, child };
}

export async function startChain(
  workFolder: string,
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const script = join(here, 'chain-server', 'main.js');
  const start = (role: string, folder: string, ports: readonly number[]): Promise<Child> =>
    startChild({
      script,
      nodeOptions: NODE_OPTIONS,
      arguments: [role, join(workFolder, folder), ...ports.map(String)],
      portOf: portOfFirstLine,
    });
  const followers = [
    await start('follower', 'chain-1', []),
    await start('follower', 'chain-2', []),
  ];
  const head = await start(
    'head',
    'chain-0',
    followers.map(({ port }) => port),
  );
  return {
    port: head.port,
    stop: async () => {
      for (const child of [head, ...followers]) await child.stop();
    },
  };
}

export async function stopAll(servers: readonly Server[]): Promise<void> {
  for (const { child } of servers) child.signal('SIGKILL');
  for (const { child } of servers) await child.stop();
}

export function portsOf(servers: readonly Server[]): readonly number[] {
  return servers.map(({ child }) => child.port);
}

/** The server that answers for itself when asked who leads. */
export async function leaderOf(servers: readonly Server[]): Promise<Server> {
  const text = await answering(servers[0]!.child.port, '/v1/status/leader');
  const port = Number(/:(\d+)"/.exec(text)?.[1]);
  const leader = servers.find(({ clusterPort }) => clusterPort === port);
  if (leader === undefined) throw new Error(`no server is the leader ${text}`);
  return leader;
}

/** Asks until the answer is 200 and says something. */
export async function answering(port: number, path: string): Promise<string> {
  let last = '';
  for (const endAt = performance.now() + LEADER_WAIT_MS; performance.now() < endAt; ) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      last = await answer.text();
      if (answer.status === 200 && last !== '""') return last;
    } catch (error) {
      last = String(error);
    }
    await pause(50);
  }
  throw new Error(`port ${port} does not answer ${path}: ${last}`);
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
