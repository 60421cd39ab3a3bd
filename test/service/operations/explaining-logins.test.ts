// Why a login is granted or refused: what is told of each step, to whom, and that it is what the login then does.
// Another draw: CONCLAVE_SEED=<seed>.

import t from 'tap';
import { must } from '../../../cluster/base/assert.ts';
import { AclError } from '../../../src/acl/error.ts';
import type { SecretId } from '../../../src/acl/ids.ts';
import { createOperations } from '../../../src/service/create-operations.ts';
import {
  authMethods,
  CALL,
  createHarness,
  type Harness,
  ROOT,
  refusalOf,
  secretWith,
} from '../harness.ts';
import { bind, newMethod } from './use-cases.ts';

const SEED = Number(process.env.CONCLAVE_SEED ?? 1);
/** A template of binding rules. */
const NAME = ['$', '{value.name}'].join('');
const TEAM = ['$', '{value.team}'].join('');

function inputOf(claims: object | string, authMethod = 'jwt') {
  const bearerToken = typeof claims === 'string' ? claims : JSON.stringify(claims);
  return { authMethod, bearerToken, meta: { pod: 'a' }, namespace: undefined };
}

function rule(harness: Harness, draft: object) {
  return harness.run('binding-rule.create', {
    draft: { authMethod: 'jwt', bindType: 'service', bindName: 'x', ...draft },
  });
}

t.test('explaining a login: each step, and the token that it would make', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'eng' } });
  const namespaceRules = [{ selector: 'value.team == eng', bindNamespace: TEAM }];
  await newMethod(harness, 'jwt', { maxTokenTtlNs: 120_000_000_000n, namespaceRules });
  await harness.run('role.create', { draft: { name: 'ops', namespace: 'eng' } });
  await bind(harness, 'jwt', 'role', 'ops');
  await bind(harness, 'jwt', 'policy', 'missing');
  await rule(harness, { selector: 'value.name == nobody', bindName: 'no' });
  await rule(harness, { bindName: `svc-${NAME}` });
  const before = harness.proposals;
  const told = await harness.run('explain-login', inputOf({ name: 'WEB', team: 'eng' }));
  t.match(told, {
    granted: true,
    summary: 'Granted: 2 of 4 binding rules bind something.',
    attributes: [
      { name: 'value.name', value: 'WEB' },
      { name: 'value.team', value: 'eng' },
    ],
    namespace: 'eng',
    namespaceSelector: 'value.team == eng',
    token: {
      description: 'token created via login: {"pod":"a"}',
      roles: [{ name: 'ops' }],
      policies: [],
      serviceIdentities: [{ serviceName: 'svc-web' }],
      local: true,
      expirationTtl: '2m0s',
    },
  });
  t.same(told.rules.map(({ bindName, result, name }) => [bindName, result, name]).sort(), [
    ['missing', 'target-missing', 'missing'],
    ['no', 'not-selected', undefined],
    ['ops', 'bound', 'ops'],
    [`svc-${NAME}`, 'bound', 'svc-web'],
  ]);
  t.equal(harness.proposals, before, 'nothing is made');
  t.equal(harness.counts.get('acl.login jwt granted'), undefined, 'nobody has logged in');
});

t.test('explaining a login: what refuses it', async (t) => {
  const harness = await createHarness();
  const namespaceRules = [{ selector: 'value.team != ""', bindNamespace: TEAM }];
  await newMethod(harness, 'jwt', { namespaceRules });
  const told = (claims: object | string) => harness.run('explain-login', inputOf(claims));
  t.match(await told('junk'), {
    granted: false,
    summary: 'Refused by the auth method: bad credential.',
    attributes: undefined,
    rules: [],
  });
  t.match(await told({ team: 'nowhere' }), {
    summary: 'Refused: namespace "nowhere" does not exist.',
    attributes: [{ name: 'value.team' }],
    namespace: undefined,
  });
  t.match(await told({ name: 'web', team: '' }), {
    granted: false,
    summary: 'Refused: the auth method has no binding rule.',
    namespace: 'default',
    namespaceSelector: undefined,
    token: undefined,
  });
  await bind(harness, 'jwt', 'policy', 'missing');
  t.match(await told({ name: 'web', team: '' }), {
    granted: false,
    summary: 'Refused: none of its 1 binding rules binds anything.',
    rules: [{ result: 'target-missing' }],
  });
  await rule(harness, { bindName: NAME });
  t.match(await told({ name: 'Not A Name!', team: '' }), {
    summary: /^Refused by binding rule [-0-9a-f]{36}: invalid bind name: /,
  });
  const { rules } = await told({ name: 'Not A Name!', team: '' });
  t.match(rules.at(-1), { result: 'refused', name: undefined, why: /^invalid bind name: / });
  const input = { ...inputOf({ name: 'web' }), meta: { pod: 'x'.repeat(8190) } };
  t.match(await refusalOf(harness.run('explain-login', input)), /^invalid: Meta may have at most/);
});

t.test(
  'explaining a login: a provider that cannot be asked is no refusal of the login',
  async (t) => {
    const harness = await createHarness();
    await newMethod(harness, 'jwt');
    const away = () => Promise.reject(new AclError('unavailable', 'the provider is away'));
    const jwt = { ...authMethods.types.jwt, validate: away };
    const types = { ...authMethods.types, jwt };
    const door = createOperations({ ...harness.deps, authMethods: { ...authMethods, types } });
    t.equal(
      await refusalOf(door.run('explain-login', inputOf({}), CALL)),
      'unavailable: the provider is away',
    );
  },
);

t.test('explaining a login: to those who may read the auth method where it is', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'eng' } });
  await newMethod(harness, 'jwt', { namespace: 'eng' });
  const engineer = await secretWith(harness, 'namespace "eng" { acl = "read" }');
  const asked = (namespace: string | undefined, authMethod = 'jwt') => {
    const input = { ...inputOf({ name: 'web' }, authMethod), namespace };
    return refusalOf(harness.run('explain-login', input, { secret: engineer }));
  };
  t.equal(await asked('eng'), 'ok');
  t.match(await asked(undefined), /^permission-denied: .* lacks permission 'acl:read'/);
  t.equal(
    await asked('eng', 'none'),
    'permission-denied: ACL not found: auth method "none" not found',
  );
});

t.test('explaining a login: is judged once more when the provider has answered', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'jwt');
  await newMethod(harness, 'idp', { type: 'oidc', maxTokenTtlNs: 60_000_000_000n });
  let state = '';
  let meanwhile: () => Promise<unknown> = () => Promise.resolve();
  const { oidcFlow, types } = authMethods;
  const slowly = {
    types: {
      ...types,
      jwt: {
        ...types.jwt,
        validate: (...given: Parameters<typeof types.jwt.validate>) =>
          meanwhile().then(() => types.jwt.validate(...given)),
      },
    },
    oidcFlow: {
      authUrl: async (given: Parameters<typeof oidcFlow.authUrl>[0]) => {
        const begun = await oidcFlow.authUrl(given);
        state = `state-${harness.proposals}`;
        return { ...begun, pending: { ...begun.pending, state } };
      },
      callback: (given: Parameters<typeof oidcFlow.callback>[0]) =>
        meanwhile().then(() => oidcFlow.callback(given)),
    },
  };
  const door = createOperations({ ...harness.deps, authMethods: slowly });
  const explained = [
    ['jwt', (secret) => door.run('explain-login', inputOf({ name: 'web' }), { ...CALL, secret })],
    [
      'idp',
      async (secret) => {
        const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
        const begun = { ...common, redirectUri: 'https://me', meta: {} };
        await door.run('oidc.auth-url', begun, CALL);
        const callback = { ...common, state, code: '{"name":"web"}' };
        return door.run('oidc.explain', callback, { ...CALL, secret });
      },
    ],
  ] as const satisfies [string, (secret: SecretId) => Promise<object>][];
  for (const [name, explain] of explained) {
    const reader = await secretWith(harness, 'acl = "read"');
    const { accessorId } = must(harness.deps.view.tokenBySecret(reader), 'it is there');
    meanwhile = () => harness.run('token.delete', { accessorId });
    t.match(await refusalOf(explain(reader)), /^token-unknown: /, name);
    const draft = { description: 'changed', maxTokenTtlNs: 60_000_000_000n };
    meanwhile = () => harness.run('auth-method.update', { name, draft });
    t.match(await explain(ROOT), {
      granted: false,
      summary: `Refused: auth method "${name}" was changed during the login, log in again.`,
      rules: [],
    });
    meanwhile = () => harness.run('auth-method.delete', { name });
    t.equal(
      await refusalOf(explain(ROOT)),
      `permission-denied: ACL not found: auth method "${name}" not found`,
    );
  }
});

t.test('explaining a login by OpenID: uses up its state and makes nothing', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'idp', { type: 'oidc', maxTokenTtlNs: 60_000_000_000n });
  await bind(harness, 'idp', 'service', NAME);
  const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
  await harness.run('oidc.auth-url', { ...common, redirectUri: 'https://me', meta: { pod: 'b' } });
  const callback = { ...common, state: 'state-1', code: '{"name":"web"}' };
  t.match(await harness.run('oidc.explain', callback), {
    granted: true,
    token: {
      description: 'token created via OIDC login: {"pod":"b"}',
      serviceIdentities: [{ serviceName: 'web' }],
    },
  });
  const unknown = 'login-refused: the login state is unknown or has expired';
  t.equal(await refusalOf(harness.run('oidc.explain', callback)), unknown);
  t.match(await refusalOf(harness.run('oidc.callback', callback)), /^login-refused/);
});

t.test('explaining a login: says what the login then does', async (t) => {
  t.comment(`again: CONCLAVE_SEED=${SEED} node ${process.argv[1]}`);
  let state = SEED;
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  const of = <T>(items: readonly T[]): T => items[below(items.length)]!;
  let grantedCount = 0;
  for (let run = 0; run < 60; run += 1) {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'eng' } });
    for (const namespace of ['default', 'eng']) {
      await harness.run('role.create', { draft: { name: `role-${namespace}`, namespace } });
      await harness.run('policy.create', { draft: { name: `policy-${namespace}`, namespace } });
    }
    const namespaceRules = [
      { selector: of(['value.team == eng', '', 'value.team == a']), bindNamespace: TEAM },
    ];
    await newMethod(harness, 'jwt', {
      tokenLocality: of(['local', 'global']),
      maxTokenTtlNs: of([0n, 60_000_000_000n]),
      namespaceRules: of([[], namespaceRules]),
    });
    for (let count = below(4); count > 0; count -= 1) {
      await rule(harness, {
        selector: of(['', 'value.name == web', 'value.team != eng']),
        ...of([
          { bindName: NAME },
          { bindType: 'node', bindName: `n-${NAME}` },
          { bindType: 'role', bindName: `role-${TEAM}` },
          { bindType: 'policy', bindName: of(['policy-eng', 'policy-default']) },
        ]),
      });
    }
    const input = inputOf({
      name: of(['web', 'db', 'No Name']),
      team: of(['eng', 'default', 'a']),
    });
    const told = await harness.run('explain-login', input);
    const before = harness.proposals;
    const login = harness.run('login', input, { secret: undefined });
    const refusal = await refusalOf(login);
    t.equal(told.granted, refusal === 'ok', `${refusal}, told ${told.summary}`);
    t.equal(harness.proposals - before, told.granted ? 1 : 0);
    if (!told.granted) continue;
    grantedCount += 1;
    const { token, policies, roles } = (await login).value;
    t.equal(told.namespace, token.namespace);
    const { description, local, serviceIdentities, nodeIdentities } = token;
    t.match(told.token, { description, local, serviceIdentities, nodeIdentities, policies, roles });
    const lives = token.expirationTime === undefined ? undefined : '1m0s';
    t.equal(told.token?.expirationTtl, lives);
  }
  t.ok(grantedCount > 10 && grantedCount < 50, `${grantedCount} of 60 were granted`);
});
