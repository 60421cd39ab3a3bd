// Which namespace a request means, and what links lead to.

import t from 'tap';
import { GLOBAL_MANAGEMENT_ID, type SecretId } from '../../../src/acl/ids.ts';
import { createHarness, newPolicy, newToken, ROOT, refusalOf } from '../harness.ts';
import { NOBODY, newMethod, tokenList } from './use-cases.ts';

t.test('links: resolve in the own namespace, then in default, and nowhere else', async (t) => {
  const harness = await createHarness();
  for (const name of ['team', 'other']) await harness.run('namespace.create', { draft: { name } });
  const shared = await newPolicy(harness, 'shared', '');
  const own = await newPolicy(harness, 'shared', '', 'team');
  const foreign = await newPolicy(harness, 'foreign', '', 'other');
  const linked = async (link: object) =>
    (await newToken(harness, { namespace: 'team', policies: [link] })).policies;
  t.same(await linked({ name: 'shared' }), [own]);
  t.same(await linked({ id: shared }), [shared]);
  t.same(await linked({ name: 'GLOBAL-management' }), [GLOBAL_MANAGEMENT_ID]);
  const refused = (draft: object) => refusalOf(newToken(harness, { namespace: 'team', ...draft }));
  t.equal(
    await refused({ policies: [{ name: 'foreign' }] }),
    'invalid: No such ACL policy with name "foreign"',
  );
  t.equal(
    await refused({ policies: [{ id: foreign }] }),
    `invalid: No such ACL policy with ID "${foreign}"`,
  );
  t.equal(await refused({ roles: [{ name: 'x' }] }), 'invalid: No such ACL role with name "x"');
  t.equal(
    await refused({ roles: [{ id: NOBODY }] }),
    `invalid: No such ACL role with ID "${NOBODY}"`,
  );
  t.equal(
    await refusalOf(
      harness.run('role.create', { draft: { name: 'r', policies: [{ id: NOBODY }] } }),
    ),
    `invalid: Failed to apply role upsert request: No such policy with ID: ${NOBODY}`,
  );
});

t.test('links: to what was deleted vanish from reads, and are not copied by a clone', async (t) => {
  const harness = await createHarness();
  const id = await newPolicy(harness, 'p', '');
  const { role } = (await harness.run('role.create', { draft: { name: 'r' } })).value;
  const { accessorId } = await newToken(harness, { policies: [{ id }], roles: [{ id: role.id }] });
  await harness.run('policy.delete', { id });
  await harness.run('role.delete', { id: role.id });
  const read = await harness.run('token.read', { accessorId, expanded: false });
  t.same(read.value?.policies, []);
  const clone = await harness.run('token.clone', {
    accessorId,
    description: '',
    namespace: undefined,
  });
  t.same(clone.value.token.policies, []);
  t.same(clone.value.token.roles, []);
});

t.test(
  'links: are shown by what their targets are called now, as long as they are there',
  async (t) => {
    const harness = await createHarness();
    const policy = await newPolicy(harness, 'p', '');
    const { id: role } = (await harness.run('role.create', { draft: { name: 'r' } })).value.role;
    const links = { policies: [{ id: policy }], roles: [{ id: role }] };
    const { accessorId } = await newToken(harness, links);
    const shown = async () => {
      const { value } = await harness.run('token.read', { accessorId, expanded: false });
      return [value?.policies, value?.roles];
    };
    t.same(await shown(), [[{ id: policy, name: 'p' }], [{ id: role, name: 'r' }]]);
    await harness.run('policy.update', { id: policy, draft: { name: 'q' } });
    await harness.run('role.update', { id: role, draft: { name: 's' } });
    t.same(await shown(), [[{ id: policy, name: 'q' }], [{ id: role, name: 's' }]]);
    await harness.run('policy.delete', { id: policy });
    await harness.run('role.delete', { id: role });
    t.same(await shown(), [[], []]);
  },
);

t.test('namespaces: body, parameter, header, own token, default, in this order', async (t) => {
  const harness = await createHarness();
  for (const name of ['a', 'b', 'c', 'd'])
    await harness.run('namespace.create', { draft: { name } });
  const { secretId } = await newToken(harness, {
    namespace: 'd',
    policies: [{ id: GLOBAL_MANAGEMENT_ID }],
  });
  const place = async (body: string, parameter: string, header: string, secret: SecretId) => {
    const call = { namespaceParameter: parameter, namespaceHeader: header, secret };
    const name = `p-${harness.proposals}`;
    const made = await harness.run('policy.create', { draft: { name, namespace: body } }, call);
    return made.value.policy.namespace;
  };
  t.equal(await place('a', 'b', 'c', secretId), 'a');
  t.equal(await place('', 'b', 'c', secretId), 'b');
  t.equal(await place('', '', 'c', secretId), 'c');
  t.equal(await place('', '', '', secretId), 'd');
  t.equal(await place('', '', '', ROOT), 'default');
  const nowhere = harness.run('policy.create', { draft: { name: 'x', namespace: 'nowhere' } });
  t.equal(await refusalOf(nowhere), 'invalid: Namespace "nowhere" does not exist');
  // What is wrong with the place is told before what is wrong with the object.
  const linked = newToken(harness, { namespace: 'nowhere', policies: [{ name: 'nothing' }] });
  t.equal(await refusalOf(linked), 'invalid: Namespace "nowhere" does not exist');
  const listed = harness.run('policy.list', { page: {} }, { namespaceParameter: 'nowhere' });
  t.equal(await refusalOf(listed), 'invalid: Namespace "nowhere" does not exist');
  const everywhere = harness.run('policy.read-by-name', { name: 'x' }, { namespaceParameter: '*' });
  t.equal(await refusalOf(everywhere), 'malformed: Only lists can be asked for all namespaces');
});

t.test('namespaces: an object of another one than the request means is not there', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const id = await newPolicy(harness, 'p', '', 'team');
  const { accessorId } = await newToken(harness, { namespace: 'team' });
  t.equal(
    await refusalOf(harness.run('policy.read', { id })),
    'not-found: Requested policy does not exist: ACL not found',
    'where it names none',
  );
  const there = harness.run('policy.read', { id }, { namespaceParameter: 'team' });
  t.equal(await refusalOf(there), 'ok');
  const call = { namespaceParameter: 'default' };
  t.equal(
    await refusalOf(harness.run('policy.read', { id }, call)),
    'not-found: Requested policy not found in namespace default: ACL not found',
  );
  t.equal(
    await refusalOf(harness.run('token.read', { accessorId, expanded: false }, call)),
    'token-not-found: token does not exist: ACL not found',
  );
  t.equal((await harness.run('policy.delete', { id }, call)).value, false);
  t.ok(harness.machine.policy(id));
});

t.test('namespaces disabled: each way of naming one is refused', async (t) => {
  const harness = await createHarness({ namespacesEnabled: false });
  const list = (call: object) => refusalOf(harness.run('policy.list', { page: {} }, call));
  t.equal(await list({}), 'ok');
  t.equal(
    await list({ namespaceParameter: 'default' }),
    'malformed: Invalid query parameter: "ns" - Namespaces are not enabled',
  );
  t.equal(
    await list({ namespaceHeader: 'default' }),
    'malformed: Invalid header: "X-Service-Namespace" - Namespaces are not enabled',
  );
  t.equal(
    await list({ namespaceParameter: '*' }),
    'malformed: Invalid query parameter: "ns" - Namespaces are not enabled',
    'all of them, too',
  );
  t.equal(
    await refusalOf(newToken(harness, { namespace: 'a' })),
    'malformed: Token decoding failed: json: unknown field "Namespace" - Namespaces are not enabled',
  );
  t.equal(
    await refusalOf(tokenList(harness, { authMethod: 'm', authMethodNamespace: 'a' })),
    'malformed: Invalid query parameter: "authmethod-ns" - Namespaces are not enabled',
  );
  const own = {
    list: harness.run('namespace.list', { page: {} }),
    read: harness.run('namespace.read', { name: 'default' }),
    create: harness.run('namespace.create', { draft: { name: 'a' } }),
    update: harness.run('namespace.update', { name: 'a', draft: {} }),
    delete: harness.run('namespace.delete', { name: 'a' }),
  };
  for (const [what, asked] of Object.entries(own)) {
    t.equal(await refusalOf(asked), 'malformed: Namespaces are not enabled', what);
  }
});

t.test('namespaces: kept while something is in them', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.update', { name: 'team', draft: { description: 'made by path' } });
  t.match(
    await refusalOf(harness.run('namespace.create', { draft: { name: 'team' } })),
    /^duplicate: /,
  );
  const id = await newPolicy(harness, 'p', '', 'team');
  const remove = () => harness.run('namespace.delete', { name: 'team' });
  t.match(await refusalOf(remove()), /^invalid: Namespace "team" is not empty/);
  await harness.run('policy.delete', { id }, { namespaceParameter: 'team' });
  t.equal((await remove()).value, true);
  t.match(
    await refusalOf(harness.run('namespace.delete', { name: 'default' })),
    /^invalid: Delete/,
  );
});

t.test('namespaces switched off: what lives in one is still seen and revoked by id', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const namespace = 'team';
  await newMethod(harness, 'm', { namespace });
  const bound = { authMethod: 'm', bindType: 'service', bindName: 'web', namespace };
  const ids = {
    policy: await newPolicy(harness, 'p', '', namespace),
    role: (await harness.run('role.create', { draft: { name: 'r', namespace } })).value.role.id,
    rule: (await harness.run('binding-rule.create', { draft: bound })).value.rule.id,
  };
  const { accessorId } = await newToken(harness, { namespace });
  const lender = await newPolicy(harness, 'lender', 'acl = "write"');
  const { secretId: stranger } = await newToken(harness, { policies: [{ id: lender }] });
  Object.assign(harness.deps.settings, { namespacesEnabled: false });

  const there = async () => [
    await refusalOf(harness.run('policy.read', { id: ids.policy })),
    await refusalOf(harness.run('role.read', { id: ids.role })),
    await refusalOf(harness.run('binding-rule.read', { id: ids.rule })),
    await refusalOf(harness.run('token.read', { accessorId, expanded: false })),
  ];
  t.same(await there(), ['ok', 'ok', 'ok', 'ok']);
  const draft = { name: 'p', rules: 'key_prefix "" { policy = "read" }' };
  const update = { id: ids.policy, draft };
  t.equal((await harness.run('policy.update', update)).value.policy.namespace, 'team');
  const clone = { accessorId, description: '', namespace: undefined };
  t.equal((await harness.run('token.clone', clone)).value.token.namespace, 'team');

  const denied =
    /^permission-denied: .* lacks permission 'acl:write' outside its namespace "default"$/;
  const revoke = async (secret: SecretId) => [
    await refusalOf(harness.run('policy.delete', { id: ids.policy }, { secret })),
    await refusalOf(harness.run('role.delete', { id: ids.role }, { secret })),
    await refusalOf(harness.run('binding-rule.delete', { id: ids.rule }, { secret })),
    await refusalOf(harness.run('token.delete', { accessorId }, { secret })),
  ];
  for (const refusal of await revoke(stranger)) t.match(refusal, denied);
  t.ok(harness.machine.token(accessorId), 'by nobody who may not write there');
  t.same(await revoke(ROOT), ['ok', 'ok', 'ok', 'ok']);
  t.equal(harness.machine.token(accessorId), undefined);
});

t.test('namespaces switched off: an auth method keeps its rules, and gets no others', async (t) => {
  const harness = await createHarness();
  for (const name of ['a', 'b']) await harness.run('namespace.create', { draft: { name } });
  const rules = [
    { selector: 'value.name == web', bindNamespace: 'a' },
    { selector: '', bindNamespace: 'b' },
  ];
  await newMethod(harness, 'm', { namespaceRules: rules });
  Object.assign(harness.deps.settings, { namespacesEnabled: false });
  const update = (namespaceRules: readonly object[]) => {
    const draft = { type: 'jwt', config: {}, description: 'changed', namespaceRules };
    return refusalOf(harness.run('auth-method.update', { name: 'm', draft }));
  };
  t.equal(await update(rules), 'ok', 'whoever changes something else sends them along');
  const says =
    'malformed: AuthMethod decoding failed: json: unknown field "NamespaceRules" - Namespaces are not enabled';
  const other = { selector: '', bindNamespace: 'a' };
  const wider = { selector: '', bindNamespace: 'a' };
  for (const given of [
    [...rules, other],
    [rules[0]!, other],
    [wider, rules[1]!],
    rules.slice(0, 1),
    rules.slice(1),
    rules.toReversed(),
  ]) {
    t.equal(await update(given), says);
  }
  t.equal(await refusalOf(newMethod(harness, 'n', { namespaceRules: rules })), says);
  t.equal(await update([]), 'ok');
});

t.test('namespaces switched off: so it is with what its configuration maps to them', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'm', { config: { mapping: 'a' } });
  Object.assign(harness.deps.settings, { namespacesEnabled: false });
  const update = (config: { readonly mapping?: string; readonly key?: string }) =>
    refusalOf(harness.run('auth-method.update', { name: 'm', draft: { type: 'jwt', config } }));
  t.equal(await update({ mapping: 'a', key: 'new' }), 'ok', 'whoever changes a key sends it along');
  const says = 'malformed: Invalid Auth Method: Config.MapNamespaces - Namespaces are not enabled';
  t.equal(await update({ mapping: 'b' }), says);
  t.equal(await refusalOf(newMethod(harness, 'n', { config: { mapping: 'a' } })), says);
  t.equal(await update({}), 'ok');
  t.equal(await update({ mapping: 'a' }), says);
});
