// Several datacenters of real nodes in this process, each behind lines that a test can cut: whoever is
// told where a server is, is told of its line. Servers of one datacenter reach each other by their lines,
// too, so only a datacenter of one server can be cut off without falling apart.

import { CuttableLine } from './cuttable-line.ts';
import { freePorts } from './free-ports.ts';
import { allReady, leaderOf, ServerUnderTest, until } from './running-group.ts';
import type { Client } from './running-node.ts';

interface Owner {
  teardown(action: () => Promise<void>): void;
}

export interface DatacenterPlan {
  readonly name: string;
  /** The datacenter that writes first; itself when it is left out. */
  readonly primary?: DatacenterUnderTest;
  readonly servers?: number;
  readonly flags?: Readonly<Record<string, string>>;
}

export interface DatacenterUnderTest {
  readonly name: string;
  readonly servers: readonly ServerUnderTest[];
  readonly lines: readonly CuttableLine[];
}

/** A datacenter whose servers are all ready. */
export async function runDatacenter(
  owner: Owner,
  plan: DatacenterPlan,
): Promise<DatacenterUnderTest> {
  const datacenter = await planned(owner, plan);
  await Promise.all(datacenter.servers.map((server) => server.open()));
  await allReady(datacenter.servers);
  return datacenter;
}

/** The same, with servers that are not open yet. */
export async function planned(
  owner: Owner,
  { name, primary, servers: count = 1, flags = {} }: DatacenterPlan,
): Promise<DatacenterUnderTest> {
  const ports = await freePorts(count);
  const lines: CuttableLine[] = [];
  for (const port of ports) lines.push(await CuttableLine.to(owner, port));
  const wan = primary?.lines.map(({ address }) => address).join() ?? '';
  const servers = ports.map((clusterPort, place) => {
    const others = lines.filter((_, at) => at !== place).map(({ port }) => port);
    return new ServerUnderTest(owner, {
      ...{ name: `${name}-${place + 1}`, clusterPort, join: others, expect: count },
      flags: {
        datacenter: name,
        'primary-datacenter': primary?.name ?? name,
        'retry-join-wan': wan,
        'advertise-addr': lines[place]?.address ?? '',
        ...flags,
      },
    });
  });
  return { name, servers, lines };
}

/** The only server, or the first of several. */
export function serverOf({ servers }: DatacenterUnderTest): ServerUnderTest {
  return servers[0]!;
}

/** Asks the first server of it. */
export function clientOf(datacenter: DatacenterUnderTest): Client {
  return serverOf(datacenter).client;
}

export function cut({ lines }: DatacenterUnderTest): void {
  for (const line of lines) line.cut();
}

export function heal({ lines }: DatacenterUnderTest): void {
  for (const line of lines) line.heal();
}

/** The server that leads it. */
export function leaderIn(datacenter: DatacenterUnderTest): Promise<ServerUnderTest> {
  return leaderOf(datacenter.servers);
}

/** Resolves when they all belong to the federation, and each has told the others where it is. */
export async function everyoneKnows(datacenters: readonly DatacenterUnderTest[]): Promise<void> {
  const [first] = datacenters;
  await until('all datacenters follow', async () => {
    const status = await serverOf(first!).client.get('/acl/replication');
    const { Datacenters: all } = status.json as { Datacenters: { State: string }[] };
    return all.length === datacenters.length && all.every(({ State }) => LIVE.has(State));
  });
  for (const datacenter of datacenters) {
    for (const { name } of datacenters) {
      await until(`${datacenter.name} reaches ${name}`, async () => {
        const { client } = serverOf(datacenter);
        return (await client.get(`/acl/policies?dc=${name}`)).status === 200;
      });
    }
  }
}

const LIVE: ReadonlySet<string> = new Set(['primary', 'live']);
