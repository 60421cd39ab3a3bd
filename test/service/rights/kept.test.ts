// What is kept of tokens and rights in memory, and that nothing of it is ever of the past.

import fc from 'fast-check';
import t from 'tap';
import {
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
  type SecretId,
} from '../../../src/acl/ids.ts';
import { dependencyOf } from '../../../src/service/dependencies.ts';
import { LinkNames } from '../../../src/service/objects/link-names.ts';
import { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import { requireMayAdd } from '../../../src/service/rights/lent-rights.ts';
import { RightsCache } from '../../../src/service/rights/rights-cache.ts';
import { aPolicy } from '../../support/state-and-service/fixtures.ts';
import { createHarness, type Harness, newPolicy, newToken } from '../harness.ts';
import { ask, askOften, ID, NO_IDENTITIES } from './cases.ts';

t.test('the cache: a token that was just read is read anew after every change', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'before', '');
  const ttl = { expirationTtlNs: 60_000_000_000n, policies: [{ id: policy }] };
  const { accessorId } = await newToken(harness, ttl);
  const read = async (id = accessorId): Promise<unknown> => {
    const { value, refusal } = await harness.run('token.read', { accessorId: id, expanded: false });
    if (value === undefined) return refusal.code;
    const { token, policies, roles } = value;
    return [token.description, ...[...policies, ...roles].map(({ name }) => name)];
  };
  const { id: role } = (await harness.run('role.create', { draft: { name: 'one' } })).value.role;
  const holder = (await newToken(harness, { roles: [{ id: role }] })).accessorId;
  t.same(await read(holder), ['', 'one']);
  await harness.run('role.update', { id: role, draft: { name: 'two' } });
  t.same(await read(holder), ['', 'two'], 'a role of it has another name');
  await harness.run('role.delete', { id: role });
  t.same(await read(holder), [''], 'a role of it is gone');
  t.same(await read(), ['', 'before']);
  await harness.run('policy.update', { id: policy, draft: { name: 'after', rules: '' } });
  t.same(await read(), ['', 'after'], 'a policy of it has another name');
  const draft = { description: 'changed', policies: [{ id: policy }] };
  await harness.run('token.update', { accessorId, draft });
  t.same(await read(), ['changed', 'after']);
  await harness.run('policy.delete', { id: policy });
  t.same(await read(), ['changed'], 'a policy of it is gone');
  harness.clock.advance(60_001);
  t.equal(await read(), 'token-not-found', 'its time has passed');

  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await harness.run('binding-rule.create', { draft: rule });
  const login = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace: undefined };
  const made = (await harness.run('login', login, { secret: undefined })).value.token.accessorId;
  t.not(await read(made), 'token-not-found');
  await harness.run('auth-method.delete', { name: 'm' });
  t.equal(await read(made), 'token-not-found', 'its method is gone');

  const last = (await newToken(harness, { description: 'last' })).accessorId;
  t.same(await read(last), ['last']);
  await harness.run('token.delete', { accessorId: last });
  t.equal(await read(last), 'token-not-found');
});

t.test('the cache: agrees with a fresh one after any history', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(11), { minLength: 5, maxLength: 15 }), async (steps) => {
      const harness = await createHarness();
      const ids = [await newPolicy(harness, 'p0', ''), await newPolicy(harness, 'p1', '')];
      const role = (await harness.run('role.create', { draft: { name: 'r' } })).value.role.id;
      const tokens = [await newToken(harness), await newToken(harness, { roles: [{ id: role }] })];
      const levels = ['read', 'write', 'deny'];
      for (const [place, step] of steps.entries()) {
        const id = ids[step % 2]!;
        const { accessorId } = tokens[step % 2]!;
        const rules = `acl = "${levels[place % 3]}"`;
        const roles = place % 2 === 0 ? [{ id: role }] : [];
        if (step < 4) {
          await harness.run('policy.update', { id, draft: { name: `p${step % 2}`, rules } });
        } else if (step < 7) {
          await harness.run('role.update', { id: role, draft: { name: 'r', policies: [{ id }] } });
        } else {
          await harness.run('token.update', {
            accessorId,
            draft: { roles, policies: step > 9 ? [{ id }] : [] },
          });
        }
        for (const { secretId } of tokens) {
          const kept = (await askOften(harness, secretId)) === 'ok';
          const { view, clock, metrics, settings } = harness.deps;
          const fresh = new CallerResolver({ view, clock, metrics, settings });
          const query = {
            resource: 'acl',
            access: 'read',
            segment: '',
            namespace: tokens[0]!.namespace,
          } as const;
          const decided = fresh.resolve(secretId).authorizer.decide(query) === 'allow';
          if (kept !== decided) return false;
        }
      }
      return true;
    }),
    { numRuns: 5 },
  );
  t.pass();
});

t.test('the cache: tokens with the same links share one authorizer', async (t) => {
  const harness = await createHarness();
  const policies = [{ id: await newPolicy(harness, 'p', 'acl = "read"') }];
  const { view, clock, metrics, settings } = harness.deps;
  const resolver = new CallerResolver({ view, clock, metrics, settings });
  const resolve = async (draft: object) =>
    resolver.resolve((await newToken(harness, draft)).secretId);
  const [one, two] = [await resolve({ policies }), await resolve({ policies })];
  t.equal(one.authorizer, two.authorizer);
  t.not(one.token.accessorId, two.token.accessorId);
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const { value } = await harness.run('role.create', { draft: { name: 'r' } });
  const templatedPolicies = [{ templateName: 'builtin/service', variables: { name: 'web' } }];
  const others = {
    nothing: {},
    'a role': { policies, roles: [{ id: value.role.id }] },
    'a service': { policies, serviceIdentities: [{ serviceName: 'web' }] },
    'another service': { policies, serviceIdentities: [{ serviceName: 'api' }] },
    'a node': { policies, nodeIdentities: [{ nodeName: 'web', datacenter: 'dc1' }] },
    'a template': { policies, templatedPolicies },
    'another namespace': { policies, namespace: 'team' },
  };
  const seen = new Set([one.authorizer]);
  for (const [what, draft] of Object.entries(others)) {
    const { authorizer } = await resolve(draft);
    t.notOk(seen.has(authorizer), what);
    seen.add(authorizer);
  }
});

/** One that finds tokens by this. */
function resolverOver({ deps }: Harness, tokenBySecret: (secret: SecretId) => unknown) {
  const { view, clock, metrics, settings } = deps;
  const counting = new Proxy(view, {
    get: (state, name) => {
      if (name === 'tokenBySecret') return tokenBySecret;
      const value: unknown = Reflect.get(state, name, state);
      return typeof value === 'function' ? value.bind(state) : value;
    },
  });
  return new CallerResolver({ view: counting, clock, metrics, settings });
}

t.test('the cache: a token is kept; where there is no room, from its second use on', async (t) => {
  const harness = await createHarness();
  const { view } = harness.deps;
  const { secretId, accessorId } = await newToken(harness);
  const stored = view.tokenBySecret(secretId);
  let reads = 0;
  const read = (secret: SecretId) => {
    reads += 1;
    const other = { ...stored, secretId: secret, accessorId: secret };
    return secret.startsWith('other') ? other : view.tokenBySecret(secret);
  };
  const resolver = resolverOver(harness, read);
  const readsOf = (uses: number): number => {
    const before = reads;
    for (let use = 0; use < uses; use += 1) resolver.resolve(secretId);
    return reads - before;
  };
  const key = accessorId.toLowerCase();
  const change = { table: 'tokens', key, watchKeys: [key] } as const;
  t.equal(readsOf(3), 1);
  resolver.onApplied({ kind: 'changed', changes: [change] });
  t.equal(readsOf(3), 1, 'read anew when it was changed');
  resolver.onApplied({ kind: 'changed', changes: [change] });
  for (let other = 0; other < 20_000; other += 1) resolver.resolve(`other ${other}` as SecretId);
  t.equal(readsOf(3), 2);
  resolver.onApplied({ kind: 'changed', changes: [change] });
  t.equal(readsOf(1), 1, 'read anew when it was changed');
});

t.test('the cache: tokens with very long texts take turns', async (t) => {
  const harness = await createHarness();
  const { view } = harness.deps;
  const { secretId } = await newToken(harness);
  const stored = view.tokenBySecret(secretId);
  const long = 'd'.repeat(1_000_000);
  const datacenters = [long];
  const template = { templateId: 'id', templateName: 'builtin/dns', variables: undefined };
  for (const texts of [
    { description: long },
    { serviceIdentities: [{ serviceName: 'web', datacenters }] },
    { nodeIdentities: [{ nodeName: 'n1', datacenter: long }] },
    { templatedPolicies: [{ ...template, datacenters }] },
  ]) {
    let reads = 0;
    const read = (secret: SecretId) => {
      reads += 1;
      return { ...stored, secretId: secret, accessorId: secret, ...texts };
    };
    const resolver = resolverOver(harness, read);
    for (let other = 0; other < 100; other += 1) resolver.resolve(`other ${other}` as SecretId);
    const before = reads;
    for (let other = 0; other < 100; other += 1) resolver.tokenOf(`other ${other}` as SecretId);
    const names = Object.keys(texts).join();
    t.ok(reads - before > 80, `${names}: 16 or so are kept: ${reads - before} read again`);
  }
});

t.test('the cache: rights whose links are very long take turns', (t) => {
  const namespace = 'default' as NamespaceName;
  const nothing = () => undefined;
  const view = { policy: nothing, role: nothing, namespace: nothing };
  const cache = new RightsCache(view as never, { datacenter: 'dc1', defaultPolicy: 'deny' });
  const datacenters = ['d'.repeat(1_000_000)];
  const held = Array.from({ length: 100 }, (_, place) =>
    cache.rightsOf({
      ...{ namespace, policies: [], roles: [], ...NO_IDENTITIES },
      serviceIdentities: [{ serviceName: `s${place}`, datacenters }],
    }),
  );
  const kept = held.filter(({ isCurrent }) => isCurrent).length;
  t.ok(kept > 30 && kept < 42, `forty megabytes of them: ${kept}`);
  t.end();
});

t.test('the cache: very many rules take turns, and none is behind a change', async (t) => {
  const rules = Array.from({ length: 30_000 }, (_, place) => `key "${place}" { policy = "read" }`);
  const long = rules.join('\n');
  const policies = Array.from({ length: 70 }, (_, number) => aPolicy(number, { rules: long }));
  const state = new Map(policies.map((policy) => [policy.id, policy]));
  const namespace = 'default' as NamespaceName;
  const nothing = () => undefined;
  const role = { namespace, policies: [policies[0]!.id], ...NO_IDENTITIES };
  const policy = (id: PolicyId) => state.get(id);
  const view = { policy, role: (id: RoleId) => ({ ...role, id, name: id }), namespace: nothing };
  const cache = new RightsCache(view as never, { datacenter: 'dc1', defaultPolicy: 'deny' });
  const rightsOf = (
    serviceName: string,
    links: readonly { readonly id: PolicyId }[],
    roles: readonly RoleId[] = [],
  ) =>
    cache.rightsOf({
      namespace,
      policies: links.map(({ id }) => id),
      roles,
      serviceIdentities: [{ serviceName, datacenters: [] }],
      nodeIdentities: [],
      templatedPolicies: [],
    });
  const one = policies.slice(0, 1);
  const held = Array.from({ length: 100 }, (_, place) => rightsOf(`s${place}`, one));
  const kept = held.filter(({ isCurrent }) => isCurrent).length;
  t.ok(kept > 50 && kept < 70, `two million rules in all, of 30,000 each: ${kept}`);
  t.throws(() => held[0]?.authorizer, 'whoever holds what was dropped keeps nothing alive');
  t.equal(rightsOf('s0', one).isCurrent, true);
  const all = rightsOf(
    'all',
    [],
    policies.map((_, number) => `role ${number}` as RoleId),
  );
  t.equal(all.isCurrent, true, 'also what is larger than all may be together');
  const [first] = one;
  const changed = { ...first!, rules: 'key "1" { policy = "deny" }' };
  state.set(changed.id, changed);
  cache.forget(dependencyOf('policies', changed.id));
  t.equal(all.isCurrent, false, 'also that is told of a change');
  const query = { resource: 'key', access: 'read', segment: '1', namespace } as const;
  t.equal(rightsOf('all', one).authorizer.decide(query), 'deny');
});

t.test('links: those that are kept are told from new ones, however many there are', async (t) => {
  // Who looks through all of them for each of them does not end.
  const policies = Array.from({ length: 500_000 }, (_, place) => `policy ${place}` as PolicyId);
  const view = { policy: () => ({ namespace: 'team' }), role: () => undefined };
  const links = (ids: readonly PolicyId[]) => ({ policies: ids, roles: [] });
  const { deps } = await createHarness();
  const caller = new CallerResolver(deps).resolve(undefined);
  const change = { before: links(policies), after: links([...policies].reverse()), key: 'key' };
  t.strictSame(requireMayAdd(view as never, caller, change), ['key'], 'all of them are kept');
  const more = { ...change, after: links([...policies, 'another' as PolicyId]) };
  t.throws(() => requireMayAdd(view as never, caller, more), /namespace team/);
});

t.test(
  'the cache: a local token is void as soon as its namespace is known to be lost',
  async (t) => {
    const harness = await createHarness();
    const { view, clock, metrics, settings } = harness.deps;
    let lostUpTo = 0;
    const losing = new Proxy(view, {
      get: (state, name) => {
        if (name === 'namespaceLostUpTo') return () => lostUpTo;
        const value: unknown = Reflect.get(state, name, state);
        return typeof value === 'function' ? value.bind(state) : value;
      },
    });
    const resolver = new CallerResolver({ view: losing, clock, metrics, settings });
    const token = await newToken(harness, { local: true });
    for (let use = 0; use < 3; use += 1) {
      t.equal(resolver.resolve(token.secretId).token.accessorId, token.accessorId);
    }
    // As the entry that deletes it arrives from the primary.
    lostUpTo = token.createIndex;
    const change = { table: 'namespaces', key: 'default', watchKeys: ['default'] } as const;
    resolver.onApplied({ kind: 'changed', changes: [change] });
    t.throws(() => resolver.resolve(token.secretId), { code: 'token-unknown' });
    // And where a whole state came from the primary.
    lostUpTo = 0;
    resolver.onApplied({ kind: 'replaced' });
    t.equal(resolver.resolve(token.secretId).token.accessorId, token.accessorId);
    lostUpTo = token.createIndex;
    resolver.onApplied({ kind: 'replaced' });
    t.throws(() => resolver.resolve(token.secretId), { code: 'token-unknown' });
  },
);

t.test('the cache: a token is void as soon as its auth method is known to be gone', async (t) => {
  const harness = await createHarness();
  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await harness.run('binding-rule.create', { draft: rule });
  const login = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace: undefined };
  const { token } = (await harness.run('login', login, { secret: undefined })).value;
  const { view, clock, metrics, settings } = harness.deps;
  let isGone = false;
  const losing = new Proxy(view, {
    get: (state, name) => {
      if (name === 'authMethod' && isGone) return () => undefined;
      const value: unknown = Reflect.get(state, name, state);
      return typeof value === 'function' ? value.bind(state) : value;
    },
  });
  const resolver = new CallerResolver({ view: losing, clock, metrics, settings });
  const isKnown = () => !resolver.isStranger(token.secretId);
  t.same([isKnown(), isKnown(), isKnown()], [true, true, true]);
  isGone = true;
  // Nothing else changes with one that has no rules any more.
  const change = { table: 'auth-methods', key: 'default m', watchKeys: [] } as const;
  resolver.onApplied({ kind: 'changed', changes: [change] });
  t.equal(isKnown(), false);
  isGone = false;
  resolver.onApplied({ kind: 'replaced' });
  t.same([isKnown(), isKnown()], [true, true]);
  isGone = true;
  resolver.onApplied({ kind: 'replaced' });
  t.equal(isKnown(), false, 'and where a whole state takes the place of another one');
});

t.test('the cache: nothing is left of a state when another one takes its place', async (t) => {
  // Two datacenters in which the same ids are drawn.
  const harnesses = [await createHarness(), await createHarness()] as const;
  const [before, after] = harnesses;
  const made = async (harness: Harness, rules: string) => {
    const policy = await newPolicy(harness, rules === '' ? 'empty' : 'reading', rules);
    const policies = [{ id: policy }];
    const { value } = await harness.run('role.create', {
      draft: { name: `${rules === '' ? 'empty' : 'reading'}-role`, policies },
    });
    const roles = [{ id: value.role.id }];
    return { policy, role: value.role.id, token: await newToken(harness, { roles }) };
  };
  const old = await made(before, 'acl = "read"');
  const fresh = await made(after, '');
  t.same([fresh.policy, fresh.role], [old.policy, old.role]);
  t.equal(fresh.token.secretId, old.token.secretId);
  const gone = await newToken(before, { description: 'gone' });
  let state = before.machine;
  const view = new Proxy(before.deps.view, {
    get: (_view, name) => {
      const value: unknown = Reflect.get(state, name, state);
      return typeof value === 'function' ? value.bind(state) : value;
    },
  });
  const { clock, metrics, settings } = before.deps;
  const resolver = new CallerResolver({ view, clock, metrics, settings });
  const names = new LinkNames(view);
  const namespace = DEFAULT_NAMESPACE;
  const query = { resource: 'acl', access: 'read', segment: '', namespace } as const;
  const decide = () => resolver.resolve(old.token.secretId).authorizer.decide(query);
  const shown = () => [...names.policies([old.policy as PolicyId]), ...names.roles([old.role])];
  t.equal(decide(), 'allow');
  t.equal(resolver.resolve(gone.secretId).token.description, 'gone');
  t.same(
    shown().map(({ name }) => name),
    ['reading', 'reading-role'],
  );
  state = after.machine;
  resolver.onApplied({ kind: 'replaced' });
  names.onApplied({ kind: 'replaced' });
  t.equal(decide(), 'deny', 'rights are those of the state as it is now');
  t.throws(() => resolver.resolve(gone.secretId), { code: 'token-unknown' });
  t.same(
    shown().map(({ name }) => name),
    ['empty', 'empty-role'],
  );
});

t.test('the cache: a token whose id was chosen in capitals ends with its deletion', async (t) => {
  const harness = await createHarness();
  const policies = [{ id: await newPolicy(harness, 'reading', 'acl = "read"') }];
  const accessorId = ID.toUpperCase();
  const { secretId } = await newToken(harness, { accessorId, policies });
  t.equal(await askOften(harness, secretId), 'ok');
  await harness.run('token.update', { accessorId: ID, draft: {} });
  t.match(await ask(harness, 'policy.list', secretId), /^permission-denied/);
  await harness.run('token.delete', { accessorId: ID });
  t.match(await ask(harness, 'policy.list', secretId), /^token-unknown/);
});

t.test('the cache: auth methods of one name in two namespaces are two', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const secrets: SecretId[] = [];
  for (const namespace of ['default', 'team']) {
    const draft = { name: 'm', type: 'jwt', config: {}, namespace };
    await harness.run('auth-method.create', { draft });
    const rule = { authMethod: 'm', bindType: 'service', bindName: 'web', namespace };
    await harness.run('binding-rule.create', { draft: rule });
    const login = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace };
    secrets.push((await harness.run('login', login, { secret: undefined })).value.token.secretId);
  }
  const [own, ofTeam] = secrets as [SecretId, SecretId];
  const isKnown = async (secret: SecretId) =>
    !/^token-unknown/.test(await ask(harness, 'policy.list', secret));
  t.same([await isKnown(own), await isKnown(ofTeam)], [true, true]);
  await harness.run('auth-method.delete', { name: 'm' }, { namespaceParameter: 'team' });
  t.same([await isKnown(own), await isKnown(ofTeam)], [true, false]);
});
