// How far a write is known to have come, and what is said of it.

import t from 'tap';
import { must } from '../../../cluster/base/assert.ts';
import { AclError } from '../../../src/acl/error.ts';
import type { AccessorId } from '../../../src/acl/ids.ts';
import { createOperations } from '../../../src/service/create-operations.ts';
import { DatacenterAway } from '../../../src/service/datacenters/federation.ts';
import type { OperationName } from '../../../src/service/operations.ts';
import type { WriteResult } from '../../../src/service/views.ts';
import { withLevelOfNothing } from '../../../src/service/writes/acknowledge.ts';
import { loneDatacenter } from '../../support/state-and-service/lone-datacenter.ts';
import { CALL, createHarness, newToken, refusalOf } from '../harness.ts';
import { ABSENT, settled, twoDatacenters } from './cases.ts';

t.test('replication: who is the primary no more says how far it is behind', async (t) => {
  const lone = loneDatacenter('dc1', () => ({ epoch: 1, seq: 1 })).status();
  const own = must(lone.datacenters[0], 'itself');
  const shown = async (fields: Partial<typeof own>) => {
    const status = () => ({ ...lone, datacenters: [{ ...own, ...fields }] });
    const harness = await createHarness({}, { status });
    return await harness.run('replication.status', {});
  };
  t.match(await shown({}), { enabled: false, running: false, sourceDatacenter: '' });
  const apart = {
    state: 'stopped',
    lagMs: undefined,
    lastError: 'the primary has not what',
  } as const;
  t.match(await shown(apart), {
    ...{ enabled: true, running: false, sourceDatacenter: '' },
    lastErrorMessage: apart.lastError,
  });
  t.match(await shown({ state: 'snapshot' }), { enabled: true, running: true });
});

t.test('acknowledgement: as many as were asked for, or it is said', async (t) => {
  let reached: 'primary' | 'majority' = 'primary';
  const asked: string[] = [];
  const names = ['dc1', 'dc2', 'dc3'];
  let mayCountRemoved = false;
  const { primary } = await twoDatacenters({
    datacenters: () => names,
    mayCountRemoved: () => mayCountRemoved,
    acknowledged: (_position, wanted, limitMs) => {
      asked.push(`${wanted} ${limitMs}`);
      return Promise.resolve(reached);
    },
  });
  const policy = (name: string, call: object) =>
    primary.run('policy.create', { draft: { name } }, call);
  t.equal((await policy('a', {})).meta.ack, 'primary');
  t.same(asked, []);
  t.match(
    await refusalOf(policy('b', { ack: 'all', ackTimeoutMs: 70 })),
    /^wait-timeout: The write stands at position 1\.\d+, but in time it was acknowledged by the primary only and not by all datacenters$/,
  );
  t.equal(await refusalOf(primary.run('policy.read-by-name', { name: 'b' })), 'ok');
  const { id } = (await policy('c', {})).value.policy;
  const gone = await primary.run('policy.delete', { id });
  t.equal(gone.meta.ack, 'primary', 'a default that was not reached is only told');
  reached = 'majority';
  t.equal((await policy('d', { ack: 'majority' })).meta.ack, 'majority');
  t.same(asked, ['all 70', 'majority 5000', 'majority 5000']);
  await policy('f', { ack: 'majority', ackTimeoutMs: 3_600_000 });
  t.equal(asked.at(-1), 'majority 600000', 'nobody waits longer');
  names.pop();
  const kept = (await policy('e', {})).value.policy.id;
  const alone = await primary.run('policy.delete', { id: kept });
  t.equal(alone.meta.ack, 'primary', 'and two datacenters do not wait for each other');
  mayCountRemoved = true;
  const last = (await policy('g', {})).value.policy.id;
  const waited = await primary.run('policy.delete', { id: last });
  const says = 'but where the other one may be elected with who was removed';
  t.same([waited.meta.ack, asked.at(-1)], ['majority', 'majority 5000'], says);
  names.pop();
  const lone = await primary.run('policy.delete', { id: last });
  t.equal(lone.meta.ack, 'primary', 'where nobody else is left, there is nobody to wait for');
});

t.test('acknowledgement: a deletion that is tried again waits as the first one did', async (t) => {
  let reached: 'primary' | 'majority' | 'all' = 'primary';
  const waitedFor: string[] = [];
  const { primary } = await twoDatacenters({
    datacenters: () => ['dc1', 'dc2', 'dc3'],
    acknowledged: ({ seq }, wanted, limitMs) => {
      waitedFor.push(`${seq} ${wanted} ${limitMs}`);
      return Promise.resolve(reached);
    },
  });
  const { accessorId } = await newToken(primary);
  const ids = [undefined, 'one', 'one', 'two'];
  const asked = { ack: 'all', ackTimeoutMs: 70 } as const;
  t.match(
    await refusalOf(primary.run('token.delete', { accessorId }, asked)),
    /^wait-timeout: The write stands /,
  );
  const { seq } = primary.machine.position();
  for (const requestId of ids) {
    t.equal(
      await refusalOf(primary.run('token.delete', { accessorId }, { ...asked, requestId })),
      `wait-timeout: There was nothing to delete at position 1.${seq}, but in time it was acknowledged by the primary only and not by all datacenters`,
    );
  }
  const lesser = await primary.run('token.delete', { accessorId });
  t.same([lesser.value, lesser.meta.ack], [false, 'primary'], 'a default is only told');
  t.same(waitedFor, [...Array<string>(5).fill(`${seq} all 70`), `${seq} majority 5000`]);
  reached = 'all';
  for (const requestId of ids) {
    const { value, meta } = await primary.run(
      'token.delete',
      { accessorId },
      { ...asked, requestId },
    );
    t.same([value, meta.ack, meta.position.seq], [false, 'all', seq]);
  }
  for (const [name, input] of NOTHING) {
    const { value, meta } = (await primary.run(
      name,
      input as never,
      asked,
    )) as WriteResult<boolean>;
    t.same([value, meta.ack], [false, 'all'], name);
  }
});

t.test('acknowledgement: who takes no writes tells nobody that there is nothing', async (t) => {
  let closed: AclError | undefined;
  let primary = 'dc1';
  const harness = await createHarness(
    {},
    {
      datacenters: () => ['dc1', 'dc2'],
      primary: () => ({ datacenter: primary, epoch: 1 }),
      closedBecause: () => closed,
    },
  );
  const token = ['token.delete', { accessorId: ABSENT }] as const;
  const all = [token, ...NOTHING];
  const asked = { requestId: 'one' };
  closed = new AclError('unavailable', 'Nothing was written: dc2 is said to have begun epoch 2');
  for (const [name, input] of all) {
    const told = await refusalOf(harness.run(name, input as never, asked));
    t.equal(told, `unavailable: ${closed.message}`, name);
  }
  closed = undefined;
  for (const [name, input] of all) {
    const { value } = (await harness.run(name, input as never, asked)) as WriteResult<boolean>;
    t.equal(value, false, `${name}: the refusal is not remembered`);
  }
  closed = new AclError('not-primary', 'Nothing was written: the primary is dc2');
  primary = 'dc2';
  const late = { name: token[0], input: { accessorId: ABSENT }, call: CALL };
  const { value, meta } = (await harness.door.runForOther(late)) as WriteResult<boolean>;
  const says = 'a secondary tells of its own local tokens, which nobody else has';
  t.same([value, meta.ack], [false, undefined], says);
});

t.test(
  'acknowledgement: who has not heard of the next primary tells nobody of nothing',
  async (t) => {
    const harness = await createHarness({}, { datacenters: () => ['dc1', 'dc3'] });
    let primary = { datacenter: 'dc1', epoch: 1 };
    const meta = { index: 1, ack: undefined, replayed: false };
    const asked: string[] = [];
    const { door } = harness;
    const behind = createOperations({
      ...harness.deps,
      leaderContact: () => ({ isLeader: false, knownLeader: true, lastContactMs: 0 }),
      remote: {
        ...harness.deps.remote,
        // The leader has heard of it, and has not what the next one has written.
        runAtLeader: async (name) => {
          asked.push(`dc1 ${name}`);
          primary = { datacenter: 'dc3', epoch: 2 };
          return { value: false, meta: { ...meta, position: { epoch: 2, seq: 7 } } } as never;
        },
      },
      federation: {
        ...harness.deps.federation,
        primary: () => primary,
        run: async (datacenter, { name }) => {
          asked.push(`${datacenter} ${name}`);
          return { value: true, meta: { ...meta, position: { epoch: 2, seq: 9 } } };
        },
      },
    });
    const all = [['token.delete', { accessorId: ABSENT }], ...NOTHING] as const;
    for (const [name, input] of all) {
      asked.length = 0;
      primary = { datacenter: 'dc1', epoch: 1 };
      const running = behind.run(name, input as never, CALL) as Promise<WriteResult<boolean>>;
      const { value } = await settled({ secondary: { ...harness, door } }, running);
      t.same([value, asked], [true, [`dc1 ${name}`, `dc3 ${name}`]]);
    }
  },
);

t.test('acknowledgement: nobody is waited for where nobody else is to have it', async (t) => {
  const names = ['dc1'];
  const asked: string[] = [];
  const harness = await createHarness(
    {},
    {
      datacenters: () => names,
      acknowledged: (_position, wanted) => {
        asked.push(wanted);
        return Promise.resolve('primary');
      },
    },
  );
  const alone = await harness.run('policy.create', { draft: { name: 'a' } }, { ack: 'all' });
  t.equal(alone.meta.ack, 'all', 'all of one have it');
  names.push('dc2', 'dc3');
  const local = { draft: { local: true } };
  const { value, meta } = await harness.run('token.create', local, { ack: 'all' });
  t.equal(meta.ack, undefined, 'a local token is of this datacenter alone');
  await harness.run('token.delete', value.token, { ack: 'all' });
  const { accessorId } = await newToken(harness);
  const gone = await harness.run('token.delete', { accessorId }, { ack: 'primary' });
  t.same([gone.value, gone.meta.ack], [true, 'primary'], 'whoever says so need not wait');
  t.same(asked, []);
  const { proposals } = harness;
  const back = await harness.run('datacenter.allow', { name: 'dc1', isForced: false });
  t.same([back.value, harness.proposals], [false, proposals], 'who was not removed is there');
  t.same(asked.splice(0), ['majority']);
  const told = { ...back, meta: { ...back.meta, ack: 'all' as const } };
  const service = { federation: harness.deps.federation, settings: harness.deps.settings };
  t.equal(await withLevelOfNothing(service as never, CALL, told as never), told);
  t.same(asked, [], 'what the log has found missing was waited for');
});

/** Deletions of what nobody has made. */
const NOTHING: readonly (readonly [OperationName, object])[] = [
  ['policy.delete', { id: ABSENT }],
  ['role.delete', { id: ABSENT }],
  ['binding-rule.delete', { id: ABSENT }],
  ['auth-method.delete', { name: 'absent' }],
  ['namespace.delete', { name: 'absent' }],
  ['datacenter.remove', { name: 'absent', isForced: false }],
  ['datacenter.allow', { name: 'absent', isForced: false }],
];

t.test('acknowledgement: others that are late do not keep a local token alive', async (t) => {
  const names = ['dc1', 'dc2', 'dc3'];
  const home = await createHarness(
    { datacenter: 'dc3' },
    { datacenters: () => names, primary: () => ({ datacenter: 'dc1', epoch: 3 }) },
  );
  const isAway = { dc3: false };
  const primary = await createHarness(
    {},
    {
      datacenters: () => names,
      acknowledged: () => Promise.resolve('primary'),
      run: (_datacenter, errand) => {
        if (isAway.dc3) throw new DatacenterAway('dc3', 'the line is cut');
        return home.door.runForDatacenter(errand as never, 'dc1');
      },
    },
  );
  const there = { datacenter: 'dc3', ack: 'all' } as const;
  const gone = (accessorId: AccessorId) =>
    settled({ secondary: primary }, primary.run('token.delete', { accessorId }, there));
  const { accessorId } = await newToken(home, { local: true });
  t.equal((await gone(accessorId)).value, true);
  t.equal(home.machine.token(accessorId), undefined);
  const late = /^wait-timeout: There was nothing to delete /;
  t.match(await refusalOf(gone(accessorId)), late, 'what it was is not known any more');
  t.match(await refusalOf(gone(ABSENT)), late);
  isAway.dc3 = true;
  t.match(await refusalOf(gone(ABSENT)), late);
  const shared = await newToken(primary);
  t.match(await refusalOf(gone(shared.accessorId)), /^wait-timeout: The write stands /);
});
