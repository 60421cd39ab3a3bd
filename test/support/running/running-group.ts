// Several real nodes in this process that are one datacenter: databases in temporary folders, WebSockets
// and HTTP on free ports of the loopback address. Each can be closed and opened again on its folder.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openNode, type RunningNode } from '../../../src/node/node.ts';
import { readSettings } from '../../../src/node/settings/settings.ts';
import { openSystemPlatform } from '../../../src/platform-node/system-platform.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { freePorts } from './free-ports.ts';
import { Client, ROOT } from './running-node.ts';

interface Owner {
  teardown(action: () => Promise<void>): void;
}

/** Elections of a busy machine take their time; no test may fail by it. */
const WAIT_MS = 60_000;

export const GROUP_KEY = Buffer.alloc(32, 9).toString('base64');

export interface ServerPlan {
  readonly name: string;
  readonly clusterPort: number;
  /** Ports of the others. */
  readonly join: readonly number[];
  readonly expect: number;
  readonly flags?: Readonly<Record<string, string>>;
}

export class ServerUnderTest {
  readonly name: string;
  readonly agent = new Agent({ keepAlive: true });
  readonly #plan: ServerPlan;
  readonly #dataFolder: string;
  #node: RunningNode | undefined;

  constructor(owner: Owner, plan: ServerPlan) {
    this.name = plan.name;
    this.#plan = plan;
    this.#dataFolder = mkdtempSync(join(tmpdir(), `group-${plan.name}-`));
    owner.teardown(async () => {
      await this.close();
      this.agent.destroy();
      rmSync(this.#dataFolder, { recursive: true });
    });
  }

  /** Up to which feature level its program reads, from its next start on. */
  reads = NEWEST_LEVEL;

  /** By so much its wall clock is ahead, from its next start on. */
  aheadMs = 0;

  /** What it draws instead of a fraction. */
  fraction: number | undefined;

  get isOpen(): boolean {
    return this.#node !== undefined;
  }

  get node(): RunningNode {
    if (this.#node === undefined) throw new Error(`server ${this.name} is closed`);
    return this.#node;
  }

  get port(): number {
    return this.node.addresses[0]?.port ?? 0;
  }

  get dataFolder(): string {
    return this.#dataFolder;
  }

  /** Where the others reach it. */
  get clusterAddress(): string {
    return this.#plan.flags?.['advertise-addr'] ?? `127.0.0.1:${this.#plan.clusterPort}`;
  }

  /** A client that sends to it, and reads as clients of this interface do. */
  get client(): Client {
    const { port, agent } = this;
    return new Client({ port, agent, dataFolder: this.#dataFolder }, 'X-Service-', ROOT);
  }

  /** `given` flags count before those of its plan, for this start alone. */
  async open(given: Readonly<Record<string, string>> = {}): Promise<void> {
    const { name, clusterPort, join: others, expect, flags } = this.#plan;
    const settings = readSettings({
      flags: {
        'data-dir': this.#dataFolder,
        'node-name': name,
        'ports-http': '0',
        'ports-cluster': String(clusterPort),
        'bootstrap-expect': String(expect),
        'retry-join': others.map((port) => `127.0.0.1:${port}`).join(','),
        'cluster-key': GROUP_KEY,
        'log-level': 'error',
        'acl-tokens-initial-management': ROOT,
        ...flags,
        ...given,
      },
      files: [],
      environment: {},
    });
    const platform = openSystemPlatform(settings);
    const { clock, random } = platform;
    const fraction = (): number => this.fraction ?? random.fraction();
    const wallMs = (): number => clock.wallMs() + this.aheadMs;
    this.#node = await openNode({
      settings,
      platform: {
        ...platform,
        clock: { ...clock, wallMs },
        random: { ...random, fraction },
      },
      version: 'test',
      reads: this.reads,
    });
  }

  /** It is closed, and nothing is left of what it had on its disk. */
  loseDisk(): void {
    for (const name of readdirSync(this.#dataFolder)) {
      rmSync(join(this.#dataFolder, name), { recursive: true });
    }
  }

  async close(): Promise<void> {
    const node = this.#node;
    this.#node = undefined;
    await node?.close();
  }
}

/** So many servers that found a datacenter together; resolves when all of them are ready. */
export async function runServers(
  owner: Owner,
  count: number,
  flags: Readonly<Record<string, string>> = {},
): Promise<readonly ServerUnderTest[]> {
  const ports = await freePorts(count);
  const servers = ports.map((clusterPort, place) => {
    const name = `node-${place + 1}`;
    const others = ports.filter((port) => port !== clusterPort);
    return new ServerUnderTest(owner, { name, clusterPort, join: others, expect: count, flags });
  });
  await Promise.all(servers.map((server) => server.open()));
  await allReady(servers);
  return servers;
}

/** One that joins those that there are. */
export async function joiningServer(
  owner: Owner,
  name: string,
  servers: readonly ServerUnderTest[],
): Promise<ServerUnderTest> {
  const [clusterPort = 0] = await freePorts(1);
  const others = servers.map(({ clusterAddress }) => Number(clusterAddress.split(':')[1]));
  return new ServerUnderTest(owner, { name, clusterPort, join: others, expect: 1 });
}

export async function allReady(servers: readonly ServerUnderTest[]): Promise<void> {
  await until('all servers are ready', () =>
    servers.every(({ node }) => node.info.notReadyReasons().length === 0),
  );
}

/** The server that all open ones follow. */
export async function leaderOf(servers: readonly ServerUnderTest[]): Promise<ServerUnderTest> {
  let leader: ServerUnderTest | undefined;
  await until('all servers follow one leader', () => {
    const open = servers.filter((server) => server.isOpen);
    const found = new Set(open.map(({ node }) => node.info.leader()));
    leader = open.find(({ clusterAddress }) => found.size === 1 && found.has(clusterAddress));
    return leader !== undefined;
  });
  return leader as ServerUnderTest;
}

/** Waits for a condition, and long enough for any machine. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`waited too long until ${what}`);
    await new Promise<void>((resolve) => setTimeout(resolve, 20));
  }
}
