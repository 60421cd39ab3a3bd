// Logins over the real state machine: what they bind, by OpenID too, and the methods and rules behind them.

import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import type { NamespaceName, SecretId } from '../../../src/acl/ids.ts';
import {
  OIDC_PENDING_MS,
  type OidcFlow,
  type PendingLogin,
} from '../../../src/auth-methods/oidc/oidc.ts';
import { createOperations } from '../../../src/service/create-operations.ts';
import type { ServiceDeps } from '../../../src/service/deps.ts';
import { PendingLogins } from '../../../src/service/logins/pending-logins.ts';
import { RULES_OF_METHOD_MAX } from '../../../src/service/objects/binding-rules.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import {
  allOf,
  authMethods,
  CALL,
  createHarness,
  type Harness,
  ROOT,
  refusalOf,
} from '../harness.ts';
import { bind, descriptions, logIn, NOBODY, newMethod, tokenList } from './use-cases.ts';

/** A template of binding rules. */
const ATTRIBUTE = ['$', '{value.name}'].join('');

t.test('login: binds, skips what is missing, refuses when nothing is left; logout', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'jwt', { maxTokenTtlNs: 120_000_000_000n });
  const login = (authMethod: string, claims: object | string) => {
    const bearerToken = typeof claims === 'string' ? claims : JSON.stringify(claims);
    const input = { authMethod, bearerToken, meta: { b: '1', a: '2' }, namespace: undefined };
    return harness.run('login', input, { secret: NOBODY as SecretId });
  };
  t.equal(await refusalOf(login('jwt', { name: 'x' })), 'permission-denied: Permission denied');
  t.equal(
    await refusalOf(login('none', {})),
    'permission-denied: ACL not found: auth method "none" not found',
  );
  t.equal(await refusalOf(login('jwt', 'junk')), 'login-refused: bad credential');
  await bind(harness, 'jwt', 'role', 'missing');
  await bind(harness, 'jwt', 'service', `svc-${ATTRIBUTE}`);
  const { value } = await login('JWT', { name: 'WEB' });
  t.match(value.token, {
    description: 'token created via login: {"a":"2","b":"1"}',
    local: true,
    roles: [],
    serviceIdentities: [{ serviceName: 'svc-web', datacenters: [] }],
    authMethod: { name: 'jwt' },
  });
  t.equal(value.token.expirationTime, '2026-01-01T00:02:00.000Z');
  t.equal(harness.counts.get('acl.login jwt granted'), 1);
  t.equal(harness.counts.get('acl.login jwt permission-denied'), 1);
  const out = (secret: SecretId | undefined) => harness.run('logout', {}, { secret });
  t.equal(await refusalOf(out(undefined)), 'unauthenticated: Supplied token does not exist');
  t.equal(await refusalOf(out(NOBODY as SecretId)), 'token-unknown: ACL not found');
  t.equal(
    await refusalOf(out(ROOT)),
    "permission-denied: Permission denied: token wasn't created via login",
  );
  harness.clock.advance(120_001);
  t.equal((await out(value.token.secretId)).value, true, 'also an expired token');
});

t.test('login by OIDC: a state works once, also when two come at once', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'idp', { type: 'oidc', maxTokenTtlNs: 60_000_000_000n });
  await bind(harness, 'idp', 'service', ATTRIBUTE);
  const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
  const url = await harness.run('oidc.auth-url', {
    ...common,
    redirectUri: 'https://me',
    meta: {},
  });
  t.equal(url.authUrl, 'https://idp/?state=state-1');
  const back = () =>
    harness.run('oidc.callback', { ...common, state: 'state-1', code: '{"name":"web"}' });
  const results = await Promise.all([refusalOf(back()), refusalOf(back())]);
  t.same(results.sort(), ['login-refused: the login state is unknown or has expired', 'ok']);
  t.equal(harness.machine.pendingLogin('state-1'), undefined, 'nothing is left of it');
  t.same(await descriptions(tokenList(harness, { authMethod: 'idp' })), [
    'token created via OIDC login',
  ]);
});

interface Idp extends Harness {
  readonly begin: (authMethod?: string) => Promise<string>;
  readonly end: (state: string) => Promise<string>;
}

/** Two methods at a provider who gives each login a state of its own, `state-1` and so on. */
async function withIdp(more: Partial<ServiceDeps> = {}): Promise<Idp> {
  const harness = await createHarness();
  let count = 0;
  const oidcFlow: OidcFlow = {
    ...authMethods.oidcFlow,
    authUrl: async (request) => {
      const { pending } = await authMethods.oidcFlow.authUrl(request);
      count += 1;
      const state = `state-${count}`;
      const expiresAtMs = harness.clock.wallMs() + OIDC_PENDING_MS;
      return { authUrl: state, pending: { ...pending, state, expiresAtMs } };
    },
  };
  const types = { ...authMethods.types };
  const door = createOperations({ ...harness.deps, authMethods: { types, oidcFlow }, ...more });
  for (const name of ['idp', 'other']) {
    await newMethod(harness, name, { type: 'oidc', maxTokenTtlNs: 60_000_000_000n });
  }
  const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
  const begun = { ...common, redirectUri: 'https://me', meta: {} };
  const code = '{"name":"web"}';
  return Object.assign(harness, {
    begin: (authMethod = 'idp') =>
      refusalOf(door.run('oidc.auth-url', { ...begun, authMethod }, CALL)),
    end: (state: string) => refusalOf(door.run('oidc.callback', { ...common, state, code }, CALL)),
  });
}

const FULL_OF_METHOD =
  'unavailable: nothing was begun: 4096 logins of auth method "idp" wait for their end already, try again later';

t.test('login by OIDC: so many of one method wait for their end and no more', async (t) => {
  const { begin, end, clock } = await withIdp();
  for (let count = 0; count < 4096; count += 1) await begin();
  t.equal(await begin(), FULL_OF_METHOD);
  t.equal(await begin('other'), 'ok', 'others have room');
  await end('state-7');
  t.equal(await begin(), 'ok', 'in the place of one that ended');
  t.equal(await begin(), FULL_OF_METHOD);
  clock.advance(OIDC_PENDING_MS);
  t.equal(await begin(), 'ok', 'when their time is over');
});

t.test('login by OIDC: what nobody began is refused, and nothing is written for it', async (t) => {
  const harness = await withIdp();
  const before = harness.proposals;
  const refusal = 'login-refused: the login state is unknown or has expired';
  t.equal(await harness.end('nobody'), refusal);
  t.equal(harness.proposals, before);
});

t.test('login by OIDC: ends also where it is not counted, or not any more', async (t) => {
  const harness = await withIdp();
  const { begin, end, clock, deps } = harness;
  for (const name of ['idp', 'other']) await bind(harness, name, 'service', ATTRIBUTE);
  await begin();
  await begin();
  const code = '{"name":"web"}';
  const back = {
    authMethod: 'idp',
    clientNonce: 'n',
    namespace: undefined,
    state: 'state-1',
    code,
  };
  const ofOtherLeader = createOperations(deps);
  t.equal(await refusalOf(ofOtherLeader.run('oidc.callback', back, CALL)), 'ok');
  clock.advance(OIDC_PENDING_MS);
  await begin('other');
  t.equal(await end('state-2'), 'ok', 'whether it is too late is for the flow to say');
});

/** A login that was begun where what all share may be closed. */
async function withGate(tokenLocality: 'global' | 'local') {
  const harness = await createHarness();
  const gate: { closed: AclError | undefined } = { closed: undefined };
  const federation = { ...harness.deps.federation, closedBecause: () => gate.closed };
  /** Between two tries. */
  const leaderChanged = async (): Promise<void> => {
    gate.closed = undefined;
  };
  const remote = { ...harness.deps.remote, leaderChanged };
  const door = createOperations({ ...harness.deps, federation, remote });
  const draft = { type: 'oidc', maxTokenTtlNs: 60_000_000_000n, tokenLocality };
  await newMethod(harness, 'idp', draft);
  await bind(harness, 'idp', 'service', ATTRIBUTE);
  const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
  const begun = { ...common, redirectUri: 'https://me', meta: {} };
  await door.run('oidc.auth-url', begun, CALL);
  const ended = { ...common, state: 'state-1', code: '{"name":"web"}' };
  return { gate, end: () => refusalOf(door.run('oidc.callback', ended, CALL)) };
}

t.test('login by OIDC: uses nothing up while its token could not be written', async (t) => {
  const { end, gate } = await withGate('global');
  gate.closed = new AclError('unavailable', 'somebody has more');
  t.equal(await end(), 'unavailable: somebody has more');
  gate.closed = new LeaderAway({ says: 'it has just begun' });
  t.equal(await end(), 'ok', 'it is tried until it can be');
  const local = await withGate('local');
  local.gate.closed = new AclError('unavailable', 'somebody has more');
  t.equal(await local.end(), 'ok', 'that of this datacenter alone can be');
});

t.test('login by OIDC: what could not be stored takes no room', async (t) => {
  const closing = new AclError('unavailable', 'the log is closing');
  const reigns = new Set<number | undefined>();
  const { begin } = await withIdp({
    propose: (_command, reign) => {
      reigns.add(reign);
      return Promise.reject(closing);
    },
  });
  for (let count = 0; count < 4096; count += 1) await begin();
  t.equal(await begin(), 'unavailable: the log is closing');
  t.same([...reigns], [1], 'each is for the reign in which it was counted');
});

t.test('login by OIDC: a new leader counts what earlier ones let in', async (t) => {
  const harness = await withIdp();
  for (const name of ['idp', 'idp', 'other']) await harness.begin(name);
  harness.clock.advance(OIDC_PENDING_MS - 1);
  await harness.begin('idp');
  const logins = new PendingLogins(harness.deps, { countMax: 6, methodCountMax: 4 });
  const login = (method: string, state: string): PendingLogin => ({
    method: { name: method, namespace: 'default', createIndex: 1 },
    state,
    nonce: '',
    pkceVerifier: '',
    redirectUri: '',
    clientNonce: '',
    meta: {},
    expiresAtMs: 0,
  });
  const begin = (method: string, state: string, reign = 1): Promise<string> =>
    refusalOf(logins.begin(login(method, state), reign));
  t.equal(await begin('idp', 'a'), 'ok');
  t.match(await begin('idp', 'b'), /^unavailable: .* 4 logins of auth method "idp" wait/);
  t.equal(await begin('other', 'c'), 'ok');
  t.match(await begin('other', 'd'), /^unavailable: .* 6 logins of OIDC wait/, 'in all');
  t.equal(await begin('other', 'e', 2), 'ok', 'the next reign reads the state');
  harness.clock.advance(1);
  t.equal(await begin('idp', 'f', 2), 'ok', 'each until its own time');
  t.equal(await begin('idp', 'g', 2), 'ok');
  t.equal(await begin('idp', 'h', 2), 'ok');
  t.match(await begin('idp', 'i', 2), /4 logins of auth method/, 'the later one is there still');
});

t.test('login by OIDC: one that a clock ahead began counts no longer than others', async (t) => {
  const { deps, clock } = await withIdp();
  const method = { name: 'idp', namespace: 'default', createIndex: 1 };
  const texts = { nonce: '', pkceVerifier: '', redirectUri: '', clientNonce: '' };
  const expiresAtMs = clock.wallMs() + 10 * OIDC_PENDING_MS;
  const ahead = { ...texts, method, state: 'ahead', meta: {}, expiresAtMs };
  const view = {
    pendingLogin: () => ({ value: Buffer.from(JSON.stringify(ahead)), expiresMs: expiresAtMs }),
    oldPendingLogins: async () => ['ahead'],
  };
  const logins = new PendingLogins({ ...deps, view }, { countMax: 1, methodCountMax: 1 });
  const begin = (state: string) => refusalOf(logins.begin({ ...ahead, state }, 1));
  t.match(await begin('a'), /^unavailable: /);
  clock.advance(OIDC_PENDING_MS);
  t.equal(await begin('b'), 'ok');
});

t.test('login by OIDC: a count that could not be read is read again', async (t) => {
  const harness = await withIdp();
  let reads = 0;
  const view = {
    pendingLogin: () => undefined,
    oldPendingLogins: async () => {
      reads += 1;
      if (reads === 1) throw new AclError('unavailable', 'the store does not answer');
      return ['ended meanwhile'];
    },
  };
  const logins = new PendingLogins({ ...harness.deps, view });
  const method = { name: 'idp', namespace: 'default', createIndex: 1 };
  const texts = { nonce: '', pkceVerifier: '', redirectUri: '', clientNonce: '' };
  const begin = (state: string): Promise<string> =>
    refusalOf(logins.begin({ ...texts, method, state, meta: {}, expiresAtMs: 0 }, 1));
  t.equal(await begin('a'), 'unavailable: the store does not answer');
  t.equal(await begin('b'), 'ok');
  t.equal(await begin('c'), 'ok');
  t.equal(reads, 2);
});

t.test('login: its metadata is bounded, which all servers keep', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'jwt');
  await bind(harness, 'jwt', 'service', 'x');
  const given = { authMethod: 'jwt', bearerToken: '{"name":"web"}', namespace: undefined };
  const withMeta = (length: number): Promise<string> =>
    refusalOf(harness.run('login', { ...given, meta: { ab: 'x'.repeat(length - 2) } }));
  t.equal(await withMeta(8192), 'ok');
  t.equal(await withMeta(8193), 'invalid: Meta may have at most 8192 characters, and has 8193');
});

t.test(
  'auth methods: an upsert; its rules speak of its attributes; deleting takes all',
  async (t) => {
    const harness = await createHarness();
    t.equal(
      await refusalOf(newMethod(harness, 'jwt', { config: { bad: true } })),
      'invalid: Invalid Auth Method: bad Config',
    );
    const first = await newMethod(harness, 'jwt');
    const second = await harness.run('auth-method.update', {
      name: 'JWT',
      draft: { description: 'new', config: {} },
    });
    t.equal(second.value.method.createIndex, first.value.method.createIndex);
    t.equal(second.value.method.name, 'jwt');
    t.match(
      await refusalOf(bind(harness, 'jwt', 'service', ATTRIBUTE.replace('name', 'nope'))),
      /^invalid: Invalid Binding Rule/,
    );
    t.equal(
      await refusalOf(bind(harness, 'none', 'service', 'x')),
      'invalid: cannot find auth method with name "none"',
    );
    await bind(harness, 'jwt', 'service', 'x');
    const token = await logIn(harness, 'jwt');
    t.equal((await harness.run('auth-method.delete', { name: 'jwt' })).value, true);
    const rules = await harness.run('binding-rule.list', { authMethod: undefined, page: {} });
    t.same(await allOf(rules), []);
    const { accessorId } = token;
    t.equal(
      await refusalOf(harness.run('token.read', { accessorId, expanded: false })),
      'token-not-found: token does not exist: ACL not found',
    );
    t.equal(
      await refusalOf(harness.run('token.update', { accessorId, draft: { local: true } })),
      'invalid: Failed to apply token write request: No such auth method with Name: jwt',
    );
  },
);

t.test('binding rules: listed by their method', async (t) => {
  const harness = await createHarness();
  for (const name of ['one', 'two']) {
    await newMethod(harness, name);
    await bind(harness, name, 'service', name);
  }
  const list = await harness.run('binding-rule.list', { authMethod: 'ONE', page: {} });
  t.same(
    (await allOf(list)).map(({ rule }) => rule.bindName),
    ['one'],
  );
  const all = await harness.run('binding-rule.list', { authMethod: '', page: {} });
  t.equal((await allOf(all)).length, 2, 'an empty name is none');
  const first = await harness.run('binding-rule.list', {
    authMethod: undefined,
    page: { limit: 1 },
  });
  const [shown] = await allOf(first);
  t.equal(first.next(), shown?.rule.id);
  await bind(harness, 'one', 'service', 'more');
  for (const call of [{}, { namespaceParameter: '*' }]) {
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const input = { authMethod: 'one', page: { limit: 1, after } };
      const page = await harness.run('binding-rule.list', input, call);
      seen.push(...(await allOf(page)).map(({ rule }) => rule.bindName));
      after = page.next();
    } while (after !== undefined && seen.length < 9);
    t.same(seen, ['one', 'more'], 'page by page, each once');
  }
});

t.test('binding rules: so many of one method and no more', async (t) => {
  const harness = await createHarness();
  const { machine } = harness;
  const countOf = machine.bindingRuleCountOf.bind(machine);
  // As if each method had all but two of those that it may have.
  machine.bindingRuleCountOf = (...given) => countOf(...given) + RULES_OF_METHOD_MAX - 2;
  for (const name of ['m', 'other']) await newMethod(harness, name);
  for (const name of ['web', 'api']) await bind(harness, 'm', 'service', name);
  await t.rejects(bind(harness, 'M', 'service', 'web'), {
    code: 'invalid',
    message:
      'Invalid Binding Rule: an auth method may have at most 4096 binding rules, and "m" has 4096',
  });
  const { id } = (await bind(harness, 'other', 'service', 'web')).value.rule;
  const draft = { bindType: 'service', bindName: 'db' };
  await harness.run('binding-rule.update', { id, draft });
  t.equal((await logIn(harness, 'm')).serviceIdentities.length, 2);
  const list = await harness.run('binding-rule.list', { authMethod: 'm', page: { limit: 1 } });
  for (const { rule } of await allOf(list)) {
    await harness.run('binding-rule.delete', { id: rule.id });
  }
  await bind(harness, 'm', 'service', 'web');
  t.equal(countOf('default' as NamespaceName, 'm'), 2);
});
