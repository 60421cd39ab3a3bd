// A datacenter of three real processes while clients are at work: a leader is held still, one is cut off, a
// disk is replaced. What the clients were told is held to the checker of histories. `npm run test:system`
// does so for longer, with more faults and a seed of its own each time.

import { parseArgs } from 'node:util';
import t from 'tap';
import { askNode } from '../../scripts/cluster/ask-node.ts';
import type { LocalCluster } from '../../scripts/cluster/local-cluster.ts';
import { randomFrom } from '../hard/crash-load.ts';
import { checkOperations } from '../sim/linearizability/checker.ts';
import { registerModel } from '../sim/linearizability/register-model.ts';
import { until } from '../support/running/running-group.ts';
import { allTheSame, leaderAmong, othersOf, runCluster } from './cluster-under-test.ts';
import { HistoryClients } from './history-clients.ts';

const { values } = parseArgs({
  strict: false,
  options: {
    long: { type: 'boolean', default: false },
    seed: { type: 'string' },
    rounds: { type: 'string', default: '4' },
  },
});
const isLong = values.long === true;
const seed = isLong ? Number(values.seed ?? Date.now() % 2 ** 31) : 1;
const DATACENTER = 'dc1';
const STILL_MS = 5_000;
const ASK_MAX_MS = 60_000;

interface Scene {
  readonly cluster: LocalCluster;
  readonly clients: HistoryClients;
}

/** What is done to the leader, and what undoes it when the others have elected another one. */
interface LeaderFault {
  readonly name: string;
  /** Also in the short form. */
  readonly isShort: boolean;
  readonly strike: (cluster: LocalCluster, leader: string) => Promise<void> | void;
  readonly mend: (cluster: LocalCluster, leader: string) => Promise<void> | void;
}

const LEADER_FAULTS: readonly LeaderFault[] = [
  {
    name: 'is killed',
    isShort: false,
    strike: (cluster, leader) => cluster.kill(leader),
    mend: (cluster, leader) => cluster.start(leader),
  },
  {
    name: 'stands still',
    isShort: true,
    strike: (cluster, leader) => cluster.pause(leader),
    mend: (cluster, leader) => cluster.resume(leader),
  },
  {
    name: 'is cut off',
    isShort: true,
    strike: (cluster, leader) =>
      cluster.partition({ from: leader, to: DATACENTER, isOneWay: false }),
    mend: (cluster) => cluster.heal(),
  },
  {
    name: 'cannot be heard',
    isShort: false,
    strike: (cluster, leader) =>
      cluster.partition({ from: leader, to: DATACENTER, isOneWay: true }),
    mend: (cluster) => cluster.heal(),
  },
];

async function all(cluster: LocalCluster): Promise<string> {
  return await leaderAmong(cluster, othersOf(cluster, '', DATACENTER));
}

async function goesOn({ clients }: Scene): Promise<void> {
  const before = clients.answered;
  await until('clients are answered', () => {
    const { reads, writes, revoked } = clients.answered;
    return reads > before.reads + 10 && writes > before.writes + 10 && revoked > before.revoked;
  });
}

/** The others elect another leader and serve; then the old one comes back and follows. */
async function replaceLeader(scene: Scene, { strike, mend }: LeaderFault): Promise<void> {
  const { cluster } = scene;
  const leader = await all(cluster);
  await strike(cluster, leader);
  await leaderAmong(cluster, othersOf(cluster, leader, DATACENTER));
  await goesOn(scene);
  await mend(cluster, leader);
  await cluster.ready(DATACENTER);
  await all(cluster);
}

/** Resolves when the follower on the new disk has its vote: before, no other one may be lost. */
async function replaceDisk(scene: Scene): Promise<void> {
  const { cluster } = scene;
  const [follower] = othersOf(cluster, await all(cluster), DATACENTER);
  await cluster.kill(follower!);
  await cluster.restart(follower!, { isDiskReplaced: true });
  await goesOn(scene);
}

async function voterCount(cluster: LocalCluster): Promise<number> {
  const { nodes, management_token: secret } = cluster.describe();
  const path = '/v1/operator/raft/configuration';
  const { text } = await askNode({ http: nodes[0]!.http, path, secret, timeoutMs: ASK_MAX_MS });
  const { Servers } = JSON.parse(text) as { readonly Servers: readonly { Voter: boolean }[] };
  return Servers.filter(({ Voter }) => Voter).length;
}

/** So long that everybody who waits for it gives up. */
async function standStill(scene: Scene): Promise<void> {
  const { cluster } = scene;
  const leader = await all(cluster);
  await cluster.pause(leader);
  await new Promise((resolve) => setTimeout(resolve, STILL_MS));
  await cluster.resume(leader);
  await goesOn(scene);
}

t.setTimeout(isLong ? 0 : 120_000);

t.test(
  'datacenter: whatever is done to its leader, nothing that was answered is lost',
  async (t) => {
    t.comment(`seed ${seed}; again with: npm run test:system -- --seed ${seed}`);
    const cluster = await runCluster(t, { datacenters: 1, servers: 3, wanDelayMs: 0 });
    const random = randomFrom(seed);
    const clients = new HistoryClients({
      ...{ cluster: cluster.describe(), datacenters: [DATACENTER], random },
    });
    await clients.start();
    t.teardown(() => clients.stop());
    const scene = { cluster, clients };
    await goesOn(scene);
    const rounds = isLong ? Number(values.rounds) : 1;
    for (let round = 1; round <= rounds; round += 1) {
      const faults = isLong
        ? LEADER_FAULTS.toSorted(() => random() - 0.5)
        : LEADER_FAULTS.filter(({ isShort }) => isShort);
      for (const fault of faults) {
        t.comment(`round ${round}: the leader ${fault.name}`);
        await replaceLeader(scene, fault);
      }
      t.comment(`round ${round}: a disk is replaced`);
      await replaceDisk(scene);
      t.equal(await voterCount(cluster), 3, 'the server on the new disk votes');
      if (!isLong) continue;
      t.comment(`round ${round}: the leader stands still for five seconds`);
      await standStill(scene);
      t.comment(`round ${round}: all are restarted in turn`);
      await cluster.restart(DATACENTER, { isDiskReplaced: false });
    }
    await cluster.ready(DATACENTER);
    await clients.stop();
    t.same(clients.faults, []);
    const verdict = checkOperations(registerModel, clients.operations);
    t.equal(verdict.kind, 'legal', verdict.kind === 'illegal' ? verdict.text : verdict.kind);
    const { reads, writes, revoked } = clients.answered;
    t.comment(`${reads} reads, ${writes} writes, ${revoked} tokens revoked`);
    await allTheSame(cluster, DATACENTER);
  },
);
