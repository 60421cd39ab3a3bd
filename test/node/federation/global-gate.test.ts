// What a leader of the primary lets through to its log, by the reasons that stand and by who hands over; and when its
// lease is such a reason.

import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import { GlobalGate } from '../../../src/node/federation/gate/global-gate.ts';
import { PrimaryLease } from '../../../src/node/federation/gate/primary-lease.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { aPolicy, aToken } from '../../support/state-and-service/fixtures.ts';

const LOCAL = aToken(1, { local: true });
const SHARED = aToken(2);

const GLOBAL: Change = { type: 'policy.set', presence: 'create', policy: aPolicy(1) };
const OWN: Change = { type: 'token.set', presence: 'create', token: LOCAL };
const reap = (...tokens: readonly { readonly accessorId: string }[]): Change => ({
  type: 'token.reap',
  accessorIds: tokens.map(({ accessorId }) => accessorId) as never,
});
const remove = (name: string, isForced: boolean): Change => ({
  ...{ type: 'datacenter.remove', majoritySeq: 0, name, isForced },
});

function aGate() {
  const state: { refusal?: AclError; elsewhere?: AclError; mayForceOut: boolean } = {
    mayForceOut: true,
  };
  const tokens = new Map([LOCAL, SHARED].map((token) => [token.accessorId as string, token]));
  const gate = new GlobalGate({
    view: { token: (id) => tokens.get(id) as never },
    datacenter: 'dc1',
    refusal: () => state.refusal,
    elsewhere: () => state.elsewhere,
    mayForceOut: () => state.mayForceOut,
  });
  const passes = (change: Change): Promise<string> =>
    gate.pass(change, async () => 'passed').catch(({ message }: Error) => message);
  return { gate, passes, state };
}

t.test(
  'gate: what all share is kept out by each reason, what lives here alone by none',
  async (t) => {
    const { gate, passes, state } = aGate();
    t.equal(await passes(GLOBAL), 'passed');
    const reasons = [
      () => Object.assign(state, { refusal: new AclError('unavailable', 'no') }),
      () =>
        Object.assign(state, { refusal: undefined, elsewhere: new AclError('not-primary', 'no') }),
      () => {
        Object.assign(state, { elsewhere: undefined });
        gate.seal();
      },
    ];
    for (const stand of reasons) {
      stand();
      t.not(await passes(GLOBAL), 'passed');
      t.not(await passes({ type: 'token.delete', accessorId: SHARED.accessorId }), 'passed');
      t.equal(await passes(OWN), 'passed');
      t.equal(await passes({ type: 'token.delete', accessorId: LOCAL.accessorId }), 'passed');
      t.equal(await passes(reap(LOCAL)), 'passed');
    }
    t.match(
      await passes(reap(LOCAL, SHARED)),
      /^Nothing was written: datacenter dc1 is handing over/,
    );
  },
);

t.test(
  'gate: the housekeeping of who is not the primary deletes what lives there alone',
  async (t) => {
    const { passes, state } = aGate();
    state.elsewhere = new AclError('not-primary', 'no');
    t.equal(await passes(reap(LOCAL, SHARED)), 'passed', 'its log takes that alone');
  },
);

t.test('gate: whoever hands over is told when nothing is under way any more', async (t) => {
  const { gate, passes } = aGate();
  await gate.idle();
  const ends: (() => void)[] = [];
  const writes = [1, 2].map(() =>
    gate.pass(GLOBAL, () => new Promise<void>((resolve) => ends.push(resolve))),
  );
  const failed = gate.pass(GLOBAL, async () => Promise.reject(new Error('it is lost')));
  void gate.pass(OWN, () => new Promise<void>(() => undefined));
  await t.rejects(failed, /it is lost/);
  const release = gate.seal();
  let isIdle = false;
  const idle = gate.idle().then(() => {
    isIdle = true;
  });
  for (const [number, end] of ends.entries()) {
    await new Promise((resolve) => setImmediate(resolve));
    t.notOk(isIdle, `${2 - number} are under way`);
    end();
  }
  await Promise.all([...writes, idle]);
  const again = gate.seal();
  release();
  release();
  t.not(await passes(GLOBAL), 'passed', 'somebody else hands over, too');
  again();
  t.equal(await passes(GLOBAL), 'passed');
});

t.test('gate: who is removed by force ends what the others are waited for', async (t) => {
  const { gate, passes, state } = aGate();
  state.refusal = new AclError('unavailable', 'no');
  t.equal(await passes(remove('dc2', true)), 'passed');
  t.equal(await passes(remove('dc2', false)), 'no');
  state.mayForceOut = false;
  t.equal(await passes(remove('dc2', true)), 'no');
  state.mayForceOut = true;
  gate.seal();
  t.match(await passes(remove('dc2', true)), /is handing over/, 'the successor will do it');
});

function aLease(voters: readonly string[] | undefined, leaseMs = 30_000) {
  const clock = new FakeClock(1_000_000);
  const heard = new Map<string, number>();
  const lease = new PrimaryLease({
    ...{ clock, datacenter: 'dc1', leaseMs, voters: () => voters },
    heardAtMs: (each) => heard.get(each),
  });
  const hear = (...names: readonly string[]): void => {
    for (const each of names) heard.set(each, clock.monotonicMs());
  };
  const holds = (): boolean => lease.refusal() === undefined;
  return { clock, hear, holds, lease };
}

t.test('lease: holds as long as a majority was heard, counted from when it was', (t) => {
  for (const [voters, needed] of [
    [['dc1', 'dc2', 'dc3'], 1],
    [['dc1', 'dc2', 'dc3', 'dc4'], 2],
    [['dc1', 'dc2', 'dc3', 'dc4', 'dc5'], 2],
  ] as const) {
    const { clock, hear, holds, lease } = aLease(voters);
    clock.advance(30_000);
    t.ok(holds(), 'nobody can have been heard before it began');
    clock.advance(1);
    t.notOk(holds());
    lease.begin();
    t.ok(holds(), 'another reign');
    clock.advance(20_000);
    hear(...voters.slice(1, needed));
    clock.advance(10_001);
    t.notOk(holds(), `${needed - 1} others are no majority of ${voters.length}`);
    hear(...voters.slice(1, needed + 1));
    clock.advance(30_000);
    t.ok(holds());
    clock.advance(1);
    t.match(lease.refusal()?.message, new RegExp(`a majority of the ${voters.length} .* for 30s`));
  }
  t.end();
});

t.test(
  'lease: there is none of two datacenters, where none is wanted, and for who does not lead',
  (t) => {
    const leases = [aLease(['dc1', 'dc2']), aLease(['dc1', 'dc2', 'dc3'], 0), aLease(undefined)];
    for (const { clock, holds } of leases) {
      clock.advance(1_000_000);
      t.ok(holds());
    }
    t.end();
  },
);
