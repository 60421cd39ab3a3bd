// Three real servers that are one datacenter, each a process of its own.

import { join } from 'node:path';
import { ask } from '../hard/asking.ts';
import {
  type Owner,
  type ServerProcess,
  startServer,
  temporaryFolder,
} from '../hard/server-process.ts';
import { freePorts } from '../support/running/free-ports.ts';
import { GROUP_KEY, until } from '../support/running/running-group.ts';

/** How one of them is started, again and again on its folder. */
export interface Plan {
  readonly name: string;
  readonly folder: string;
  readonly clusterPort: number;
  readonly join: readonly number[];
}

export interface Running {
  readonly plan: Plan;
  readonly process: ServerProcess;
}

/** Resolves when it listens. */
export function start(owner: Owner, plan: Plan): Promise<ServerProcess> {
  return startServer(owner, {
    dataFolder: plan.folder,
    flags: {
      'node-name': plan.name,
      'log-level': 'debug',
      'ports-cluster': String(plan.clusterPort),
      'bootstrap-expect': '3',
      'retry-join': plan.join.map((port) => `127.0.0.1:${port}`).join(','),
    },
    environment: { CONCLAVE_CLUSTER_KEY: GROUP_KEY },
  });
}

/** Resolves when all of them are ready. */
export async function startThree(owner: Owner): Promise<readonly Running[]> {
  const root = temporaryFolder(owner);
  const ports = await freePorts(3);
  const plans = ports.map((clusterPort, place) => ({
    name: `server-${place + 1}`,
    folder: join(root, `server-${place + 1}`),
    clusterPort,
    join: ports.filter((port) => port !== clusterPort),
  }));
  const running = await Promise.all(
    plans.map(async (plan) => ({ plan, process: await start(owner, plan) })),
  );
  await Promise.all(running.map(({ process }) => ready(process)));
  return running;
}

/** Resolves when it says that it serves. */
export async function ready({ port }: ServerProcess): Promise<void> {
  await until(
    'the server is ready',
    async () => (await ask(port, { path: '/readyz' })).status === 200,
  );
}

/** The one of these whose address all of them tell. */
export async function leaderOf(servers: readonly Running[]): Promise<Running> {
  let found: Running | undefined;
  await until('there is a leader', async () => {
    const told = await Promise.all(
      servers.map(({ process }) => ask(process.port, { path: '/v1/status/leader' })),
    );
    const [first = ''] = told.map(({ text }) => text);
    found = servers.find(({ plan }) => first === `"127.0.0.1:${plan.clusterPort}"`);
    return told.every(({ text }) => text === first) && found !== undefined;
  });
  return found as Running;
}
