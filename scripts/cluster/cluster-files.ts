// The folder of a local cluster. Everything in it is for its owner alone, because it holds secrets:
//
//   plan.json         what the cluster consists of
//   cluster.json      what other programs need to use it
//   supervisor.json   where its supervisor is reached, while there is one
//   supervisor.log    what the supervisor has to say
//   nodes/NAME/       data folder and log of a server

import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClusterPlan, dataFolderOf, HOST, logFileOf, type NodePlan } from './cluster-plan.ts';
import { ClusterRefusal } from './cluster-refusal.ts';

/** The content of cluster.json. */
export interface ClusterDescription {
  readonly management_token: string;
  readonly primary_datacenter: string;
  readonly nodes: readonly NodeDescription[];
}

export interface NodeDescription {
  readonly name: string;
  readonly datacenter: string;
  /** `host:port` */
  readonly http: string;
  /** `host:port` at which the other servers reach it, through its proxy. */
  readonly cluster: string;
  /** Null while it does not run. */
  readonly pid: number | null;
  readonly data_dir: string;
  readonly log: string;
}

/** How to reach the supervisor. */
export interface SupervisorAddress {
  readonly pid: number;
  readonly port: number;
  /** Whoever has it may command. */
  readonly secret: string;
}

const PLAN = 'plan.json';
const DESCRIPTION = 'cluster.json';
const SUPERVISOR = 'supervisor.json';

export class ClusterFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  get supervisorLog(): string {
    return join(this.folder, 'supervisor.log');
  }

  ensureFolder(): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    chmodSync(this.folder, 0o700);
  }

  plan(): ClusterPlan | undefined {
    return this.#read<ClusterPlan>(PLAN);
  }

  keepPlan(plan: ClusterPlan): void {
    this.#write(PLAN, plan);
  }

  description(): ClusterDescription | undefined {
    return this.#read<ClusterDescription>(DESCRIPTION);
  }

  /** Tells other programs; `pidOf` gives undefined for what does not run. */
  describe(plan: ClusterPlan, pidOf: (node: string) => number | undefined): void {
    this.#write(DESCRIPTION, {
      management_token: plan.managementToken,
      primary_datacenter: plan.primaryDatacenter,
      nodes: plan.nodes.map((node) => this.#describeNode(node, pidOf(node.name))),
    } satisfies ClusterDescription);
  }

  supervisor(): SupervisorAddress | undefined {
    return this.#read<SupervisorAddress>(SUPERVISOR);
  }

  keepSupervisor(address: SupervisorAddress): void {
    this.#write(SUPERVISOR, address);
  }

  forgetSupervisor(): void {
    rmSync(join(this.folder, SUPERVISOR), { force: true });
  }

  /** What would tell other programs of servers that are gone. */
  forgetDescription(): void {
    rmSync(join(this.folder, DESCRIPTION), { force: true });
  }

  /** All data of all servers with it. */
  removeAll(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #describeNode(node: NodePlan, pid: number | undefined): NodeDescription {
    return {
      name: node.name,
      datacenter: node.datacenter,
      http: `${HOST}:${node.httpPort}`,
      cluster: `${HOST}:${node.linePort}`,
      pid: pid ?? null,
      data_dir: dataFolderOf(this.folder, node.name),
      log: logFileOf(this.folder, node.name),
    };
  }

  #read<Content>(name: string): Content | undefined {
    const path = join(this.folder, name);
    try {
      return JSON.parse(readFileSync(path, 'utf8')) as Content;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw new ClusterRefusal(
        `${path} cannot be read: ${(error as Error).message}. End the servers of this cluster, remove ${this.folder}, and begin anew`,
      );
    }
  }

  /** Readers see the old content or the new one, nothing between. */
  #write(name: string, content: object): void {
    const path = join(this.folder, name);
    writeFileSync(`${path}.new`, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}
