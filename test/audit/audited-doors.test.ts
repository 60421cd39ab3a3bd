// The service with an audit log behind its door: what is recorded of each request, by whom, and what never is.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import type { NamespaceName, SecretId } from '../../src/acl/ids.ts';
import { AuditTrail } from '../../src/audit/audit-trail.ts';
import { AuditedDoors } from '../../src/audit/audited-doors.ts';
import type { Operations } from '../../src/service/operations.ts';
import type { Operator } from '../../src/service/operators/operator-operations.ts';
import { settled, twoDatacenters } from '../service/datacenters/cases.ts';
import { CALL, createHarness, type Harness, newToken, ROOT } from '../service/harness.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryAuditFile } from './memory-audit-file.ts';

const SERVER = 'c0ffee00-1111-4222-8333-444455556666';
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** `isBehind`: the server that is asked knows no token and no id yet. */
async function audited(given: { isRequired?: boolean; isBehind?: () => boolean } = {}) {
  const { isRequired = false, isBehind = () => false } = given;
  const harness: Harness = await createHarness();
  const { machine } = harness;
  const known = <T>(read: () => T): T | undefined => (isBehind() ? undefined : read());
  const view = {
    token: (id: string) => known(() => machine.token(id)),
    tokenBySecret: (secret: SecretId) => known(() => machine.tokenBySecret(secret)),
    policy: (id: string) => known(() => machine.policy(id)),
    role: (id: string) => known(() => machine.role(id)),
    bindingRule: (id: string) => known(() => machine.bindingRule(id)),
    namespace: (name: string) => known(() => machine.namespace(name)),
    authMethod: (namespace: NamespaceName, name: string) =>
      known(() => machine.authMethod(namespace, name)),
  };
  const file = new MemoryAuditFile();
  const trail = new AuditTrail({
    ...{ file, clock: new FakeClock(), logger: SILENT, node: 'n1', datacenter: 'dc1' },
    ...{ rotateBytes: 1e9, isRequired },
  });
  await trail.open();
  const doors = new AuditedDoors(trail, {
    view,
    servers: () => [SERVER],
  });
  const operations = doors.operations(harness.operations);
  /** Those since the last look, without what all have. */
  let seen = 1;
  const records = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    const fresh = file.records.slice(seen);
    seen = file.records.length;
    return fresh.map(({ v: _v, time: _time, node: _node, at: _at, link: _link, ...rest }) => rest);
  };
  return { harness, file, trail, doors, operations, records };
}

const CLIENT = { remoteAddress: '10.1.2.3' };
const call = { ...CALL, ...CLIENT };

t.test('audit: a change says who made it, from where, of what, and where it stands', async (t) => {
  const { harness, doors, operations, records } = await audited();
  const root = harness.machine.tokenBySecret(ROOT)!.accessorId;
  const by = { accessorId: root, client: '10.1.2.3' };
  const made = await operations.run('policy.create', { draft: { name: 'web' } }, call);
  const { id, hash } = made.value.policy;
  const { index, position } = made.meta;
  const at = { index, position: `${position.epoch}.${position.seq}` };
  const object = { kind: 'policy', id, name: 'web', namespace: 'default' };
  t.same(await records(), [
    { event: 'answered', operation: 'policy.create', ...by, object, ...at, hash, outcome: 'done' },
  ]);
  const requestId = '0b5a3c1e-77aa-4c55-9f10-6d1f0a2b3c4d';
  await operations.run('policy.delete', { id }, { ...call, requestId });
  await operations.run('policy.delete', { id }, call);
  t.match(await records(), [
    {
      operation: 'policy.delete',
      requestId,
      object: { kind: 'policy', id },
      outcome: 'done',
    },
    { operation: 'policy.delete', outcome: 'nothing' },
  ]);
  await operations.run('policy.list', { page: {} }, call);
  t.same(await records(), [], 'a look is no change');
  const isGone = () => false;
  const handed: unknown[] = [];
  const answer: Operations['answer'] = (name, input, from, gone) => {
    handed.push(gone);
    return harness.operations.answer(name, input, from, gone);
  };
  const door = doors.operations({ ...harness.operations, answer });
  await door.answer('policy.create', { draft: { name: 'other' } }, call, isGone);
  await door.answer('policy.list', { page: {} }, call, isGone);
  t.ok(handed.length === 2 && handed.every((each) => each === isGone), 'whose client may be gone');
});

t.test(
  'audit: refusals are there, of looks too, and other mistakes of looks are not',
  async (t) => {
    const { harness, operations, records } = await audited();
    const { accessorId, secretId } = await newToken(harness);
    const poor = { ...call, secret: secretId };
    const stranger = { ...call, secret: 'nobody' as never };
    await t.rejects(operations.run('policy.create', { draft: { name: 'web' } }, poor));
    await t.rejects(operations.run('token.list', {} as never, poor));
    await t.rejects(operations.run('policy.read', { id: 'x' }, stranger));
    await t.rejects(operations.run('policy.read', { id: 'x' }, call), { code: 'invalid' });
    await t.rejects(operations.run('policy.create', { draft: { name: 'bad name' } }, call));
    const refused = { outcome: 'refused', error: 'permission-denied', accessorId };
    t.match(await records(), [
      { operation: 'policy.create', object: { name: 'web' }, ...refused },
      { operation: 'token.list', ...refused },
      { operation: 'policy.read', outcome: 'refused', error: 'token-unknown' },
      { operation: 'policy.create', outcome: 'refused', error: 'invalid' },
    ]);
  },
);

t.test('audit: who is refused without end is counted, whatever is wrong', async (t) => {
  const { file, trail, doors, harness, operations, records } = await audited();
  const { secretId } = await newToken(harness);
  const stranger = { ...call, secret: undefined };
  const login = { authMethod: 'none', bearerToken: 'x', meta: {}, namespace: undefined };
  const begin = { ...login, redirectUri: '', clientNonce: 'x' };
  const operator = doors.operator({
    beginRestore: () => Promise.reject(new AclError('permission-denied', 'no')),
  } as never);
  for (let each = 0; each < 5; each += 1) {
    const meta = { long: 'x'.repeat(10_000) };
    await t.rejects(operations.run('login', { ...login, meta }, stranger), { code: 'invalid' });
    await t.rejects(operations.run('oidc.auth-url', begin, stranger));
    await t.rejects(operator.beginRestore(stranger), { code: 'permission-denied' });
    const poor = { ...call, secret: secretId };
    await t.rejects(operations.run('login', { ...login, meta }, poor), { code: 'invalid' });
  }
  const granting = {
    ...operations,
    answer: async () => ({ authUrl: 'https://provider' }) as never,
  };
  await doors.operations(granting).run('oidc.auth-url', begin, stranger);
  const all = ['login', 'oidc.auth-url', 'snapshot-restore', 'login'];
  t.same(
    (await records()).map(({ operation }) => operation),
    all,
  );
  await trail.close();
  t.match(
    file.records.slice(-4),
    all.map((operation) => ({ operation, repeated: 4 })),
  );
});

t.test(
  'audit: a change that others are late to have is no refusal, and none is left out',
  async (t) => {
    const { trail, file, doors, records } = await audited();
    const two = await twoDatacenters({ acknowledged: async () => 'primary' });
    const { secondary } = two;
    const operations = doors.operations(secondary.door);
    const names = ['one', 'two'];
    for (const name of names) {
      const made = operations.run('policy.create', { draft: { name } }, { ...call, ack: 'all' });
      await t.rejects(settled(two, made), { code: 'wait-timeout', message: /^The write stands / });
    }
    t.match(
      await records(),
      names.map((name) => ({ object: { name }, outcome: 'unknown', error: 'wait-timeout' })),
    );
    const stranger = { ...call, secret: undefined, ack: 'all' } as const;
    const far = { ...stranger, minPosition: { epoch: 1, seq: 1_000 } };
    for (const name of names) {
      const waiting = operations.run('policy.create', { draft: { name } }, far);
      await t.rejects(settled(two, waiting), { message: /^Nothing was written\. / });
    }
    t.match(await records(), [{ outcome: 'refused', error: 'wait-timeout' }]);
    await trail.close();
    t.match(
      file.records.at(-1),
      { error: 'wait-timeout', repeated: 1 },
      'who may be refused for ever',
    );
  },
);

t.test('audit: what a server comes to know while a change is made is in its record', async (t) => {
  let isBehind = true;
  const { harness, doors, records } = await audited({ isBehind: () => isBehind });
  const { accessorId } = await newToken(harness);
  const operations = doors.operations({
    ...harness.operations,
    answer: async (name, input, by) => {
      const output = await harness.operations.run(name, input, by);
      isBehind = false;
      return output;
    },
  });
  const root = harness.machine.tokenBySecret(ROOT)!.accessorId;
  await operations.run('token.delete', { accessorId }, call);
  isBehind = true;
  const nowhere = '7e9b1c8a-0000-4000-8000-00000000abcd';
  await operations.run('token.delete', { accessorId: nowhere }, call);
  t.match(await records(), [
    { accessorId: root, object: { kind: 'token', id: accessorId }, outcome: 'done' },
    { accessorId: root, object: undefined, outcome: 'nothing' },
  ]);
});

t.test('audit: who is gone behind a change is in its record', async (t) => {
  let isBehind = false;
  const { harness, doors, records } = await audited({ isBehind: () => isBehind });
  const operations = doors.operations({
    ...harness.operations,
    answer: async (name, input, by) => {
      isBehind = true;
      return await harness.operations.run(name, input, by);
    },
  });
  const root = harness.machine.tokenBySecret(ROOT)!.accessorId;
  await operations.run('policy.create', { draft: { name: 'web' } }, call);
  t.match(await records(), [{ accessorId: root, operation: 'policy.create', outcome: 'done' }]);
});

t.test('audit: strangers are told apart by where they are', async (t) => {
  const { operations, records } = await audited();
  const clients = ['10.1.2.3', '10.1.2.4'];
  for (const secret of [undefined, 'nobody' as never])
    for (const remoteAddress of clients)
      await t.rejects(
        operations.run('token.list', {} as never, { ...call, secret, remoteAddress }),
      );
  t.same(
    (await records()).map(({ client }) => client),
    [...clients, ...clients],
  );
});

t.test('audit: what an object was made from is in the record', async (t) => {
  const { harness, operations, records } = await audited();
  const { accessorId } = await newToken(harness);
  await harness.run('auth-method.create', {
    draft: { name: 'ci', type: 'jwt', config: {}, tokenLocality: 'global' },
  });
  await harness.run('binding-rule.create', {
    draft: { authMethod: 'ci', bindType: 'service', bindName: 'web' },
  });
  const clone = { accessorId, description: undefined, namespace: undefined };
  const cloned = await operations.run('token.clone', clone, call);
  const login = { authMethod: 'ci', bearerToken: '{}', meta: {}, namespace: undefined };
  const stranger = { ...call, secret: undefined };
  const made = await operations.run('login', login, stranger);
  t.match(await records(), [
    { object: { id: cloned.value.token.accessorId }, from: { kind: 'token', id: accessorId } },
    { object: { id: made.value.token.accessorId }, from: { kind: 'auth-method', name: 'ci' } },
  ]);
});

t.test('audit: a name with an id in it is told where something is called so, or was', async (t) => {
  let isBehind = false;
  const { harness, operations, records } = await audited({ isBehind: () => isBehind });
  const id = '7e9b1c8a-0000-4000-8000-00000000abcd';
  const { secretId } = await newToken(harness);
  const [namespace, name] = [`ci-${id}`, `k8s-${id}`];
  await harness.run('namespace.create', { draft: { name: namespace } });
  const draft = { name, type: 'jwt', config: {}, tokenLocality: 'global' };
  for (const each of [namespace, 'default']) {
    await harness.run('auth-method.create', { draft: { ...draft, namespace: each } });
    const bound = { authMethod: name, bindType: 'service', bindName: 'web', namespace: each };
    await harness.run('binding-rule.create', { draft: bound });
  }
  const login = { authMethod: name, bearerToken: '{}', meta: {}, namespace };
  const stranger = { ...call, secret: undefined };
  for (const authMethod of [name, `none-${id}`, `k8s-${secretId}`])
    await t.rejects(operations.run('login', { ...login, authMethod, bearerToken: '' }, stranger));
  const made = await operations.run('login', login, stranger);
  isBehind = true;
  await operations.run('login', { ...login, namespace: 'default' }, stranger);
  await operations.run('auth-method.delete', { name }, call);
  isBehind = false;
  const poor = { ...call, secret: secretId };
  await t.rejects(operations.run('namespace.read', { name: namespace }, poor));
  const nowhere = { ...poor, namespaceParameter: `other-${id}` };
  await t.rejects(operations.run('token.list', {} as never, nowhere));
  const { accessorId } = made.value.token;
  const there = { ...call, namespaceParameter: namespace };
  await operations.run('token.delete', { accessorId }, there);
  await operations.run('auth-method.delete', { name }, there);
  await operations.run('namespace.delete', { name: namespace }, call);
  const method = { kind: 'auth-method', id: undefined, name };
  const unknown = { ...method, name: undefined, namespace };
  const refused = { operation: 'login', namespace: undefined, from: undefined, outcome: 'refused' };
  const told = (await records()).map(({ operation, namespace, object, from, outcome }) => ({
    ...{ operation, namespace, object, from, outcome },
  }));
  t.match(told, [
    { ...refused, object: { ...method, namespace } },
    { ...refused, object: unknown },
    { operation: 'login', object: { id: accessorId }, from: { ...method, namespace } },
    { operation: 'login', object: { kind: 'token' }, from: { ...method, namespace: 'default' } },
    { operation: 'auth-method.delete', object: method, outcome: 'done' },
    { operation: 'namespace.read', object: { kind: 'namespace', name: namespace } },
    { operation: 'token.list', namespace: undefined, object: undefined },
    { operation: 'token.delete', object: { id: accessorId }, namespace, outcome: 'done' },
    { operation: 'auth-method.delete', object: method, namespace, outcome: 'done' },
    { operation: 'namespace.delete', object: { kind: 'namespace', name: namespace } },
  ]);
});

t.test('audit: a refusal says in which namespace something was tried', async (t) => {
  const { harness, operations, records } = await audited();
  for (const name of ['team', 'other']) await harness.run('namespace.create', { draft: { name } });
  const { secretId } = await newToken(harness, { namespace: 'team' });
  const by = { ...call, secret: secretId };
  const list = (named: object) =>
    t.rejects(async () => operations.run('policy.list', { page: {} }, { ...by, ...named }));
  await list({ namespaceParameter: 'other' });
  await list({ namespaceParameter: '', namespaceHeader: '*' });
  const everywhere = { ...by, namespaceParameter: '', namespaceHeader: '*' };
  await t.rejects(async () => operations.run('auth-method.list', { page: {} }, everywhere));
  const login = { authMethod: 'none', bearerToken: 'x', meta: {}, namespace: 'team' };
  await t.rejects(operations.run('login', login, call));
  await t.rejects(operations.run('token.create', { draft: { namespace: 'default' } }, by));
  const mistyped = operations.run('policy.create', { draft: { namespace: 'No_Name' } }, by);
  await t.rejects(mistyped);
  const bearer = { ...by, namespaceParameter: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2hvcnQ' };
  await t.rejects(operations.run('token.create', { draft: {} }, bearer));
  const told = (await records()).map(({ operation, namespace, object, outcome }) => ({
    ...{ operation, namespace, object, outcome },
  }));
  const refused = { operation: 'policy.list', object: undefined, outcome: 'refused' };
  const object = { kind: 'token', namespace: 'default' };
  t.same(told, [
    { ...refused, namespace: 'other' },
    { ...refused, operation: 'auth-method.list', namespace: '*' },
    {
      ...{ ...refused, operation: 'login', namespace: undefined },
      object: { kind: 'auth-method', name: 'none', namespace: 'team' },
    },
    { ...refused, operation: 'token.create', namespace: undefined, object },
    { ...refused, operation: 'policy.create', namespace: undefined },
    { ...refused, operation: 'token.create', namespace: undefined },
  ]);
});

t.test('audit: no secret is in it, wherever somebody puts one', async (t) => {
  const { harness, file, trail, operations, records } = await audited();
  const { secretId, accessorId } = await newToken(harness);
  const misled = { namespaceParameter: secretId };
  const mistaken = { ...call, ...misled, requestId: secretId, datacenter: 'dc1' };
  await t.rejects(
    operations.run('token.delete', { accessorId: secretId }, mistaken).then((result) => {
      if (result.value === false) throw new Error('there was nothing');
    }),
  );
  await operations.run('policy.delete', { id: secretId }, call);
  await t.rejects(
    operations.run(
      'login',
      {
        authMethod: ROOT,
        bearerToken: 'a bearer that nobody may see',
        meta: {},
        namespace: undefined,
      },
      call,
    ),
  );
  const bearer = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2hvcnQ';
  await t.rejects(
    operations.run(
      'policy.delete',
      { id: `${secretId}/x` },
      { ...call, requestId: `Bearer ${secretId}` },
    ),
  );
  const misplaced = { authMethod: bearer, bearerToken: 'x', meta: {}, namespace: undefined };
  await t.rejects(operations.run('login', misplaced, call));
  const elsewhere = '7e9b1c8a-0000-4000-8000-00000000abcd';
  const loud = 'ABCDEF00-0000-4000-8000-00000000ABCD';
  await newToken(harness, { secretId: loud });
  const bare = secretId.replaceAll('-', '');
  const other = [secretId.toUpperCase(), bare, loud.toLowerCase()];
  for (const requestId of other)
    await operations.run('policy.delete', { id: elsewhere }, { ...call, requestId });
  await operations.run('policy.delete', { id: elsewhere }, { ...call, datacenter: secretId });
  await operations.run('token.update', { accessorId, draft: { description: 'x' } }, call);
  await operations.run('token.clone', { accessorId, description: 'x', namespace: undefined }, call);
  await operations.run('token.create', { draft: { secretId: elsewhere } }, call);
  t.equal((await records()).length, 11);
  await trail.close();
  for (const secret of [secretId, ROOT, 'nobody may see', bearer, elsewhere, ...other])
    t.notMatch(file.text, secret, 'neither a secret nor an id that nobody has');
});

t.test('audit: nor in what operators asked for, and nothing that is long', async (t) => {
  const { harness, file, trail, doors } = await audited();
  const { secretId } = await newToken(harness);
  const operator = doors.operator({ run: async () => 'done' } as never);
  const elsewhere = '7e9b1c8a-0000-4000-8000-00000000abcd';
  const blank = [` ${secretId}`, ` ${ROOT}`];
  const beside = [`${elsewhere}/clone`, `Bearer ${secretId}`, `"${elsewhere.replaceAll('-', '')}"`];
  const wrong = [secretId, ...blank, ROOT, elsewhere, elsewhere.toUpperCase(), ...beside];
  for (const id of [...wrong, 'x'.repeat(1_000_000)]) {
    await operator.run('raft-transfer-leader', { id }, call);
    await operator.run('raft-remove-peer', { server: { address: id } }, call);
  }
  await trail.close();
  t.equal(file.records.length, 1 + 20);
  for (const id of wrong) t.notMatch(file.text, id.trim());
  t.ok(file.text.length < 21 * 1024, `${file.text.length} characters`);
});

t.test('audit: where it is required, nothing is done that is not on disk before', async (t) => {
  const { harness, file, operations, doors, records } = await audited({ isRequired: true });
  await operations.run('policy.create', { draft: { name: 'web' } }, call);
  t.match(await records(), [
    { event: 'asked', operation: 'policy.create', object: { name: 'web' } },
    { event: 'answered', operation: 'policy.create', outcome: 'done' },
  ]);
  file.isFull = true;
  const refused = { code: 'unavailable', message: /^nothing was done: the audit log cannot be / };
  await t.rejects(operations.run('policy.create', { draft: { name: 'lost' } }, call), refused);
  const operator = doors.operator({
    run: () => Promise.reject(new Error('it must not be asked')),
    save: () => Promise.reject(new Error('it must not be asked')),
    beginRestore: () => Promise.reject(new Error('it must not be asked')),
  } as Operator);
  await t.rejects(operator.run('raft-transfer-leader', { id: undefined }, call), refused);
  await t.rejects(operator.beginRestore(call), refused);
  await t.rejects(operator.save(call), refused);
  const { refusal } = await harness.run('policy.read-by-name', { name: 'lost' });
  t.equal(refusal?.code, 'not-found', 'it is not there');
  await operations.run('policy.list', { page: {} }, call);
});

t.test(
  'audit: what operators do is in it, with what they asked for, and how it ended',
  async (t) => {
    const { doors, records } = await audited();
    const intake = {
      add: () => Promise.resolve(),
      finish: () => Promise.resolve({ index: 12 }),
      abandon: () => Promise.resolve(),
    };
    const unknown = new AclError('outcome-unknown', 'nobody knows');
    const operator = doors.operator({
      run: async (name: string) => {
        if (name === 'raft-remove-peer') throw unknown;
        return 'done';
      },
      save: async () => ({ meta: {} }),
      beginRestore: async () => intake,
    } as never);
    await operator.run('primary', {}, call);
    await operator.run('raft-transfer-leader', { id: SERVER.toUpperCase() }, call);
    const peer = { server: { address: '10.0.0.3:8300' } };
    await t.rejects(operator.run('raft-remove-peer', peer, call), unknown);
    const whole = await operator.beginRestore(call);
    await whole.finish();
    await whole.abandon();
    t.match(await records(), [
      { operation: 'raft-transfer-leader', input: { id: SERVER }, outcome: 'done' },
      { operation: 'raft-remove-peer', input: peer, outcome: 'unknown' },
      { operation: 'snapshot-restore', outcome: 'done', index: 12 },
    ]);
    await (await operator.beginRestore(call)).abandon();
    t.match(await records(), [{ operation: 'snapshot-restore', outcome: 'refused' }]);
  },
);

t.test('audit: what comes of it is told once, however an operator fails', async (t) => {
  const { doors, records } = await audited();
  const damaged = new AclError('malformed', 'it is damaged');
  const unknown = new AclError('outcome-unknown', 'nobody knows');
  const denied = new AclError('permission-denied', 'no');
  const fails = (error: unknown) => () => Promise.reject(error);
  const intakes = [
    { add: fails(damaged), finish: fails(damaged), abandon: async () => {} },
    { add: async () => {}, finish: fails(unknown), abandon: async () => {} },
  ];
  const operator = doors.operator({
    run: async (name: string) => {
      if (name === 'primary') throw denied;
      if (name === 'raft-transfer-leader') throw new Error('a fault of ours');
      return false;
    },
    beginRestore: async () => intakes.shift(),
  } as never);
  const first = await operator.beginRestore(call);
  await t.rejects(first.add(new Uint8Array()), damaged);
  await first.abandon();
  const second = await operator.beginRestore(call);
  await second.add(new Uint8Array());
  await t.rejects(second.finish(), unknown);
  await second.abandon();
  const settings = {} as never;
  await operator.run('autopilot-set-configuration', { settings, ifIndex: 7 }, call);
  await t.rejects(operator.run('raft-transfer-leader', { id: undefined }, call));
  await t.rejects(operator.run('primary', {}, call), denied);
  t.match(await records(), [
    { operation: 'snapshot-restore', outcome: 'refused', error: 'malformed' },
    { operation: 'snapshot-restore', outcome: 'unknown', error: 'outcome-unknown' },
    { operation: 'autopilot-set-configuration', outcome: 'nothing' },
    { operation: 'raft-transfer-leader', outcome: 'unknown', error: 'internal' },
    { operation: 'primary', outcome: 'refused', error: 'permission-denied' },
  ]);
});

t.test('audit: where it is required, what was asked has its answer, also a refusal', async (t) => {
  const { operations, records } = await audited({ isRequired: true });
  for (const name of ['bad name', 'bad name'])
    await t.rejects(operations.run('policy.create', { draft: { name } }, call));
  const refused = { event: 'answered', outcome: 'refused', error: 'invalid' };
  t.match(await records(), [{ event: 'asked' }, refused, { event: 'asked' }, refused]);
});

t.test('audit: what operators do to a datacenter is in it, by force or not', async (t) => {
  const { operations, records } = await audited();
  for (const isForced of [false, true])
    await operations.run('datacenter.remove', { name: 'dc9', isForced }, call);
  const object = { kind: 'datacenter', name: 'dc9' };
  t.match(
    await records(),
    [false, true].map((isForced) => ({ object, input: { isForced }, outcome: 'nothing' })),
  );
});

t.test('audit: a change of one server alone is there, with who asked for it', async (t) => {
  const { doors, harness, records } = await audited();
  const { accessorId, secretId } = await newToken(harness);
  const done: string[] = [];
  const carryOut = () => done.push('once');
  const input = { kind: 'default', other: secretId };
  await doors.changed('agent.set-token', { ...call, secret: secretId }, { input, carryOut });
  t.same(done, ['once']);
  const [record] = await records();
  t.match(record, { operation: 'agent.set-token', accessorId, outcome: 'done' });
  t.match(record, { input: { kind: 'default' } });
  t.notMatch(JSON.stringify(record), secretId);
});
