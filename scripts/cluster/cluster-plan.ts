// What a local cluster consists of, before anything runs: names, ports, secrets, and the settings that
// each server is started with. Pure: the folder of the cluster and free ports are handed in.

import { join } from 'node:path';
import { ClusterRefusal } from './cluster-refusal.ts';

export interface NodePlan {
  readonly name: string;
  readonly datacenter: string;
  /** Where its clients ask. */
  readonly httpPort: number;
  /** Where it listens for other servers; nobody but its own proxy dials it. */
  readonly clusterPort: number;
  /** Where its proxy listens: the address that it tells the others. */
  readonly linePort: number;
  /** Whether it founds its datacenter; the others join. */
  readonly isFounder: boolean;
}

export interface ClusterPlan {
  readonly managementToken: string;
  readonly clusterKey: string;
  readonly primaryDatacenter: string;
  /** So long everything takes from one datacenter to another, on top of what it takes anyway. */
  readonly wanDelayMs: number;
  /** Of every server, besides: by the names of the flags. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly nodes: readonly NodePlan[];
}

export interface ClusterShape {
  readonly datacenters: number;
  /** Of each datacenter. */
  readonly servers: number;
  readonly wanDelayMs: number;
}

export interface ClusterSecrets {
  readonly managementToken: string;
  readonly clusterKey: string;
}

export const HOST = '127.0.0.1';
/** A node needs so many: HTTP, cluster, line. */
export const PORTS_OF_A_NODE = 3;
export const DATACENTERS_MAX = 9;
export const SERVERS_MAX = 9;

/** A plan for a new cluster: `dc1-1`, `dc1-2`, …, `dc2-1`, …. `dc1` is the primary datacenter. */
export function planCluster(
  { datacenters, servers, wanDelayMs }: ClusterShape,
  ports: readonly number[],
  secrets: ClusterSecrets,
): ClusterPlan {
  const nodes: NodePlan[] = [];
  for (let datacenter = 1; datacenter <= datacenters; datacenter += 1) {
    for (let server = 1; server <= servers; server += 1) {
      const own = ports.slice(nodes.length * PORTS_OF_A_NODE);
      const name = `dc${datacenter}-${server}`;
      nodes.push(nodeOf({ name, datacenter: `dc${datacenter}`, isFounder: true }, own));
    }
  }
  return { ...secrets, primaryDatacenter: 'dc1', wanDelayMs, nodes };
}

/** One more server of a datacenter, with a name that was not used while the cluster has its nodes. */
export function withJoiner(
  plan: ClusterPlan,
  datacenter: string,
  ports: readonly number[],
): { readonly plan: ClusterPlan; readonly joiner: NodePlan } {
  const there = plan.nodes.filter((node) => node.datacenter === datacenter);
  if (there.length === 0) throw unknownName(plan, datacenter);
  if (there.length >= SERVERS_MAX)
    throw new ClusterRefusal(
      `${datacenter} has ${SERVERS_MAX} servers, and no more are meant here`,
    );
  const highest = Math.max(...there.map(({ name }) => Number(name.split('-').at(-1))));
  const name = `${datacenter}-${highest + 1}`;
  const joiner = nodeOf({ name, datacenter, isFounder: false }, ports);
  return { plan: { ...plan, nodes: [...plan.nodes, joiner] }, joiner };
}

/** A node after its disk was replaced, or when its group has been founded: from now on it joins. */
export function asJoiner(plan: ClusterPlan, name: string): ClusterPlan {
  const nodes = plan.nodes.map((node) =>
    node.name === name ? { ...node, isFounder: false } : node,
  );
  return { ...plan, nodes };
}

function nodeOf(
  node: Pick<NodePlan, 'name' | 'datacenter' | 'isFounder'>,
  ports: readonly number[],
): NodePlan {
  const [httpPort, clusterPort, linePort] = ports;
  if (httpPort === undefined || clusterPort === undefined || linePort === undefined)
    throw new Error(`${node.name} needs ${PORTS_OF_A_NODE} ports`);
  return { ...node, httpPort, clusterPort, linePort };
}

/** Names of nodes: of one, or of all of a datacenter. Throws a refusal that lists what there is. */
export function nodesNamed(plan: ClusterPlan, name: string): readonly string[] {
  const found = plan.nodes.filter((node) => node.name === name || node.datacenter === name);
  if (found.length === 0) throw unknownName(plan, name);
  return found.map((node) => node.name);
}

/** Throws a refusal that lists what there is. */
export function nodeNamed(plan: ClusterPlan, name: string): NodePlan {
  const found = plan.nodes.find((node) => node.name === name);
  if (found === undefined) throw unknownName(plan, name);
  return found;
}

export function datacentersOf({ nodes }: ClusterPlan): readonly string[] {
  return [...new Set(nodes.map(({ datacenter }) => datacenter))];
}

function unknownName(plan: ClusterPlan, name: string): ClusterRefusal {
  const nodes = plan.nodes.map((node) => node.name).join(', ');
  const datacenters = datacentersOf(plan).join(', ');
  return new ClusterRefusal(
    `there is no ${JSON.stringify(name)} here; nodes: ${nodes}; datacenters: ${datacenters}`,
  );
}

export function nodeFolder(folder: string, name: string): string {
  return join(folder, 'nodes', name);
}

export function dataFolderOf(folder: string, name: string): string {
  return join(nodeFolder(folder, name), 'data');
}

export function logFileOf(folder: string, name: string): string {
  return join(nodeFolder(folder, name), 'server.log');
}

/** Settings of a server as flags; what is secret goes in the environment, which other users cannot see. */
export function flagsOf(plan: ClusterPlan, node: NodePlan, folder: string): readonly string[] {
  const founders = plan.nodes.filter(
    ({ datacenter, isFounder }) => datacenter === node.datacenter && isFounder,
  );
  const flags: Readonly<Record<string, string>> = {
    'data-dir': dataFolderOf(folder, node.name),
    'node-name': node.name,
    datacenter: node.datacenter,
    'bind-addr': HOST,
    'client-addr': HOST,
    'advertise-addr': `${HOST}:${node.linePort}`,
    'ports-http': String(node.httpPort),
    'ports-cluster': String(node.clusterPort),
    'bootstrap-expect': String(node.isFounder ? founders.length : 1),
    'retry-join': linesOf(plan, (other) => other.datacenter === node.datacenter && other !== node),
    'primary-datacenter': plan.primaryDatacenter,
    'retry-join-wan': linesOf(plan, (other) => other.datacenter !== node.datacenter),
    ...plan.settings,
  };
  return Object.entries(flags).flatMap(([name, value]) =>
    value === '' ? [] : [`--${name}`, value],
  );
}

function linesOf(plan: ClusterPlan, isMeant: (node: NodePlan) => boolean): string {
  return plan.nodes
    .filter(isMeant)
    .map(({ linePort }) => `${HOST}:${linePort}`)
    .join(',');
}

export function environmentOf(plan: ClusterPlan): Readonly<Record<string, string>> {
  return {
    CONCLAVE_CLUSTER_KEY: plan.clusterKey,
    CONCLAVE_ACL_TOKENS_INITIAL_MANAGEMENT: plan.managementToken,
  };
}
