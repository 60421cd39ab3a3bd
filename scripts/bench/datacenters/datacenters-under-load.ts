// Two datacenters of real servers for the benchmark: a local cluster whose proxies hold everything up that
// goes from one to the other.

import { randomBytes } from 'node:crypto';
import type { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { askNode } from '../../cluster/ask-node.ts';
import { HOST, nodesNamed, PORTS_OF_A_NODE, planCluster } from '../../cluster/cluster-plan.ts';
import { type Figures, figuresOf, seqOf } from '../../cluster/figures.ts';
import { freePorts } from '../../cluster/free-ports.ts';
import { LocalCluster } from '../../cluster/local-cluster.ts';
import { MANAGEMENT_SECRET } from '../seed.ts';

export const PRIMARY = 'dc1';
export const SECONDARY = 'dc2';

const ANSWER_MAX_MS = 30_000;
const CONVERGE_MAX_MS = 600_000;
const LOOK_MS = 20;

export class DatacentersUnderLoad {
  readonly cluster: LocalCluster;

  private constructor(cluster: LocalCluster) {
    this.cluster = cluster;
    cluster.endWithProcess();
  }

  /** Starts nothing. */
  static async open(folder: string, servers: number): Promise<DatacentersUnderLoad> {
    const ports = await freePorts(2 * servers * PORTS_OF_A_NODE);
    const secrets = {
      managementToken: MANAGEMENT_SECRET,
      clusterKey: randomBytes(32).toString('base64'),
    };
    const plan = planCluster({ datacenters: 2, servers, wanDelayMs: 0 }, ports, secrets);
    return new DatacentersUnderLoad(await LocalCluster.open(folder, plan));
  }

  async close(): Promise<void> {
    await this.cluster.close();
  }

  /** So long everything takes from one datacenter to the other, both ways. */
  delay(ms: number): void {
    this.cluster.delay({ from: PRIMARY, to: SECONDARY, isOneWay: false }, ms);
  }

  cut(): void {
    this.cluster.partition({ from: PRIMARY, to: SECONDARY, isOneWay: false });
  }

  heal(): void {
    this.cluster.heal();
  }

  /** HTTP ports of a datacenter, its leader's first. */
  async ports(datacenter: string): Promise<readonly number[]> {
    const leader = await this.leader(datacenter);
    const names = nodesNamed(this.cluster.plan, datacenter);
    const inOrder = [leader, ...names.filter((name) => name !== leader)];
    return inOrder.map(
      (name) => this.cluster.plan.nodes.find((node) => node.name === name)!.httpPort,
    );
  }

  async leader(datacenter: string): Promise<string> {
    let leader: string | undefined;
    await until(`${datacenter} has a leader`, async () => {
      for (const name of nodesNamed(this.cluster.plan, datacenter)) {
        const { role } = await this.figures(name);
        if (role === 'leader') leader = name;
      }
      return leader !== undefined;
    });
    return leader!;
  }

  /** The process of a node. */
  pid(name: string): number {
    const state = this.cluster.stateOf(name);
    return state.kind === 'ended' ? 0 : state.pid;
  }

  figures(name: string): Promise<Figures> {
    const cluster = this.cluster.describe();
    return figuresOf(cluster, cluster.nodes.find((node) => node.name === name)!);
  }

  /** The seq of the global log that a node has applied; 0 while it does not say. */
  async seq(name: string): Promise<number> {
    return seqOf(await this.figures(name)) ?? 0;
  }

  /** Resolves when each of these nodes has what the leader of the primary has now. */
  async converged(names: readonly string[]): Promise<void> {
    const goal = await this.seq(await this.leader(PRIMARY));
    await until(`${names.join(', ')} have entry ${goal}`, async () => {
      const seqs = await Promise.all(names.map((name) => this.seq(name)));
      return seqs.every((seq) => seq >= goal);
    });
  }

  get allNames(): readonly string[] {
    return this.cluster.plan.nodes.map(({ name }) => name);
  }
}

/** Resolves when a server has a position, `epoch.seq`. Rejects when that takes long. */
export async function reached(port: number, position: string, agent: Agent): Promise<void> {
  const { status, text } = await askNode({
    agent,
    http: `${HOST}:${port}`,
    path: `/v1/acl/token/self?stale&min-position=${position}`,
    secret: MANAGEMENT_SECRET,
    timeoutMs: ANSWER_MAX_MS,
  });
  if (status !== 200) throw new Error(`position ${position}: ${status} ${text}`);
}

/** Asks again and again. Rejects after a long time. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  lookMs: number = LOOK_MS,
): Promise<void> {
  const deadlineMs = performance.now() + CONVERGE_MAX_MS;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`it did not come to this: ${what}`);
    await pause(lookMs);
  }
}
