// Rights of those who log in: they end with their method, and no login outruns a revocation.

import t from 'tap';
import { createOperations, type Door } from '../../../src/service/create-operations.ts';
import { CALL, createHarness, type Harness, newPolicy, newToken, refusalOf } from '../harness.ts';
import { ask, askOften } from './cases.ts';

t.test(
  'rights: a login token ends with its method, and a new method does not revive it',
  async (t) => {
    const harness = await createHarness();
    const make = () =>
      harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
    await make();
    await newPolicy(harness, 'reading', 'acl = "read"');
    const draft = { authMethod: 'm', bindType: 'policy', bindName: 'reading' };
    await harness.run('binding-rule.create', { draft });
    const input = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace: undefined };
    const { secretId } = (await harness.run('login', input, { secret: undefined })).value.token;
    t.equal(await askOften(harness, secretId), 'ok');
    t.equal(await ask(harness, 'token.read-self', secretId), 'ok');
    await harness.run('auth-method.delete', { name: 'm' });
    for (const name of ['policy.list', 'token.read-self'] as const)
      t.match(await ask(harness, name, secretId), /^token-unknown/, name);
    await make();
    for (const name of ['policy.list', 'token.read-self'] as const)
      t.match(await ask(harness, name, secretId), /^token-unknown/, name);
  },
);

t.test('rights: a login does not outlast the method that it was begun with', async (t) => {
  const harness = await createHarness();
  const method = { name: 'm', type: 'jwt', config: { key: 'old' } };
  await harness.run('auth-method.create', { draft: method });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await harness.run('binding-rule.create', { draft: rule });
  let meanwhile = async (): Promise<unknown> => undefined;
  const door = slowDoor(harness, () => meanwhile());
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  const login = (): Promise<string> => refusalOf(door.run('login', input, CALL));
  t.equal(await login(), 'ok');
  meanwhile = () =>
    harness.run('auth-method.update', { name: 'm', draft: { ...method, config: { key: 'new' } } });
  t.equal(
    await login(),
    'login-refused: auth method "m" was changed during the login, log in again',
    'who was let in by the keys of before is not let in any more',
  );
  meanwhile = async () => undefined;
  t.equal(await login(), 'ok', 'by those of now');
  meanwhile = () => harness.run('auth-method.delete', { name: 'm' });
  t.match(await login(), /^permission-denied: /, 'nor is anybody by a method that is gone');
});

/** A door to the harness whose auth methods ask outside, which takes as long as this says. */
function slowDoor(harness: Harness, outside: () => Promise<unknown>): Door {
  const { authMethods } = harness.deps;
  const { jwt } = authMethods.types;
  const slow: typeof jwt = {
    ...jwt,
    checkConfig: async (...given) => {
      await outside();
      return jwt.checkConfig(...given);
    },
    validate: async (...given) => {
      const identity = await jwt.validate(...given);
      await outside();
      return identity;
    },
  };
  const types = { ...authMethods.types, jwt: slow };
  return createOperations({ ...harness.deps, authMethods: { ...authMethods, types } });
}

t.test('rights: a login waits for a change of its method that is under way', async (t) => {
  const harness = await createHarness();
  const method = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: method });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await harness.run('binding-rule.create', { draft: rule });
  let count = 0;
  const door = slowDoor(harness, async () => {
    count += 1;
    if (count > 1) return;
    const { proposals } = harness;
    void harness.run('auth-method.update', { name: 'm', draft: { ...method, description: 'new' } });
    while (harness.proposals === proposals) await Promise.resolve();
  });
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  t.equal(await refusalOf(door.run('login', input, CALL)), 'ok');
  t.equal(count, 2, 'the identity is judged anew, by the method as it is now');
});

t.test('rights: a login asks once, when the leader has proven that it leads', async (t) => {
  const harness = await createHarness();
  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const { barriers } = harness;
  let count = 0;
  let isProven = false;
  const door = slowDoor(harness, async () => {
    count += 1;
    isProven = harness.barriers > barriers;
    await newPolicy(harness, `meanwhile-${count}`, '');
  });
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  t.match(await refusalOf(door.run('login', input, CALL)), /^permission-denied/);
  t.same([count, isProven], [1, true]);
});

t.test('rights: a login gives no longer life than the datacenter allows', async (t) => {
  const harness = await createHarness();
  const minuteNs = 60_000_000_000n;
  for (const [name, maxTokenTtlNs] of [
    ['short', 2n * minuteNs],
    ['long', 600n * minuteNs],
    ['endless', 0n],
  ] as const) {
    await harness.run('auth-method.create', {
      draft: { name, type: 'jwt', config: {}, maxTokenTtlNs },
    });
    const rule = { authMethod: name, bindType: 'service', bindName: 'web' };
    await harness.run('binding-rule.create', { draft: rule });
  }
  const tokenLimits = { minTtlNs: minuteNs, maxTtlNs: 60n * minuteNs };
  const settings = { ...harness.deps.settings, tokenLimits };
  const door = createOperations({ ...harness.deps, settings });
  const endOf = async (authMethod: string): Promise<string | undefined> => {
    const input = { authMethod, bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
    return (await door.run('login', input, CALL)).value.token.expirationTime;
  };
  t.equal(await endOf('short'), '2026-01-01T00:02:00.000Z');
  t.equal(await endOf('long'), '2026-01-01T01:00:00.000Z', 'the bound was lowered since');
  t.equal(await endOf('endless'), undefined);
});

t.test('rights: a login is not refused for what is deleted of what it binds', async (t) => {
  const harness = await createHarness();
  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const { value } = await harness.run('role.create', { draft: { name: 'ops' } });
  const policy = await newPolicy(harness, 'reading', '');
  for (const rule of [
    { bindType: 'role', bindName: 'ops' },
    { bindType: 'policy', bindName: 'reading' },
    { bindType: 'service', bindName: 'web' },
  ]) {
    await harness.run('binding-rule.create', { draft: { ...rule, authMethod: 'm' } });
  }
  let isDeleted = false;
  let ending: ['role.delete' | 'policy.delete', { readonly id: string }] = [
    'role.delete',
    { id: value.role.id },
  ];
  const door = slowDoor(harness, async () => {
    if (isDeleted) return;
    isDeleted = true;
    const { proposals } = harness;
    void harness.run(...ending);
    while (harness.proposals === proposals) await Promise.resolve();
  });
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  await door.run('login', input, CALL);
  isDeleted = false;
  ending = ['policy.delete', { id: policy }];
  const { token, roles, policies } = (await door.run('login', input, CALL)).value;
  t.same([roles, policies], [[], []]);
  t.match(token.serviceIdentities, [{ serviceName: 'web' }]);
});

t.test(
  'rights: a login by OpenID waits for its binding rules, though its state is used up',
  async (t) => {
    const harness = await createHarness();
    const method = { name: 'm', type: 'oidc', config: {}, maxTokenTtlNs: 60_000_000_000n };
    await harness.run('auth-method.create', { draft: method });
    const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
    const { value } = await harness.run('binding-rule.create', { draft: rule });
    const { authMethods } = harness.deps;
    const meanwhile = (): unknown =>
      harness.run('binding-rule.update', {
        id: value.rule.id,
        draft: { ...rule, bindName: 'less' },
      });
    const oidcFlow: typeof authMethods.oidcFlow = {
      ...authMethods.oidcFlow,
      callback: async (given) => {
        const identity = await authMethods.oidcFlow.callback(given);
        const { proposals } = harness;
        meanwhile();
        while (harness.proposals === proposals) await Promise.resolve();
        return identity;
      },
    };
    const door = createOperations({ ...harness.deps, authMethods: { ...authMethods, oidcFlow } });
    const common = { authMethod: 'm', clientNonce: 'n', namespace: undefined };
    const begin = () =>
      door.run('oidc.auth-url', { ...common, redirectUri: 'https://me', meta: {} }, CALL);
    const end = () =>
      door.run('oidc.callback', { ...common, state: 'state-1', code: '{"name":"eve"}' }, CALL);
    await begin();
    const { token } = (await end()).value;
    t.match(token.serviceIdentities, [{ serviceName: 'less' }], 'by the rule as it is then');
    t.equal(
      await refusalOf(end()),
      'login-refused: the login state is unknown or has expired',
      'a state works once',
    );
  },
);

t.test('rights: who is asked about an auth method cannot delay it past a revocation', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const policies = [{ id: await newPolicy(harness, 'admin', 'acl = "write"', 'team') }];
  const { accessorId, secretId } = await newToken(harness, { namespace: 'team', policies });
  const call = { ...CALL, secret: secretId, namespaceParameter: 'team' };
  const draft = { name: 'm', type: 'jwt', config: {} };
  let meanwhile: () => Promise<unknown> = async () => undefined;
  const door = slowDoor(harness, () => meanwhile());
  t.equal(await refusalOf(door.run('auth-method.create', { draft }, call)), 'ok');
  const taken = { accessorId, draft: { policies: [], namespace: 'team' } };
  meanwhile = () => harness.run('token.update', taken);
  const late = door.run('auth-method.update', { name: 'm', draft }, call);
  t.match(await refusalOf(late), /^permission-denied: /);
});

t.test('rights: an auth method is checked as the type that it has in the end', async (t) => {
  const harness = await createHarness();
  const method = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: method });
  const { authMethods } = harness.deps;
  const { jwt } = authMethods.types;
  const checkConfig = async (): Promise<void> => {
    await harness.run('auth-method.delete', { name: 'm' });
    await harness.run('auth-method.create', { draft: { ...method, type: 'kubernetes' } });
  };
  const types = { ...authMethods.types, jwt: { ...jwt, checkConfig } };
  const door = createOperations({ ...harness.deps, authMethods: { ...authMethods, types } });
  const bad = { name: 'm', draft: { config: { bad: true } } };
  t.match(await refusalOf(door.run('auth-method.update', bad, CALL)), /^invalid: .* bad Config/);
});

t.test('rights: a login token does nothing behind the end of its method', async (t) => {
  const harness = await createHarness();
  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  await newPolicy(harness, 'admin', 'acl = "write"');
  const rule = { authMethod: 'm', bindType: 'policy', bindName: 'admin' };
  await harness.run('binding-rule.create', { draft: rule });
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  const { value } = await harness.run('login', input);
  const secret = value.token.secretId;
  t.equal(await refusalOf(harness.run('token.create', { draft: {} }, { secret })), 'ok');
  const deleted = refusalOf(harness.run('auth-method.delete', { name: 'm' }));
  const behind = refusalOf(harness.run('token.create', { draft: {} }, { secret }));
  t.equal(await deleted, 'ok');
  t.match(await behind, /^token-unknown: /);
});
