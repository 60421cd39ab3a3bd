// Logins by OpenID: the whole flow, and each way in which it must fail.

import { createPrivateKey } from 'node:crypto';
import { exportPKCS8, importSPKI, type JWTPayload, jwtVerify } from 'jose';
import t from 'tap';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import { discovery, type Key, makeKey, NOW_S, OIDC, RSA, sign } from './identity-provider.ts';
import { authMethod, START_MS, startLoopback, testSurroundings } from './loopback.ts';

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
      { ...without('OIDCClientSecret'), OIDCClientAssertion: { Audience: ['a'] } },
      /must have Audience and PrivateKey.PemKey$/,
    ],
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
