// What moving the primary asks of a datacenter, put into the log of its own group: what comes of it is told as the log
// decides it.

import t from 'tap';
import type { GlobalCursor, GlobalEntry } from '../../../cluster/federation/global-log.ts';
import { AclError } from '../../../src/acl/error.ts';
import { GlobalGate } from '../../../src/node/federation/gate/global-gate.ts';
import { ComingEntries } from '../../../src/node/federation/ports/coming-entries.ts';
import { promotionPortOf } from '../../../src/node/federation/ports/promotion-port.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import {
  decodeEntry,
  encodeEntry,
  entryHash,
  entryLinks,
} from '../../../src/state/global-log/global-entry.ts';
import { FakeRandom } from '../../support/fake-random.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aPolicy, aToken } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';

const FORCED = { promises: [], isForced: true } as const;
const DATACENTERS = ['dc1', 'dc2'].map((name) => ({ name, isVoter: true, isWitness: false }));

async function aDatacenter(datacenter: string) {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one({ type: 'global-log.begin', datacenter, primary: 'dc1', isWitness: false });
  const { machine } = harness;
  const proposed: string[] = [];
  const gate = new GlobalGate({
    ...{ view: machine, datacenter, refusal: () => undefined, elsewhere: () => undefined },
    mayForceOut: () => false,
  });
  const port = promotionPortOf({
    ...{ machine, gate, random: new FakeRandom(), coming: new ComingEntries() },
    propose: ({ change }: { readonly change: Change }) => {
      proposed.push(change.type);
      return harness.one(change);
    },
    wallMs: () => 0,
    isReigning: () => true,
    leftBehindBy: async () => undefined,
  });
  return { harness, machine, gate, port, proposed, at: () => machine.replication()! };
}

type Place = Awaited<ReturnType<typeof aDatacenter>>;

/** What one lacks of the log of the other. */
async function restFor(to: Place, from: Place) {
  const cursor = to.at().cursor;
  const all = (await from.machine.globalEntries(cursor.seq, 1 << 24))!;
  const entries: GlobalEntry[] = all.map((bytes) => {
    const { epoch, seq } = entryLinks(bytes)!;
    return { epoch, seq, hash: entryHash(bytes), bytes };
  });
  return { epoch: from.at().maxEpochPromised, from: cursor, entries, to: from.at().cursor };
}

const write = (number: number): Change => {
  return { type: 'policy.set', presence: 'create', policy: aPolicy(number) };
};

/** dc1 is the primary, and dc2 has all that it wrote. */
async function theTwo() {
  const [one, two] = [await aDatacenter('dc1'), await aDatacenter('dc2')];
  await one.harness.one(BUILTINS);
  await one.harness.one({ type: 'datacenters.set', datacenters: DATACENTERS, majoritySeq: 0 });
  await two.port.take(await restFor(two, one));
  return { one, two };
}

t.test('port: a promise is what the log says, and so is a reign that begins', async (t) => {
  const { one, two } = await theTwo();
  const { cursor } = two.at();
  const ask = { epoch: 2, candidate: 'dc2', cursor, isTrial: false };
  t.ok(one.port.mayPromise(ask));
  t.equal(one.at().maxEpochPromised, 1, 'to ask binds nobody');
  t.same(await one.port.promise(ask), { isGranted: true, cursor, maxEpoch: 2 });
  const other = { ...ask, candidate: 'dc1' };
  t.notOk(one.port.mayPromise(other));
  t.same(await one.port.promise(other), { isGranted: false, cursor, maxEpoch: 2 });
  const claim = { epoch: 2, promises: ['dc1'], isForced: false };
  t.equal(await two.port.start(claim), false, 'without the own promise');
  await two.port.promise(ask);
  t.equal(await two.port.start(claim), true);
  t.match(two.port.state(), { isPrimary: true, epoch: 2, primary: 'dc2', maxEpoch: 2 });
  t.match(one.port.state(), { isPrimary: false, epoch: 1, primary: 'dc1', votedFor: 'dc2' });
});

t.test('port: what is given is taken where it fits, and a restore never', async (t) => {
  const { one, two } = await theTwo();
  await one.harness.one(write(1));
  const rest = await restFor(two, one);
  t.same(await two.port.take(rest), one.at().cursor);
  t.same(await two.port.take(rest), one.at().cursor, 'twice is once');
  await one.harness.one(write(2));
  const next = await restFor(two, one);
  const bytes = encodeEntry({ ...decodeEntry(next.entries[0]!.bytes), body: { kind: 'reset' } });
  const [first] = next.entries;
  const restore = { ...first!, bytes, hash: entryHash(bytes) };
  t.same([one.port.isRestore(restore), one.port.isRestore(first!)], [true, false]);
  const { epoch, seq, hash } = restore;
  const behind = { ...next, entries: [restore], to: { epoch, seq, hash } };
  await t.rejects(two.port.take(behind), { code: 'unavailable', message: /a restore follows/ });
  await t.rejects(one.port.take(next), /does not take what came: primary/);
  t.equal(two.at().cursor.seq, seq - 1);
});

t.test('port: whoever was outrun yields, goes back, or goes on from its fork', async (t) => {
  const forked = async () => {
    const { one, two } = await theTwo();
    const fork: GlobalCursor = two.at().cursor;
    await two.port.start({ epoch: 2, ...FORCED });
    for (const number of [1, 2]) await one.harness.one(write(number));
    const token = aToken(1, { local: true });
    await one.harness.one({ type: 'token.set', presence: 'create', token });
    return { one, two, fork, token };
  };
  const { one, two, fork, token } = await forked();
  await t.rejects(two.port.fence(one.at().epochs), /does not yield to it: fenced/);
  await t.rejects(two.port.forkPlace(one.at().epochs), AclError);
  one.proposed.length = 0;
  t.same(await one.port.forkPlace(two.at().epochs), fork);
  t.same(one.proposed, [], 'to look changes nothing');
  await one.port.goBack(two.at().epochs);
  t.match(one.at(), { cursor: fork, isDiverged: false, maxEpochPromised: 2 });
  t.same(one.at().divergent, [{ epoch: 1, first: fork.seq + 1, last: fork.seq + 2 }]);
  t.ok(one.machine.tokenBySecret(token.secretId), 'what lives there alone stays');
  t.equal(one.machine.policy(aPolicy(1).id), undefined);
  t.same(await one.port.take(await restFor(one, two)), two.at().cursor);
  t.equal(one.machine.digests().global, two.machine.digests().global);

  const twice = await forked();
  await twice.two.port.start({ epoch: 3, ...FORCED });
  await twice.one.port.goBack(twice.two.at().epochs);
  t.match(twice.one.at(), { cursor: twice.fork, isDiverged: false, maxEpochPromised: 2 });
  t.same(await twice.one.port.take(await restFor(twice.one, twice.two)), twice.two.at().cursor);

  const again = await forked();
  await again.one.port.fence(again.two.at().epochs);
  t.match(again.one.at(), { isDiverged: true, maxEpochPromised: 2 });
  t.equal(await again.one.port.start({ epoch: 3, ...FORCED }), true);
  t.match(again.one.at(), { isDiverged: false, divergent: [] });
  t.ok(again.one.machine.policy(aPolicy(2).id));
});

t.test('port: where all is settled is known when what was let through is written', async (t) => {
  const { one } = await theTwo();
  let decide: () => void = () => undefined;
  const written = one.gate.pass(write(1), async () => {
    await new Promise<void>((resolve) => {
      decide = resolve;
    });
    return one.harness.one(write(1));
  });
  const before = one.at().cursor.seq;
  one.port.seal();
  const settled = one.port.settled();
  await new Promise((resolve) => setImmediate(resolve));
  decide();
  await written;
  t.equal((await settled).seq, before + 1);
  await t.rejects(
    one.gate.pass(write(2), async () => undefined),
    /is handing over/,
  );
});
