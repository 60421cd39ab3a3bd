// Who may do what at the endpoints for operators, and when that is looked at.

import t from 'tap';
import type { Endpoint } from '../../../src/api/endpoints/endpoint.ts';
import {
  OPERATOR_ENDPOINTS,
  SNAPSHOT_ENDPOINTS,
} from '../../../src/api/endpoints/endpoints-operator.ts';
import { CALL, newPolicy, newToken, refusalOf } from '../../service/harness.ts';
import { uuidNumbered } from '../../support/fake-random.ts';
import { IDS, operatorServer, tell, withRules } from '../operator-support.ts';
import { ASKS, DIALECTS, entryOfToken, IN_VAIN, UNKNOWN } from './cases.ts';

const ALL: readonly Endpoint[] = Object.values<Endpoint>({
  ...OPERATOR_ENDPOINTS,
  ...SNAPSHOT_ENDPOINTS,
});

/** What some of them need besides. */
const ALSO = new Map([['PUT /operator/divergence?position=1.7', 'acl:write']]);

const RULES: readonly (readonly [rules: string, rights: readonly string[]])[] = [
  ['operator = "read"', ['operator:read']],
  ['operator = "write"', ['operator:read', 'operator:write']],
  ['acl = "read"', []],
  ['acl = "write"', ['acl:write']],
  ['acl = "write" operator = "write"', ['acl:write', 'operator:read', 'operator:write']],
  ['operator = "deny"', []],
];

t.test('rights: each endpoint asks for its own, snapshots for acl:write', async (t) => {
  t.equal(ASKS.length, ALL.length);
  const server = await operatorServer();
  for (const [rules, rights] of RULES) {
    const secret = await withRules(server, rules);
    for (const [ask, right, body] of ASKS) {
      const { status, text } = await tell(server, 'service', { ask, secret, body });
      const missing = [right, ALSO.get(ask) ?? right].find((each) => !rights.includes(each));
      const allowed = IN_VAIN.get(ask) ?? 200;
      t.equal(status, missing === undefined ? allowed : 403, `${rules}: ${ask} ${text}`);
      if (missing !== undefined) t.match(text, `lacks permission '${missing}'`);
    }
  }
});

t.test('clients.md: without a token everything is 403, in the words they compare', async (t) => {
  for (const defaultPolicy of ['deny', 'allow'] as const) {
    const server = await operatorServer({ service: { defaultPolicy } });
    for (const [ask, right, body] of ASKS) {
      if (defaultPolicy === 'allow' && right !== 'acl:write') continue;
      for (const dialect of DIALECTS) {
        const told = await tell(server, dialect, { ask, secret: '', body });
        const text = `Permission denied: anonymous token lacks permission '${right}'. The anonymous token is used implicitly when a request does not specify a token.`;
        t.same([told.status, told.text], [403, text], `${defaultPolicy} ${ask}`);
      }
    }
    t.same(server.archives.events, [], 'not a byte of an archive was taken or given');
  }
});

t.test('rights: an unknown secret is refused, and the refusal is counted', async (t) => {
  const server = await operatorServer();
  const secret = UNKNOWN as never;
  const told = await tell(server, 'service', { ask: 'GET /snapshot', secret });
  t.same([told.status, told.text], [403, 'ACL not found']);
  const reader = await withRules(server, 'acl = "read"');
  await tell(server, 'service', { ask: 'GET /snapshot', secret: reader });
  t.equal(server.harness.counts.get('acl.denied permission-denied'), 1);
});

t.test('rights: are looked at anew for each request', async (t) => {
  const server = await operatorServer();
  const secret = await withRules(server, 'operator = "read"');
  const ask = 'GET /operator/raft/configuration';
  t.equal((await tell(server, 'service', { ask, secret })).status, 200);
  const { harness } = server;
  const self = await harness.run('token.read-self', {}, { secret });
  await harness.run('token.delete', { accessorId: self.value?.token.accessorId ?? '' });
  t.equal((await tell(server, 'service', { ask, secret })).status, 403);
});

t.test('while ACLs are off everybody is an operator', async (t) => {
  const server = await operatorServer({
    service: { aclEnabled: false },
    http: { aclEnabled: false },
  });
  for (const [ask, , body] of ASKS) {
    const { status } = await tell(server, 'service', { ask, secret: '', body });
    t.equal(status, IN_VAIN.get(ask) ?? 200, ask);
  }
});

t.test('rights: whoever loses one in that moment changes nothing of the group', async (t) => {
  const { operator, harness, group } = await operatorServer();
  const id = await newPolicy(harness, 'admin', 'operator = "write"');
  const { secretId: secret } = await newToken(harness, { policies: [{ id }] });
  const { proposals } = harness;
  const taken = harness.run('policy.update', { id, draft: { name: 'admin', rules: '' } });
  while (harness.proposals === proposals) await Promise.resolve();
  const moved = operator.runForOther(
    'raft-transfer-leader',
    { id: undefined },
    { ...CALL, secret },
  );
  t.match(await refusalOf(moved), /^permission-denied: .* lacks permission 'operator:write'/);
  await taken;
  t.same(group.acts, []);
});

t.test('rights: a change of the group that waits is asked again whether it may be', async (t) => {
  const { operator, harness, group } = await operatorServer();
  for (const [name, input] of [
    ['raft-remove-peer', { server: { id: IDS.two } }],
    ['autopilot-set-configuration', { settings: group.settings, ifIndex: undefined }],
  ] as const) {
    const policies = [{ id: await newPolicy(harness, name, 'operator = "write"') }];
    const { accessorId, secretId: secret } = await newToken(harness, { policies });
    await operator.run(name, input as never, { ...CALL, secret });
    t.doesNotThrow(() => group.requireAllowed());
    const { proposals } = harness;
    const taken = harness.run('token.update', { accessorId, draft: {} });
    while (harness.proposals === proposals) await Promise.resolve();
    t.throws(() => group.requireAllowed(), { code: 'unavailable' });
    await taken;
    t.throws(() => group.requireAllowed(), { code: 'permission-denied' }, name);
  }
});

t.test('divergence: is not made anew by whoever loses the right in that moment', async (t) => {
  const { entry } = await entryOfToken({
    ...{ accessorId: uuidNumbered(901), secretId: uuidNumbered(902) },
    policies: [{ name: 'global-management' }],
  });
  const admin = 'acl = "write" operator = "write"';
  for (const [rules, lacks] of [
    ['', 'operator:write'],
    ['operator = "write"', 'acl:write'],
  ] as const) {
    const { operator, harness } = await operatorServer();
    const id = await newPolicy(harness, 'admin', admin);
    const { secretId: secret } = await newToken(harness, { policies: [{ id }] });
    const { proposals } = harness;
    const taken = harness.run('policy.update', { id, draft: { name: 'admin', rules } });
    while (harness.proposals === proposals) await Promise.resolve();
    const call = { ...CALL, secret };
    const made = operator.runForDatacenter('divergence-take', { entry, cas: undefined }, call);
    t.match(
      await refusalOf(made),
      new RegExp(`^permission-denied: .* lacks permission '${lacks}'`),
    );
    await taken;
    t.equal(harness.machine.totals().tokens, 3, 'the anonymous one, the first one, and the admin');
  }
});

t.test(
  'rights: whoever may write ACLs in a namespace alone is told that it is elsewhere',
  async (t) => {
    const { operator, harness } = await operatorServer();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    const rules = 'operator = "write" namespace "team" { acl = "write" }';
    const policies = [{ id: await newPolicy(harness, 'team', rules) }];
    const { secretId: secret } = await newToken(harness, { namespace: 'team', policies });
    const call = { ...CALL, secret };
    const wish = { position: { epoch: 1, seq: 7 }, cas: undefined };
    const says = /lacks permission 'acl:write' outside its namespace "team"$/;
    t.match(await refusalOf(operator.run('divergence-resubmit', wish, call)), says);
    t.match(await refusalOf(operator.save(call)), says);
  },
);

t.test('restore: waits for what is taken from its caller in that moment', async (t) => {
  const { operator, archives, harness } = await operatorServer();
  const policies = [{ id: await newPolicy(harness, 'admin', 'acl = "write"') }];
  const { accessorId, secretId: secret } = await newToken(harness, { policies });
  await operator.beginRestore({ ...CALL, secret });
  t.doesNotThrow(() => archives.requireAllowed());
  const { proposals } = harness;
  const taken = harness.run('token.update', { accessorId, draft: {} });
  while (harness.proposals === proposals) await Promise.resolve();
  t.throws(() => archives.requireAllowed(), {
    code: 'unavailable',
    message: /^nothing was written/,
  });
  await taken;
  t.throws(() => archives.requireAllowed(), { code: 'permission-denied' });
});
