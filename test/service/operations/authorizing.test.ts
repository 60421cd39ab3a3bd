// Questions of rights and their explanations, and the templates of policies.

import t from 'tap';
import type { SecretId } from '../../../src/acl/ids.ts';
import type { AuthorizationItem } from '../../../src/authz/parse-authorization.ts';
import { createHarness, newPolicy, newToken, ROOT, refusalOf, secretWith } from '../harness.ts';
import { bind, logIn, newMethod } from './use-cases.ts';

t.test('authorize: answers batches, refuses what cannot be asked, explains', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'web', 'service "web" {\n  policy = "write"\n}\n');
  const draft = { name: 'r', policies: [{ id: policy }] };
  const role = (await harness.run('role.create', { draft })).value.role.id;
  const { secretId: secret, accessorId } = await newToken(harness, { roles: [{ id: role }] });
  const ask = (items: { resource: string; access: string; segment: string }[], explain = false) =>
    harness.run(
      'authorize',
      { items: items.map((item) => ({ ...item, namespace: undefined })), explain },
      { secret },
    );
  const web = { resource: 'service', access: 'WRITE', segment: 'web' };
  const db = { resource: 'service', access: 'read', segment: 'db' };
  t.same(
    (await ask([web, db])).map(({ allow }) => allow),
    [true, false],
  );
  const [why, whyNot] = await ask([web, db], true);
  t.match(why?.explanation, {
    decision: 'allow',
    decidedBy: 'rule',
    token: { accessorId },
    role: { id: role, name: 'r' },
    policy: { id: policy, name: 'web', namespace: 'default' },
    rule: { line: 1, column: 1 },
    summary: 'Allowed by policy "web", line 1, through role "r".',
  });
  t.match(whyNot?.explanation, { decision: 'deny', decidedBy: 'default-policy', rule: undefined });
  t.equal(
    await refusalOf(ask(Array.from({ length: 65 }, () => web))),
    'malformed: Refusing to process more than 64 authorizations at once',
  );
  t.equal(
    await refusalOf(ask([{ ...web, resource: 'x' }])),
    'malformed: Invalid ACL resource requested: "x"',
  );
});

t.test('authorize: who asks why is told how a rule decides that says nothing of it', async (t) => {
  const harness = await createHarness();
  const rules =
    'service "web" { policy = "write" }\nservice "db" { policy = "write" intentions = "read" }';
  const policies = [{ id: await newPolicy(harness, 'p', rules) }];
  const { secretId: secret } = await newToken(harness, { policies });
  const summaryOf = async (resource: string, access: string, segment: string) => {
    const items = [{ resource, access, segment, namespace: undefined }];
    const [answer] = await harness.run('authorize', { items, explain: true }, { secret });
    return answer?.explanation?.summary;
  };
  const nothing =
    'It says nothing of intentions: whoever may read or write the service may read them, and nobody may write them.';
  const web = `by policy "p", line 1. ${nothing}`;
  t.equal(await summaryOf('intention', 'write', 'web'), `Denied ${web}`);
  t.equal(await summaryOf('intention', 'read', 'web'), `Allowed ${web}`);
  t.equal(await summaryOf('intention', 'write', 'db'), 'Denied by policy "p", line 2.');
  t.equal(await summaryOf('service', 'write', 'web'), 'Allowed by policy "p", line 1.');
});

t.test('authorize: who asks why is told the way of what a namespace or a role gives', async (t) => {
  const harness = await createHarness();
  const id = await newPolicy(harness, 'p', 'key "k" { policy = "read" }');
  const far = { name: 'far', rules: '', datacenters: ['elsewhere'] };
  const idle = (await harness.run('policy.create', { draft: far })).value.policy.id;
  const serviceIdentities = [{ serviceName: 'web' }];
  const role = await harness.run('role.create', { draft: { name: 'r', serviceIdentities } });
  const { id: roleId } = role.value.role;
  const policyDefaults = [{ id }, { id: idle }];
  const draft = { name: 'default', policyDefaults };
  await harness.run('namespace.update', { name: 'default', draft });
  const twice = (
    await harness.run('role.create', { draft: { name: 's', policies: [{ id: idle }] } })
  ).value.role.id;
  const links = { policies: [{ id: idle }], roles: [{ id: roleId }, { id: twice }] };
  const { secretId: secret } = await newToken(harness, links);
  const ask = async (resource: string, segment: string) => {
    const items = [{ resource, access: 'read', segment, namespace: undefined }];
    const [answer] = await harness.run('authorize', { items, explain: true }, { secret });
    return answer?.explanation;
  };
  const ofDefault = 'Allowed by policy "p", line 1, a default of the namespace.';
  t.match(await ask('key', 'k'), { decidedBy: 'namespace-default', summary: ofDefault });
  const { summary, ...web } = (await ask('service', 'web')) ?? {};
  t.match(web, { identity: 'service web', role: { id: roleId, name: 'r' } });
  t.match(summary, /, made from service web through role "r"\.$/);
  const none = 'Denied by the default policy: no rule says anything about this.';
  const told = `${none} Not valid in this datacenter: policy "far".`;
  t.match(await ask('agent', 'n'), { summary: told }, 'once, whichever way it came');
  const { secretId: other } = await newToken(harness);
  const items = [{ resource: 'agent', access: 'read', segment: 'n', namespace: undefined }];
  const [answer] = await harness.run('authorize', { items, explain: true }, { secret: other });
  t.match(answer?.explanation, { summary: told }, 'by the namespace alone, too');
});

t.test('authorize: an explanation repeats of long texts as much as fits on a screen', async (t) => {
  const harness = await createHarness();
  const label = 'k'.repeat(500_000);
  const policies: { readonly id: string }[] = [];
  for (const level of ['deny', 'read']) {
    const rules = `key "${label}" { policy = "${level}" }`;
    policies.push({ id: await newPolicy(harness, level, rules) });
  }
  const description = 'd'.repeat(500_000);
  const { secretId: secret } = await newToken(harness, { policies, description });
  const question = { resource: 'key', access: 'write-prefix', segment: '', namespace: undefined };
  const items = Array.from({ length: 64 }, () => question);
  const answers = await harness.run('authorize', { items, explain: true }, { secret });
  const length = JSON.stringify(answers).length;
  t.ok(length < 100_000, `64 answers about rules of half a mebibyte: ${length} characters`);
  t.match(answers[0]?.explanation, {
    decision: 'deny',
    token: { description: /^d{200}…$/ },
    rule: { text: /^key "k{200}…" { policy = "deny" }$/ },
    overruled: [{ policy: 'read', rule: /^key "k{200}…" { policy = "read" }$/ }],
  });
});

t.test('authorize: an item that names a namespace is decided there', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'web', 'service "web" {\n  policy = "write"\n}\n');
  const { secretId: secret } = await newToken(harness, { policies: [{ id: policy }] });
  const web = { resource: 'service', access: 'write', segment: 'web' };
  const items = [undefined, 'default', 'elsewhere'].map((namespace) => ({ ...web, namespace }));
  const ask = async (call: object) =>
    (await harness.run('authorize', { items, explain: false }, { secret, ...call })).map(
      ({ allow }) => allow,
    );
  t.same(await ask({}), [true, true, false]);
  const named = [false, true, false];
  t.same(await ask({ namespaceParameter: 'elsewhere' }), named, 'else where the request says');
  t.same(await ask({ namespaceHeader: 'elsewhere' }), named);
});

t.test('authorize: while namespaces are off, a token is asked about where it lives', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const rules = 'key "k" { policy = "read" }';
  const inDefault = await newPolicy(harness, 'p', rules);
  const ofDefault = await newToken(harness, { policies: [{ id: inDefault }] });
  const inTeam = await newPolicy(harness, 'p', rules, 'team');
  const ofTeam = await newToken(harness, { namespace: 'team', policies: [{ id: inTeam }] });
  Object.assign(harness.deps.settings, { namespacesEnabled: false });
  const items = ['team', 'default', '*', 'Not/One', undefined].map((namespace) => {
    return { resource: 'key', access: 'read', segment: 'k', namespace };
  });
  for (const { secretId: secret } of [ofDefault, ofTeam]) {
    const call = { secret, namespaceParameter: 'elsewhere', namespaceHeader: 'elsewhere' };
    const answers = await harness.run('authorize', { items, explain: false }, call);
    t.same(
      answers.map(({ allow }) => allow),
      items.map(() => true),
    );
    const explained = await harness.run('authorize', { items, explain: true }, call);
    t.same(
      explained.map(({ namespace }) => namespace),
      items.map(({ namespace }) => namespace),
      'nor is it told of one',
    );
  }
});

t.test('authorize: who asks why is told in which namespace it was decided', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const { secretId: secret } = await newToken(harness, { namespace: 'team' });
  const web = { resource: 'service', access: 'write', segment: 'web' };
  const items = [undefined, 'default'].map((namespace) => ({ ...web, namespace }));
  const told = async (explain: boolean) =>
    (await harness.run('authorize', { items, explain }, { secret })).map(
      ({ namespace }) => namespace,
    );
  t.same(await told(true), ['team', 'default'], 'that of the token where the item names none');
  t.same(await told(false), [undefined, 'default'], 'else the item is given back as it came');
});

t.test('authorize: who asks why is told what does not count in this datacenter', async (t) => {
  const harness = await createHarness();
  const ofElsewhere = async (name: string) => {
    const rules = 'key_prefix "" {\n  policy = "read"\n}\n';
    const draft = { name, rules, datacenters: ['elsewhere'] };
    const { value } = await harness.run('policy.create', { draft });
    return { id: value.policy.id };
  };
  const summaryOf = async (draft: object) => {
    const { secretId: secret } = await newToken(harness, draft);
    const items = [{ resource: 'key', access: 'read', segment: 'x', namespace: undefined }];
    const [answer] = await harness.run('authorize', { items, explain: true }, { secret });
    return answer?.explanation?.summary;
  };
  const none = 'Denied by the default policy: no rule says anything about this.';
  const serviceIdentities = [{ serviceName: 'web', datacenters: ['elsewhere'] }];
  const first = await ofElsewhere('first');
  t.equal(await summaryOf({}), none);
  t.equal(
    await summaryOf({ policies: [first], serviceIdentities }),
    `${none} Not valid in this datacenter: policy "first", service web.`,
  );
  const policies = [first];
  for (let n = 2; n <= 5; n += 1) policies.push(await ofElsewhere(`n${n}`));
  const shown = 'policy "first", policy "n2", policy "n3", policy "n4"';
  const four = await summaryOf({ policies: policies.slice(0, 4) });
  t.equal(four, `${none} Not valid in this datacenter: ${shown}.`);
  const five = await summaryOf({ policies });
  t.equal(five, `${none} Not valid in this datacenter: ${shown}, and 1 more.`);
});

t.test('authorize: what does not count is looked for once, and anew when it changes', async (t) => {
  const harness = await createHarness();
  const draft = { name: 'far', rules: '', datacenters: ['elsewhere'] };
  const { id } = (await harness.run('policy.create', { draft })).value.policy;
  const { secretId: secret } = await newToken(harness, { policies: [{ id }] });
  const { machine } = harness;
  const policy = machine.policy.bind(machine);
  let lookCount = 0;
  machine.policy = (asked) => {
    lookCount += 1;
    return policy(asked);
  };
  const items = [{ resource: 'agent', access: 'read', segment: 'n', namespace: undefined }];
  const explained = async () => {
    const [answer] = await harness.run('authorize', { items, explain: true }, { secret });
    return answer?.explanation?.summary;
  };
  t.match(await explained(), /Not valid in this datacenter: policy "far"\.$/);
  lookCount = 0;
  t.match(await explained(), /Not valid in this datacenter: policy "far"\.$/);
  t.equal(lookCount, 0, 'a token may have very many');
  await harness.run('policy.update', { id, draft: { ...draft, name: 'farther' } });
  t.match(await explained(), /Not valid in this datacenter: policy "farther"\.$/);
  await harness.run('policy.update', { id, draft: { name: 'here', rules: '', datacenters: [] } });
  t.notMatch(await explained(), /Not valid/);
});

t.test('authorize: of a token that is named by its accessor id', async (t) => {
  const harness = await createHarness();
  const { clock } = harness;
  const policy = await newPolicy(harness, 'web', 'service "web" {\n  policy = "write"\n}\n');
  const links = { policies: [{ id: policy }] };
  const { secretId, accessorId } = await newToken(harness, links);
  const namespace = { name: 'team' };
  await harness.run('namespace.create', { draft: namespace });
  const inTeam = await newToken(harness, { namespace: 'team' });
  const short = await newToken(harness, { ...links, expirationTtlNs: 120_000_000_000n });
  const reader = await secretWith(harness, 'acl = "read"');
  const web: AuthorizationItem = {
    ...{ resource: 'service', access: 'write', segment: 'web' },
    namespace: undefined,
  };
  const ask = (id: string, secret: SecretId | undefined, items = [web]) =>
    harness.run('token.authorize', { accessorId: id, items, explain: true }, { secret });

  const [named] = await ask(accessorId, reader);
  t.match(named, { allow: true, explanation: { token: { accessorId } } }, 'not of who asks');
  const own = { items: [web], explain: true };
  t.same(
    [named],
    await harness.run('authorize', own, { secret: secretId }),
    'as it is told itself',
  );
  t.match(
    await refusalOf(ask(accessorId, secretId)),
    /^permission-denied: .*lacks permission 'acl:read'/,
    'nobody without the right to read the token',
  );
  t.match(
    await refusalOf(ask(inTeam.accessorId, reader)),
    /^permission-denied/,
    'nor its namespace',
  );

  const items = [web];
  for (const named of ['*', 'no name', 'nowhere']) {
    const asStranger = { secret: undefined, namespaceParameter: named };
    const [known, unknown] = [inTeam.accessorId, '99999999-9999-9999-9999-999999999999'].map((id) =>
      refusalOf(
        harness.run('token.authorize', { accessorId: id, items, explain: true }, asStranger),
      ),
    );
    t.equal(await known, await unknown, `${named}: nor whether there is such a token`);
  }

  const [[there], [here]] = [await ask(inTeam.accessorId, ROOT), await ask(accessorId, ROOT)];
  t.same([there?.allow, here?.allow], [false, true], 'each in its own namespace');
  const elsewhere = { ...web, namespace: 'team' };
  t.equal((await ask(accessorId, ROOT, [elsewhere]))[0]?.allow, false, 'or in that of the item');

  t.equal((await ask(short.accessorId, reader))[0]?.allow, true);
  clock.advance(120_001);
  t.match(await refusalOf(ask(short.accessorId, reader)), /^token-not-found: .*expired/);
  await newMethod(harness, 'jwt');
  await bind(harness, 'jwt', 'service', 'web');
  const orphan = await logIn(harness, 'jwt');
  t.equal((await ask(orphan.accessorId, reader))[0]?.allow, true);
  await harness.run('auth-method.delete', { name: 'jwt' });
  t.match(await refusalOf(ask(orphan.accessorId, reader)), /^token-not-found/, 'void');
  await harness.run('token.delete', { accessorId });
  const gone = await refusalOf(ask(accessorId, reader));
  t.match(gone, /^token-not-found/, 'what is gone may nothing, and is no default policy');
  t.match(await refusalOf(ask('x', reader)), /^malformed|^invalid/);
});

t.test('templated policies: catalogue, one, preview', async (t) => {
  const harness = await createHarness();
  t.equal((await harness.run('templated-policy.list', {})).length, 6);
  t.equal((await harness.run('templated-policy.read', { name: 'builtin/dns' })).schema, '');
  const input = { name: 'builtin/service', variables: { name: 'web' } };
  const { policy } = await harness.run('templated-policy.preview', input);
  t.match(policy.rules, /service "web"/);
});
