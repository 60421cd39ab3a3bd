// A local cluster for one test: in a temporary folder, ended with the test, and with what a test waits for.

import { randomBytes, randomUUID } from 'node:crypto';
import { askNode } from '../../scripts/cluster/ask-node.ts';
import {
  type ClusterShape,
  datacentersOf,
  nodesNamed,
  PORTS_OF_A_NODE,
  planCluster,
} from '../../scripts/cluster/cluster-plan.ts';
import { figuresOfAll } from '../../scripts/cluster/figures.ts';
import { LocalCluster } from '../../scripts/cluster/local-cluster.ts';
import { temporaryFolder } from '../hard/server-process.ts';
import { freePorts } from '../support/running/free-ports.ts';
import { until } from '../support/running/running-group.ts';

interface Owner {
  teardown(action: () => Promise<unknown> | undefined): void;
}

const ASK_MAX_MS = 5_000;

/** Resolves when all its servers are ready. */
export async function runCluster(
  owner: Owner,
  shape: ClusterShape,
  settings: Readonly<Record<string, string>> = {},
): Promise<LocalCluster> {
  const folder = temporaryFolder(owner);
  const ports = await freePorts(shape.datacenters * shape.servers * PORTS_OF_A_NODE);
  const secrets = {
    managementToken: randomUUID(),
    clusterKey: randomBytes(32).toString('base64'),
  };
  const plan = { ...planCluster(shape, ports, secrets), settings };
  const cluster = await LocalCluster.open(folder, plan);
  cluster.endWithProcess();
  owner.teardown(() => cluster.close());
  await cluster.startAll();
  return cluster;
}

/** The one that all these servers follow. */
export async function leaderAmong(
  cluster: LocalCluster,
  names: readonly string[],
): Promise<string> {
  let leader: string | undefined;
  await until(`${names.join(', ')} follow one leader`, async () => {
    const nodes = cluster.describe().nodes.filter(({ name }) => names.includes(name));
    const told = await Promise.all(nodes.map(({ http }) => leaderToldBy(http)));
    leader = nodes.find(({ cluster: address }) => told.every((each) => each === address))?.name;
    return leader !== undefined;
  });
  return leader!;
}

async function leaderToldBy(http: string): Promise<string> {
  try {
    const { text } = await askNode({ http, path: '/v1/status/leader', timeoutMs: ASK_MAX_MS });
    return JSON.parse(text) as string;
  } catch {
    return '';
  }
}

export function othersOf(
  cluster: LocalCluster,
  name: string,
  datacenter: string,
): readonly string[] {
  return nodesNamed(cluster.plan, datacenter).filter((other) => other !== name);
}

/** Resolves when all servers of a datacenter hold the same, to the last object. */
export async function allTheSame(cluster: LocalCluster, datacenter: string): Promise<void> {
  const names = nodesNamed(cluster.plan, datacenter);
  await until(`all servers of ${datacenter} hold the same`, async () => {
    const figures = await figuresOfAll(cluster.describe());
    const digests = new Set(names.map((name) => figures.get(name)?.digestAll));
    return digests.size === 1 && !digests.has(undefined);
  });
}

/** Resolves when all datacenters hold the same of what all share, at the same place of the global log. */
export async function allShareOne(cluster: LocalCluster): Promise<void> {
  for (const datacenter of datacentersOf(cluster.plan)) await allTheSame(cluster, datacenter);
  await until('all datacenters share one state', async () => {
    const figures = [...(await figuresOfAll(cluster.describe())).values()];
    const states = figures.map(({ position, digestGlobal }) => `${position} ${digestGlobal}`);
    return new Set(states).size === 1 && figures.every(({ digestGlobal }) => digestGlobal);
  });
}
