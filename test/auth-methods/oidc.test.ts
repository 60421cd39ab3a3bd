// Logins by OpenID: the whole flow, and each way in which it must fail.

import { createHash, createPrivateKey } from 'node:crypto';
import { exportPKCS8, importSPKI, type JWTPayload, jwtVerify } from 'jose';
import t from 'tap';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import {
  discovery,
  EC,
  type Key,
  makeKey,
  NOW_S,
  OIDC,
  RSA,
  sign,
  TLS,
} from './identity-provider.ts';
import { authMethod, type Reply, START_MS, startLoopback, testSurroundings } from './loopback.ts';

/** Of 8192 bits, which none but its length is looked at of. */
function longPrivateKey(): string {
  const number = (bytes: number) => Buffer.alloc(bytes, 0xff).toString('base64url');
  const parts = ['p', 'q', 'dp', 'dq', 'qi'].map((part) => [part, number(512)] as const);
  const numbers = { n: number(1024), e: 'AQAB', d: number(1024), ...Object.fromEntries(parts) };
  const key = createPrivateKey({ format: 'jwk', key: { kty: 'RSA', ...numbers } });
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

t.test('oidc: refuses a config with the prescribed words', async (t) => {
  const full = { OIDCDiscoveryURL: 'http://127.0.0.1:1', ...OIDC };
  const without = (key: string) =>
    Object.fromEntries(Object.entries(full).filter(([name]) => name !== key));
  const assertion = { Audience: ['a'], PrivateKey: { PemKey: await exportPKCS8(RSA.privateKey) } };
  const table: readonly (readonly [AuthMethod['config'], RegExp])[] = [
    ...(
      ['OIDCDiscoveryURL', 'OIDCClientID', 'OIDCClientSecret', 'AllowedRedirectURIs'] as const
    ).map((key) => [without(key), new RegExp(`'${key}' must be set for type "oidc"$`)] as const),
    [{ ...full, JWKSURL: 'x' }, /'JWKSURL' must not be set for type "oidc"$/],
    [{ ...full, BoundIssuer: 'x' }, /'BoundIssuer' must not be set for type "oidc"$/],
    [
      { ...full, OIDCLogoutURL: 'https://x.test' },
      /'OIDCLogoutURL' is not supported: a logout ends/,
    ],
    [
      { ...full, OIDCPostLogoutRedirectURIs: ['https://x.test'] },
      /'OIDCPostLogoutRedirectURIs' is not supported: a logout ends/,
    ],
    [
      { ...full, OIDCClientAssertion: assertion },
      /only one of 'OIDCClientSecret' and 'OIDCClientAssertion'/,
    ],
    [
      { ...without('OIDCClientSecret'), OIDCClientAssertion: 'x' },
      /"OIDCClientAssertion" must be a map$/,
    ],
    [
      { ...without('OIDCClientSecret'), OIDCClientAssertion: { Audience: ['a'] } },
      /'OIDCClientAssertion.PrivateKey.PemKey' must be set and not be empty$/,
    ],
    [
      { ...without('OIDCClientSecret'), OIDCClientAssertion: { ...assertion, PrivateKey: {} } },
      /'OIDCClientAssertion.PrivateKey.PemKey' must be set and not be empty$/,
    ],
    ...[null, [], '', ['']].map((Audience) => {
      const OIDCClientAssertion = { ...assertion, Audience };
      const words = /'OIDCClientAssertion.Audience' must be set and not be empty$/;
      return [{ ...without('OIDCClientSecret'), OIDCClientAssertion }, words] as const;
    }),
    [
      { ...without('OIDCClientSecret'), OIDCClientAssertion: { ...assertion, Bogus: 1 } },
      /invalid key "OIDCClientAssertion.Bogus"$/,
    ],
    [
      {
        ...without('OIDCClientSecret'),
        OIDCClientAssertion: { ...assertion, KeyAlgorithm: 'ES256' },
      },
      /needs a PKCS #8 private key that fits ES256$/,
    ],
    [
      {
        ...without('OIDCClientSecret'),
        OIDCClientAssertion: { ...assertion, KeyAlgorithm: 'HS256' },
      },
      /Invalid supported algorithm: HS256$/,
    ],
    [
      {
        ...without('OIDCClientSecret'),
        OIDCClientAssertion: { ...assertion, PrivateKey: { PemKey: longPrivateKey() } },
      },
      /the key of 'OIDCClientAssertion' may have at most 4096 bits, and has 8192$/,
    ],
    [full, /error checking OIDCDiscoveryURL: /],
  ];
  const { types } = createAuthMethods(testSurroundings());
  for (const [config, text] of table) {
    const message = new RegExp(`^Invalid Auth Method: .*${text.source}`);
    await t.rejects(
      types.oidc.checkConfig(authMethod('oidc', config)),
      { code: 'invalid', message },
      text.source,
    );
  }
  await t.rejects(types.oidc.validate(authMethod('oidc', full), 'x'), { code: 'login-refused' });
});

t.test('oidc: the whole flow, and each way in which it must fail', async (t) => {
  const server = await startLoopback(t);
  const surroundings = testSurroundings();
  const { types, oidcFlow } = createAuthMethods(surroundings);
  let documents = discovery(server, [RSA.jwk], { token_endpoint: 'nonsense' });
  let idClaims: Record<string, unknown> = {};
  let signer: Key = RSA;
  let tokenStatus = 200;
  let info: unknown = { sub: 'jeff', team: 'core', email: 'from-userinfo' };
  const idTokens: string[] = [];
  let answer: object = {};
  server.reply = ({ path }) => {
    if (path === '/token') return { status: tokenStatus, body: answer };
    if (path === '/userinfo') return { body: info };
    return { body: documents(path) };
  };
  const method = authMethod('oidc', {
    OIDCDiscoveryURL: server.url,
    ...OIDC,
    OIDCScopes: ['groups'],
    OIDCACRValues: ['phr'],
    VerboseOIDCLogging: true,
    ClaimMappings: { email: 'email', team: 'team' },
  });
  await t.rejects(types.oidc.checkConfig(method), { code: 'invalid' }, 'a broken endpoint');
  documents = discovery(server, [RSA.jwk]);
  await types.oidc.checkConfig(method);
  const start = (redirectUri = 'http://localhost:9999/oidc/callback', on = method) =>
    oidcFlow.authUrl({ method: on, redirectUri, clientNonce: 'mine', meta: { a: 'b' } });
  const finish = async (more: object = {}, idMore: object = {}, on = method) => {
    const { pending } = await start(undefined, on);
    idClaims = {
      iss: server.url,
      aud: 'conclave',
      sub: 'jeff',
      email: 'j@test',
      nonce: pending.nonce,
      iat: surroundings.clock.wallMs() / 1000,
      exp: surroundings.clock.wallMs() / 1000 + 60,
      ...idMore,
    };
    const idToken = await sign(signer, idClaims as JWTPayload);
    idTokens.push(idToken);
    answer = { id_token: idToken, access_token: 'opaque' };
    const stored: typeof pending = JSON.parse(JSON.stringify(pending));
    return oidcFlow.callback({
      method: on,
      pending: stored,
      state: pending.state,
      code: 'c0de',
      clientNonce: 'mine',
      ...more,
    });
  };

  const { authUrl, pending } = await start();
  const url = new URL(authUrl);
  t.match(Object.fromEntries(url.searchParams), {
    tenant: '1',
    response_type: 'code',
    client_id: 'conclave',
    redirect_uri: 'http://localhost:9999/oidc/callback',
    scope: 'openid groups',
    acr_values: 'phr',
    state: pending.state,
    nonce: pending.nonce,
    code_challenge_method: 'S256',
  });
  t.notOk(authUrl.includes(pending.pkceVerifier));
  t.equal(new Set([pending.state, pending.nonce, pending.pkceVerifier]).size, 3);
  t.match(pending, {
    meta: { a: 'b' },
    expiresAtMs: START_MS + 300_000,
    method: { name: 'm', createIndex: 7 },
  });

  const identity = await finish();
  t.same(Object.fromEntries(identity.interpolatable), {
    'value.email': 'j@test',
    'value.team': 'core',
  });
  const exchange = server.seen.findLast(({ path }) => path === '/token');
  const form = new URLSearchParams(exchange?.body);
  t.equal(exchange?.headers.authorization, `Basic ${btoa('conclave:s3cret%3A%2F%3F')}`);
  t.equal(form.get('code'), 'c0de');
  t.equal(form.get('grant_type'), 'authorization_code');
  t.match(form.get('code_verifier'), /^[\w-]{43}$/);

  info = { sub: 'somebody else', team: 'evil' };
  t.notOk(
    (await finish()).interpolatable.has('value.team'),
    'userinfo of another subject is ignored',
  );
  info = { team: 'evil' };
  for (const idMore of [{}, { sub: undefined }]) {
    const found = await finish({}, idMore);
    t.notOk(found.interpolatable.has('value.team'), 'and so is that of nobody');
  }

  const stateText = 'the login state is unknown or has expired';
  const refusals: readonly (readonly [string, object, object, string])[] = [
    ['another state', { state: 'x' }, {}, stateText],
    ['another client nonce', { clientNonce: 'x' }, {}, stateText],
    ['nothing pending', { pending: undefined }, {}, stateText],
    ['the method was made anew', { method: { ...method, createIndex: 8 } }, {}, stateText],
    ['the method of another name', { method: { ...method, name: 'n' } }, {}, stateText],
    ['the one of another namespace', { method: { ...method, namespace: 'team' } }, {}, stateText],
    [
      'its redirect URI was taken away',
      { method: { ...method, config: { ...method.config, AllowedRedirectURIs: ['https://me'] } } },
      {},
      'the redirect_uri of this login is not allowed any more',
    ],
    ['another nonce', {}, { nonce: 'x' }, 'invalid nonce in the ID token'],
    ['no nonce', {}, { nonce: undefined }, 'invalid nonce in the ID token'],
    ['another client', {}, { aud: 'other' }, 'the ID token is for another client (aud)'],
    [
      'another authorized party',
      {},
      { aud: ['conclave', 'x'], azp: 'x' },
      'the ID token is for another client (azp)',
    ],
    [
      'several audiences, no party',
      {},
      { aud: ['conclave', 'x'] },
      'the ID token is for another client (azp)',
    ],
    ['another issuer', {}, { iss: 'https://x.test' }, 'invalid issuer (iss) claim'],
    ['expired', {}, { exp: NOW_S - 61 }, 'token is expired (exp)'],
    ['no expiry', {}, { exp: undefined }, 'the ID token has no expiration time'],
  ];
  for (const [name, more, idMore, message] of refusals) {
    await t.rejects(finish(more, idMore), { code: 'login-refused', message }, name);
  }
  const late = await start();
  surroundings.advance(300_000);
  await t.rejects(
    oidcFlow.callback({
      method,
      pending: late.pending,
      state: late.pending.state,
      code: 'c',
      clientNonce: 'mine',
    }),
    { code: 'login-refused', message: stateText },
    'too late',
  );
  signer = await makeKey('RS256');
  await t.rejects(finish(), { code: 'login-refused' }, 'a forged ID token');
  signer = RSA;
  tokenStatus = 400;
  await t.rejects(finish(), {
    code: 'login-refused',
    message: 'the OIDC provider did not accept the code',
  });
  tokenStatus = 503;
  await t.rejects(finish(), { code: 'unavailable' });
  tokenStatus = 200;
  await t.rejects(start('https://evil.test/cb'), {
    code: 'invalid',
    message: 'unauthorized redirect_uri: https://evil.test/cb',
  });
  const brought = (length: number, split: 'nonce' | 'key' | 'value') => {
    const redirectUri = 'http://localhost:9999/oidc/callback';
    const text = 'x'.repeat(length - redirectUri.length);
    const meta = split === 'key' ? { [text]: '' } : split === 'value' ? { '': text } : {};
    const clientNonce = split === 'nonce' ? text : '';
    return oidcFlow.authUrl({ method, redirectUri, clientNonce, meta });
  };
  for (const split of ['nonce', 'key', 'value'] as const) {
    t.ok((await brought(8192, split)).authUrl, `as much as anybody may have stored: ${split}`);
    await t.rejects(brought(8193, split), {
      code: 'invalid',
      message:
        'RedirectURI, ClientNonce and Meta may have at most 8192 characters together, and have 8193',
    });
  }
  await t.rejects(
    start('https://ui.test:444/cb'),
    { code: 'invalid' },
    'only a loopback may choose its port',
  );
  await t.rejects(start('http://intranet.test:444/cb'), { code: 'invalid' });
  await t.rejects(start('http://localhost:1/other'), { code: 'invalid' });
  await t.rejects(start('https://localhost:8444/cb'), { code: 'invalid' }, 'only in plain text');

  const byAssertion = authMethod('oidc', {
    OIDCDiscoveryURL: server.url,
    OIDCClientID: 'conclave',
    AllowedRedirectURIs: 'http://localhost/oidc/callback',
    OIDCClientUsePKCE: 'false',
    OIDCClientAssertion: {
      audience: server.url,
      privatekey: { pemkey: await exportPKCS8(RSA.privateKey) },
    },
  });
  await types.oidc.checkConfig(byAssertion);
  t.notOk((await start(undefined, byAssertion)).authUrl.includes('code_challenge'));
  info = {};
  await finish({}, {}, byAssertion);
  const assertionForm = new URLSearchParams(
    server.seen.findLast(({ path }) => path === '/token')?.body,
  );
  const verified = await jwtVerify(
    assertionForm.get('client_assertion') ?? '',
    await importSPKI(RSA.pem, 'RS256'),
    {
      audience: server.url,
      issuer: 'conclave',
      currentDate: new Date(surroundings.clock.wallMs()),
    },
  );
  t.match(verified.payload, { sub: 'conclave', jti: /-/ });
  const logged = surroundings.lines.join('\n');
  t.match(logged, /OIDC claims received/);
  for (const secret of [
    's3cret',
    'c0de',
    'opaque',
    'j@test',
    pending.state,
    ...idTokens.map((token) => token.slice(-40)),
  ]) {
    t.notOk(logged.includes(secret), 'the log holds no secret and no claim value');
  }
});

/** A provider whose ID tokens say `claims`, and logins there by a method of `config`. */
async function providerOf(t: Parameters<typeof startLoopback>[0], tls?: typeof TLS) {
  const server = await startLoopback(t, tls);
  const surroundings = testSurroundings();
  const { types, oidcFlow } = createAuthMethods(surroundings);
  let idToken = '';
  const provider = {
    server,
    surroundings,
    types,
    oidcFlow,
    /** In the discovery document, in place of what else is there. */
    document: {},
    /** In what a code is redeemed for. */
    tokens: {},
    info: { body: {} } as Reply,
    method: (config: AuthMethod['config'] = {}) =>
      authMethod('oidc', { OIDCDiscoveryURL: server.url, ...OIDC, ...config }),
    begin: (method: AuthMethod, redirectUri = 'https://ui.test/cb') =>
      oidcFlow.authUrl({ method, redirectUri, clientNonce: '', meta: {} }),
    login: async (method: AuthMethod, claims: JWTPayload) => {
      const { pending } = await provider.begin(method);
      const { nonce, state } = pending;
      idToken = await sign(RSA, { iss: server.url, exp: NOW_S + 60, nonce, ...claims });
      const back = { method, pending, state, code: 'c', clientNonce: '' };
      const identity = await oidcFlow.callback(back);
      const asked = server.seen.findLast(({ path }) => path === '/token')!;
      return { identity, pending, asked, form: new URLSearchParams(asked.body) };
    },
  };
  server.reply = ({ path }) => {
    if (path === '/token') return { body: { id_token: idToken, ...provider.tokens } };
    if (path === '/userinfo') return provider.info;
    return { body: discovery(server, [RSA.jwk], provider.document)(path) };
  };
  return provider;
}

t.test(
  'oidc: a token for another client, or another audience than the bound ones, is none',
  async (t) => {
    const { method, login } = await providerOf(t);
    const anyone = method();
    const bound = method({ BoundAudiences: ['api', 'more'] });
    const text = (what: string) => `the ID token is for another client (${what})`;
    const table: readonly (readonly [AuthMethod, JWTPayload, string | undefined])[] = [
      [anyone, { aud: 'conclave' }, undefined],
      [anyone, { aud: 'conclave', azp: 'conclave' }, undefined],
      [anyone, { aud: ['conclave', 'api'], azp: 'conclave' }, undefined],
      [anyone, { aud: 'conclave', azp: 'api' }, text('azp')],
      [anyone, { aud: 'conclave', azp: '' }, text('azp')],
      [anyone, { aud: [] }, text('aud')],
      [bound, { aud: ['conclave', 'api'] }, undefined],
      [bound, { aud: ['conclave', 'api'], azp: 'conclave' }, undefined],
      [bound, { aud: ['conclave', 'api'], azp: 'api' }, text('azp')],
      [bound, { aud: ['api'] }, text('aud')],
      [bound, { aud: 'conclave' }, 'aud claim does not match any bound audience'],
      [bound, { aud: ['conclave', 'other'] }, 'aud claim does not match any bound audience'],
    ];
    for (const [on, claims, message] of table) {
      const name = JSON.stringify(claims);
      if (message === undefined) await t.resolves(login(on, claims), name);
      else await t.rejects(login(on, claims), { code: 'login-refused', message }, name);
    }
  },
);

t.test(
  'oidc: the provider is told of the verifier at first, and given it at the end',
  async (t) => {
    const { method, begin, login, surroundings } = await providerOf(t);
    const { authUrl, pending } = await begin(method());
    const asked = new URL(authUrl).searchParams;
    const challenge = createHash('sha256').update(pending.pkceVerifier).digest('base64url');
    t.equal(asked.get('code_challenge'), challenge);
    t.notOk(asked.has('acr_values'), 'nothing is asked for that the method does not say');
    const withIt = await login(method(), { aud: 'conclave' });
    t.equal(withIt.form.get('code_verifier'), withIt.pending.pkceVerifier);
    const without = await login(method({ OIDCClientUsePKCE: false }), { aud: 'conclave' });
    t.notOk(without.form.has('code_verifier'));
    t.notMatch(surroundings.lines.join(), 'OIDC claims received', 'unless it is asked for');
  },
);

t.test('oidc: a provider or a method that is none ends a login in words', async (t) => {
  const provider = await providerOf(t);
  const { method, begin, login, oidcFlow } = provider;
  await t.rejects(begin(method(), 'nonsense'), {
    code: 'invalid',
    message: 'unauthorized redirect_uri: nonsense',
  });
  const other = authMethod('jwt', { JWKSURL: 'https://keys.test/' });
  const { pending } = await begin(method());
  const back = { method: other, pending, state: pending.state, code: 'c', clientNonce: '' };
  const refusal = { code: 'login-refused', message: 'auth method "m" is not of type "oidc"' };
  await t.rejects(begin(other), refusal);
  await t.rejects(oidcFlow.callback(back), refusal);
  for (const name of ['jwks_uri', 'authorization_endpoint', 'token_endpoint']) {
    provider.document = { [name]: undefined };
    const anew = { ...method(), modifyIndex: name.length };
    await t.rejects(login(anew, { aud: 'conclave' }), {
      code: 'unavailable',
      message: `error asking for the OIDC provider: the discovery document has no ${name}`,
    });
  }
});

t.test('oidc: a key of an elliptic curve proves the client as well', async (t) => {
  const { types, method, login } = await providerOf(t);
  const OIDCClientAssertion = {
    Audience: ['provider'],
    KeyAlgorithm: 'ES256',
    PrivateKey: { PemKey: await exportPKCS8(EC.privateKey) },
  };
  const on = method({ OIDCClientSecret: '', OIDCClientAssertion });
  await types.oidc.checkConfig(on);
  const { form } = await login(on, { aud: 'conclave' });
  t.equal(
    form.get('client_assertion_type'),
    'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  );
  t.equal(form.get('client_id'), 'conclave', 'which some providers look for');
  const key = await importSPKI(EC.pem, 'ES256');
  const now = new Date(NOW_S * 1000);
  await t.resolves(jwtVerify(form.get('client_assertion') ?? '', key, { currentDate: now }));
});

t.test('oidc: a client proves itself in a way that the provider takes', async (t) => {
  const provider = await providerOf(t, TLS);
  const ways: readonly (readonly [readonly string[] | undefined, 'header' | 'form'])[] = [
    [undefined, 'header'],
    [['private_key_jwt'], 'header'],
    [['client_secret_basic', 'client_secret_post'], 'header'],
    [['client_secret_post'], 'form'],
  ];
  for (const [modifyIndex, [offered, way]] of ways.entries()) {
    provider.document = { token_endpoint_auth_methods_supported: offered };
    const on = { ...provider.method({ OIDCDiscoveryCACert: TLS.cert }), modifyIndex };
    const { asked, form } = await provider.login(on, { aud: 'conclave' });
    const inForm = [form.get('client_id'), form.get('client_secret')];
    t.same(inForm, way === 'form' ? ['conclave', 's3cret:/?'] : [null, null], String(offered));
    t.equal(asked.headers.authorization !== undefined, way === 'header');
  }
});

t.test(
  'oidc: what the userinfo endpoint says counts where it answers, and whose it is',
  async (t) => {
    const provider = await providerOf(t);
    const { server, surroundings } = provider;
    const on = provider.method({ ClaimMappings: { team: 'team' } });
    const teamOf = async () => {
      const { identity } = await provider.login(on, { aud: 'conclave', sub: 'jeff' });
      return identity.interpolatable.get('value.team');
    };
    const askedCount = () => server.seen.filter(({ path }) => path === '/userinfo').length;
    provider.info = { body: { sub: 'jeff', team: 'core' } };
    for (const access_token of [undefined, '', 7]) {
      provider.tokens = { access_token };
      t.equal(await teamOf(), undefined);
    }
    t.equal(askedCount(), 0, 'nobody is asked without a token');
    provider.tokens = { access_token: 'opaque' };
    t.equal(await teamOf(), 'core');
    provider.info = { status: 203, body: { sub: 'jeff', team: 'core' } };
    t.equal(await teamOf(), undefined);
    t.notMatch(surroundings.lines.join(), 'userinfo');
    provider.info = { body: 'junk' };
    t.equal(await teamOf(), undefined);
    t.match(surroundings.lines.join(), 'OIDC userinfo endpoint gave no answer');
    provider.tokens = { id_token: 7 };
    const message = 'the OIDC provider sent no ID token';
    await t.rejects(teamOf(), { code: 'login-refused', message });
    provider.tokens = { access_token: 'opaque' };
    provider.document = { userinfo_endpoint: undefined };
    const { identity } = await provider.login({ ...on, modifyIndex: 8 }, { aud: 'conclave' });
    t.notOk(identity.interpolatable.has('value.team'));
  },
);
