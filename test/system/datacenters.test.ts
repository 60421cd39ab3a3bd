// Two datacenters of real processes while clients are at work in both: the line between them is cut, in both
// directions and in one, servers are killed in the middle of what they do, and the log is trimmed under a
// datacenter that is away. What clients were told is held against the end, and to the checker of histories.
// `npm run test:system` does so with three servers each, for longer, and with a seed of its own each time.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import t from 'tap';
import { askNode } from '../../scripts/cluster/ask-node.ts';
import { nodesNamed } from '../../scripts/cluster/cluster-plan.ts';
import type { LocalCluster } from '../../scripts/cluster/local-cluster.ts';
import { SoakLoad } from '../../scripts/soak/soak-load.ts';
import { randomFrom } from '../hard/crash-load.ts';
import { checkOperations } from '../sim/linearizability/checker.ts';
import { registerModel } from '../sim/linearizability/register-model.ts';
import { until } from '../support/running/running-group.ts';
import { allShareOne, leaderAmong, runCluster } from './cluster-under-test.ts';
import { HistoryClients } from './history-clients.ts';
import { LocalClients } from './local-clients.ts';

const { values } = parseArgs({
  strict: false,
  options: {
    long: { type: 'boolean', default: false },
    seed: { type: 'string' },
    rounds: { type: 'string', default: '2' },
  },
});
const isLong = values.long === true;
const seed = isLong ? Number(values.seed ?? Date.now() % 2 ** 31) : 1;
const PRIMARY = 'dc1';
const SECONDARY = 'dc2';
/** So long the secondary is alone. */
const ALONE_MS = isLong ? 60_000 : 1_500;
/** So many entries are written while the line is cut, for a batch that somebody can be killed in. */
const MISSED_ENTRIES = isLong ? 500 : 20;
const LIST_MAX_MS = 60_000;
/** Of the line while a snapshot comes over it: each piece is on its way for so long. */
const SLOW_LINE_MS = 400;
/** So often a snapshot may be in place before its taker is killed, on a machine that has no time. */
const MISSES_MAX = 5;
/** Of the search for an order that explains all answers: some seconds. */
const BUDGET = { stepMax: 4_000_000, sizeMaxBytes: 256 * 1024 * 1024 };
const SHAPE = { datacenters: 2, servers: isLong ? 3 : 1, wanDelayMs: 5 };

t.setTimeout(isLong ? 0 : 350_000);

type Tap = Parameters<typeof runCluster>[0] & Pick<typeof t, 'comment' | 'same' | 'equal' | 'ok'>;

interface Scene {
  readonly cluster: LocalCluster;
  /** Whose history is checked: they write in both datacenters, and read in the primary. */
  readonly registers: HistoryClients;
  /** They make global and local tokens at every server, and use them there. */
  readonly load: SoakLoad;
  /** They need nothing but their own datacenter. */
  readonly locals: LocalClients;
}

/** Both datacenters with clients at work; `end` holds what they were told against the end. */
async function begin(
  owner: Tap,
  settings: Readonly<Record<string, string>> = {},
): Promise<Scene & { end(): Promise<void> }> {
  owner.comment(`seed ${seed}; again with: npm run test:system -- --seed ${seed}`);
  const cluster = await runCluster(owner, SHAPE, settings);
  await allShareOne(cluster);
  const random = randomFrom(seed);
  const description = cluster.describe();
  const registers = new HistoryClients({
    ...{ cluster: description, datacenters: [PRIMARY], writers: [PRIMARY, SECONDARY], random },
    // Who cannot reach the primary says so, after a while, and that nothing was written.
    patienceMs: 30_000,
  });
  const load = new SoakLoad({ cluster: description, clientsPerNode: 1, random });
  const locals = new LocalClients(description, SECONDARY);
  owner.teardown(() => registers.stop());
  owner.teardown(() => load.stop());
  owner.teardown(() => locals.stop());
  await registers.start();
  load.start();
  locals.start();
  const end = async (): Promise<void> => {
    cluster.heal();
    for (const datacenter of [PRIMARY, SECONDARY]) await cluster.ready(datacenter);
    await registers.stop();
    await load.stop();
    await locals.stop();
    await allShareOne(cluster);
    await holdToTheEnd(cluster, load, locals);
    owner.same([...registers.faults, ...load.faults, ...locals.faults], []);
    const verdict = checkOperations(registerModel, registers.operations, BUDGET);
    // Where too much is not known, the search ends without a verdict, and proves nothing either way.
    owner.ok(verdict.kind !== 'illegal', verdict.kind === 'illegal' ? verdict.text : verdict.kind);
    owner.comment(
      `${JSON.stringify(registers.answered)}, ${load.acknowledgedCount + locals.count} tokens`,
    );
  };
  return { cluster, registers, load, locals, end };
}

/** What each server lists against what was acknowledged; what is wrong is among the faults of the clients. */
async function holdToTheEnd(
  cluster: LocalCluster,
  load: SoakLoad,
  locals: LocalClients,
): Promise<void> {
  const { nodes, management_token: secret } = cluster.describe();
  for (const node of nodes) {
    const { http } = node;
    const { text } = await askNode({
      http,
      path: '/v1/acl/tokens',
      secret,
      timeoutMs: LIST_MAX_MS,
    });
    const tokens = JSON.parse(text) as { AccessorID: string; Description: string }[];
    load.faultsOf(node, tokens);
    locals.holdAgainst(
      node,
      tokens.map(({ AccessorID }) => AccessorID),
    );
  }
}

/** Clients of the primary are answered. */
async function goesOn({ registers }: Scene): Promise<void> {
  const before = registers.answered;
  await until('clients of the primary are answered', () => {
    const { reads, writes, revoked } = registers.answered;
    return reads > before.reads + 5 && writes > before.writes + 5 && revoked > before.revoked;
  });
}

/** Clients of the secondary get tokens that live there. */
async function locallyGoesOn({ locals }: Scene): Promise<void> {
  const before = locals.count;
  await until('the secondary makes tokens of its own', () => locals.count > before + 3);
}

/** Of the last entry of the global log that a datacenter has, as its first server tells it. */
async function position({ cluster }: Scene, datacenter: string): Promise<number> {
  const [first] = nodesNamed(cluster.plan, datacenter);
  const { http } = cluster.describe().nodes.find(({ name }) => name === first)!;
  const { headers } = await askNode({ http, path: '/v1/status/leader', timeoutMs: LIST_MAX_MS });
  return Number(String(headers['x-service-position']).split('.')[1]);
}

/** The secondary has what the primary has now. */
async function arrives(scene: Scene): Promise<void> {
  const goal = await position(scene, PRIMARY);
  await until(
    `${SECONDARY} has entry ${goal}`,
    async () => (await position(scene, SECONDARY)) >= goal,
  );
}

async function aloneFor(scene: Scene, ms: number): Promise<void> {
  await locallyGoesOn(scene);
  await goesOn(scene);
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** Entries that the secondary misses. However slow the machine is, it is enough that they go on. */
async function isMissed(scene: Scene): Promise<void> {
  let last = await position(scene, PRIMARY);
  const goal = last + MISSED_ENTRIES;
  while (last < goal) {
    const before = last;
    await until('more is written', async () => {
      last = await position(scene, PRIMARY);
      return last > before;
    });
  }
}

async function killLeader({ cluster }: Scene, datacenter: string): Promise<void> {
  const leader = await leaderAmong(cluster, nodesNamed(cluster.plan, datacenter));
  await cluster.kill(leader);
  cluster.start(leader);
  await cluster.ready(datacenter);
}

const FAULTS: readonly {
  readonly name: string;
  readonly strike: (scene: Scene) => Promise<void>;
}[] = [
  {
    name: 'the primary cannot be reached',
    strike: async (scene) => {
      scene.cluster.partition({ from: PRIMARY, to: SECONDARY, isOneWay: false });
      await aloneFor(scene, ALONE_MS);
    },
  },
  {
    name: 'the primary cannot be heard',
    strike: async (scene) => {
      scene.cluster.partition({ from: PRIMARY, to: SECONDARY, isOneWay: true });
      await aloneFor(scene, ALONE_MS);
    },
  },
  {
    name: 'the secondary cannot be heard',
    strike: async (scene) => {
      scene.cluster.partition({ from: SECONDARY, to: PRIMARY, isOneWay: true });
      await aloneFor(scene, ALONE_MS);
    },
  },
  {
    name: 'the leader of the primary is killed while the secondary catches up',
    strike: async (scene) => {
      scene.cluster.partition({ from: PRIMARY, to: SECONDARY, isOneWay: false });
      await isMissed(scene);
      scene.cluster.heal();
      await killLeader(scene, PRIMARY);
      await goesOn(scene);
    },
  },
  {
    name: 'the leader of the secondary is killed while it catches up',
    strike: async (scene) => {
      scene.cluster.partition({ from: PRIMARY, to: SECONDARY, isOneWay: false });
      await isMissed(scene);
      scene.cluster.heal();
      await killLeader(scene, SECONDARY);
      await locallyGoesOn(scene);
    },
  },
];

/** Only of a group that is more than this disk. */
const LOST_DISK = {
  name: 'the leader of the secondary loses its disk',
  strike: async (scene: Scene): Promise<void> => {
    const { cluster } = scene;
    const leader = await leaderAmong(cluster, nodesNamed(cluster.plan, SECONDARY));
    await cluster.kill(leader);
    await cluster.restart(leader, { isDiskReplaced: true });
    await locallyGoesOn(scene);
  },
};

t.test(
  'datacenters: whatever happens between them, nothing that was answered is lost',
  async (t) => {
    const scene = await begin(t);
    await goesOn(scene);
    for (let round = 1; round <= (isLong ? Number(values.rounds) : 1); round += 1) {
      for (const { name, strike } of isLong ? [...FAULTS, LOST_DISK] : FAULTS) {
        t.comment(`round ${round}: ${name}`);
        await strike(scene);
        scene.cluster.heal();
        await arrives(scene);
      }
    }
    await scene.end();
  },
);

t.test('datacenters: who was away for longer than the log is kept comes back', async (t) => {
  const scene = await begin(t, { 'federation-log-max-age': '3s' });
  const { cluster } = scene;
  await goesOn(scene);
  let killed = 0;
  let missed = 0;
  while (killed < (isLong ? Number(values.rounds) : 1) && missed < MISSES_MAX) {
    cluster.partition({ from: PRIMARY, to: SECONDARY, isOneWay: false });
    await isMissed(scene);
    await until('the secondary is given up', async () => (await keptAt(scene)).dropped === 1);
    // What was sent until then is still on its way, and comes when the line is mended.
    const lastSent = await position(scene, PRIMARY);
    await until('the log does not reach back to the secondary', async () => {
      return (await keptAt(scene)).trimmedSeq > lastSent;
    });
    if (await killInsideSnapshot(scene)) killed += 1;
    else missed += 1;
    await arrives(scene);
    await locallyGoesOn(scene);
  }
  t.ok(missed < MISSES_MAX, 'the secondary was killed while it took a snapshot');
  await scene.end();
});

/** How many the primary gave up, and up to where it has trimmed its log. */
async function keptAt({ cluster }: Scene): Promise<{ dropped: number; trimmedSeq: number }> {
  const metrics = await metricsOf(cluster, PRIMARY);
  const [dropped, head, kept] = ['dropped_slots', 'position', 'log_entries'].map((name) =>
    Number(new RegExp(`^conclave_federation_${name} (\\d+)$`, 'm').exec(metrics)?.[1]),
  );
  return { dropped: dropped!, trimmedSeq: head! - kept! };
}

/** Mends the line, and kills who takes the snapshot before it is in place. False when it was already. */
async function killInsideSnapshot({ cluster }: Scene): Promise<boolean> {
  const between = { from: PRIMARY, to: SECONDARY, isOneWay: false };
  const leader = await leaderAmong(cluster, nodesNamed(cluster.plan, SECONDARY));
  const begun = countIn(cluster, leader, 'takes a snapshot');
  const ended = countIn(cluster, leader, 'a snapshot is in place');
  cluster.delay(between, SLOW_LINE_MS);
  cluster.heal();
  await until('a snapshot comes in', () => countIn(cluster, leader, 'takes a snapshot') > begun);
  await cluster.kill(leader);
  const isInside = countIn(cluster, leader, 'a snapshot is in place') === ended;
  cluster.delay(between, SHAPE.wanDelayMs);
  cluster.start(leader);
  await cluster.ready(SECONDARY);
  return isInside;
}

/** How often a server has said this in its log. */
function countIn(cluster: LocalCluster, name: string, says: string): number {
  const { log } = cluster.describe().nodes.find((node) => node.name === name)!;
  return readFileSync(log, 'utf8').split(JSON.stringify(says)).length - 1;
}

async function metricsOf(cluster: LocalCluster, datacenter: string): Promise<string> {
  const leader = await leaderAmong(cluster, nodesNamed(cluster.plan, datacenter));
  const { http } = cluster.describe().nodes.find(({ name }) => name === leader)!;
  const path = '/v1/agent/metrics?format=prometheus';
  const secret = cluster.plan.managementToken;
  return (await askNode({ http, path, secret, timeoutMs: LIST_MAX_MS })).text;
}
