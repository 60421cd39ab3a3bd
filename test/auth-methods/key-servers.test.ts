// Keys and discovery documents over HTTP: what is cached, trusted, bounded, and given up.

import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import tls from 'node:tls';
import t from 'tap';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import { CERTIFICATES_MAX } from '../../src/auth-methods/jwt/signing-keys.ts';
import {
  type HttpsClient,
  HttpsFailure,
  type HttpsResponse,
} from '../../src/auth-methods/outside/https-client.ts';
import {
  jsonObjectOf,
  parseHttpUrl,
  RemoteFailure,
} from '../../src/auth-methods/outside/remote.ts';
import {
  LOAD_MAX_MS,
  RemoteCache,
  SHARERS_MAX,
} from '../../src/auth-methods/outside/remote-cache.ts';
import { NodeHttpsClient } from '../../src/platform-node/net/https-client.ts';
import { selfSigned } from '../support/certificates.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { trustWhoever } from '../support/trust-whoever.ts';
import { CLAIMS, discovery, EC, makeKey, RSA, sign, TLS } from './identity-provider.ts';
import { authMethod, START_MS, startLoopback, testSurroundings } from './loopback.ts';

t.test(
  'jwt: keys of a JWKS URL are cached, and asked for again once when one is unknown',
  async (t) => {
    const server = await startLoopback(t, TLS);
    const surroundings = testSurroundings();
    const { types } = createAuthMethods(surroundings);
    const method = authMethod('jwt', {
      JWKSURL: `${server.url}/keys`,
      JWKSCACert: TLS.cert,
      BoundAudiences: 'conclave',
    });
    const first = await makeKey('RS256', 'one');
    const second = await makeKey('RS256', 'two');
    server.reply = () => ({ body: { keys: [first.jwk] } });
    await types.jwt.checkConfig(method);
    t.equal(server.seen.splice(0).length, 1, 'a write asks');
    const bearer = await sign(first, CLAIMS, { kid: 'one' });
    await Promise.all([types.jwt.validate(method, bearer), types.jwt.validate(method, bearer)]);
    t.equal(server.seen.length, 1, 'one request for both');
    server.reply = () => ({ body: { keys: [second.jwk] } });
    const rotated = await sign(second, CLAIMS, { kid: 'two' });
    await t.rejects(types.jwt.validate(method, rotated), { code: 'login-refused' });
    t.equal(server.seen.length, 1, 'not within the cooldown');
    surroundings.advance(30_000);
    const forged = await sign(second, CLAIMS, { kid: 'one' });
    await t.rejects(types.jwt.validate(method, forged), { code: 'login-refused' });
    t.equal(server.seen.length, 1, 'a known key that does not fit causes no request');
    await Promise.all([types.jwt.validate(method, rotated), types.jwt.validate(method, rotated)]);
    t.equal(server.seen.length, 2, 'one request for both');
    await t.rejects(
      types.jwt.validate(method, bearer),
      { code: 'login-refused' },
      'the old key is gone',
    );
    t.equal(server.seen.length, 2);
    server.reply = () => ({ status: 500, body: '' });
    surroundings.advance(30_000);
    await t.rejects(types.jwt.validate(method, bearer), {
      code: 'unavailable',
      message: 'error asking for the keys of the auth method: unexpected status 500',
    });
    await t.rejects(types.jwt.validate(method, bearer), { code: 'login-refused' });
    t.equal(server.seen.length, 3, 'a failed reload cools down too');
    surroundings.advance(600_000);
    await t.rejects(
      types.jwt.validate(method, rotated),
      { code: 'unavailable' },
      'old keys are not used',
    );
    t.notOk(surroundings.lines.join().includes(bearer.slice(-40)), 'no log line holds a bearer');
    server.reply = () => ({ body: { keys: [first.jwk] } });
    const late = await sign(first, { ...CLAIMS, exp: CLAIMS.exp + 3600 }, { kid: 'one' });
    await types.jwt.validate(method, late);
    server.reply = () => ({ body: { keys: [second.jwk] } });
    await types.jwt.validate(method, late);
    const written = { ...method, modifyIndex: method.modifyIndex + 1 };
    await t.rejects(
      types.jwt.validate(written, late),
      { code: 'login-refused' },
      'behind a write of the method nothing counts that was known before',
    );
  },
);

t.test('jwt: TLS to the key server is checked against the given CA', async (t) => {
  const server = await startLoopback(t, TLS);
  server.reply = () => ({ body: { keys: [] } });
  const { types } = createAuthMethods(testSurroundings());
  await t.rejects(types.jwt.checkConfig(authMethod('jwt', { JWKSURL: server.url })), {
    code: 'invalid',
    message:
      /^Invalid Auth Method: error checking JWKSURL: localhost:\d+: DEPTH_ZERO_SELF_SIGNED_CERT$/,
  });
  const otherName = server.url.replace('localhost', '127.0.0.1');
  await t.rejects(
    types.jwt.checkConfig(authMethod('jwt', { JWKSURL: otherName, JWKSCACert: TLS.cert })),
    {
      message: /ERR_TLS_CERT_ALTNAME_INVALID/,
    },
  );
  const many = TLS.cert.repeat(CERTIFICATES_MAX + 1);
  for (const [config, key] of [
    [{ JWKSURL: server.url, JWKSCACert: many }, 'JWKSCACert'],
    [{ OIDCDiscoveryURL: server.url, OIDCDiscoveryCACert: many }, 'OIDCDiscoveryCACert'],
  ] as const) {
    await t.rejects(types.jwt.checkConfig(authMethod('jwt', config)), {
      code: 'invalid',
      message: `Invalid Auth Method: error parsing ${key}: it may hold at most 256 certificates, and holds 257`,
    });
  }
  t.equal(server.seen.length, 0);
  const checkWith = (JWKSCACert: string) =>
    types.jwt.checkConfig(authMethod('jwt', { JWKSURL: server.url, JWKSCACert }));
  const [trusted, stranger] = [checkWith(TLS.cert), checkWith(selfSigned().cert)];
  await t.rejects(stranger, { code: 'invalid' }, 'nor by who is asked at the same moment');
  await trusted;
  server.reply = () => ({ status: 302, headers: { location: '/b' }, body: { keys: [] } });
  await t.rejects(checkWith(TLS.cert), { message: /: unexpected status 302$/ });
});

t.test('http client: no variable of the environment has it trust whoever answers', async (t) => {
  const server = await startLoopback(t, TLS);
  server.reply = () => ({ body: 'x' });
  trustWhoever(t);
  const asked = {
    method: 'GET',
    url: server.url,
    headers: {},
    timeoutMs: 5000,
    maxBytes: 100,
  } as const;
  for (const caPem of [undefined, selfSigned().cert]) {
    await t.rejects(new NodeHttpsClient().request({ ...asked, caPem }), { message: /CERT/ });
  }
});

t.test('http client: a Host header does not change whom TLS trusts', async (t) => {
  const server = await startLoopback(t, TLS);
  server.reply = ({ headers }) => ({ body: String(headers.host) });
  const { body } = await new NodeHttpsClient().request({
    method: 'POST',
    url: server.url,
    headers: { host: 'sts.amazonaws.com' },
    body: 'x',
    caPem: TLS.cert,
    timeoutMs: 2000,
    maxBytes: 100,
  });
  t.equal(Buffer.from(body).toString(), 'sts.amazonaws.com');
});

t.test(
  'http client: certificates to trust are read once, and count for who brings them alone',
  async (t) => {
    const server = await startLoopback(t, TLS);
    server.reply = () => ({ body: 'x' });
    const { createSecureContext } = tls;
    let readCount = 0;
    tls.createSecureContext = (options) => {
      readCount += 1;
      return createSecureContext(options);
    };
    syncBuiltinESMExports();
    t.teardown(() => {
      tls.createSecureContext = createSecureContext;
      syncBuiltinESMExports();
    });
    const http = new NodeHttpsClient();
    const ask = (caPem: string | undefined) =>
      http.request({
        method: 'GET',
        url: server.url,
        headers: {},
        caPem,
        timeoutMs: 5000,
        maxBytes: 100,
      });
    const stranger = selfSigned().cert;
    for (let round = 0; round < 2; round += 1) {
      await ask(TLS.cert);
      await t.rejects(ask(stranger), { message: /CERT/ });
    }
    t.equal(readCount, 2);
    await t.rejects(ask(undefined), { message: /CERT/ });
  },
);

t.test('jwt: discovery pins issuer and algorithms', async (t) => {
  const server = await startLoopback(t, TLS);
  const documents = discovery(server, [RSA.jwk, EC.jwk]);
  server.reply = ({ path }) => ({ body: documents(path) });
  const { types } = createAuthMethods(testSurroundings());
  const config = {
    OIDCDiscoveryURL: server.url,
    OIDCDiscoveryCACert: TLS.cert,
  };
  const method = authMethod('jwt', config);
  await types.jwt.checkConfig(method);
  t.equal(server.seen.splice(0).length, 2);
  const claims = { ...CLAIMS, iss: server.url };
  await types.jwt.validate(method, await sign(RSA, claims, { kid: 'rsa-1' }));
  await t.rejects(
    types.jwt.validate(method, await sign(EC, claims)),
    { code: 'login-refused' },
    'not offered',
  );
  const wider = authMethod('jwt', { ...config, JWTSupportedAlgs: ['ES256'] });
  await types.jwt.validate(wider, await sign(EC, claims));
  await t.rejects(
    types.jwt.validate(wider, await sign(RSA, claims)),
    { code: 'login-refused' },
    'not configured',
  );
  await t.rejects(types.jwt.validate(method, await sign(RSA)), {
    message: 'invalid issuer (iss) claim',
  });
  t.equal(server.seen.length, 2, 'both documents are cached');
  const silent = discovery(server, [RSA.jwk, EC.jwk], {
    id_token_signing_alg_values_supported: undefined,
  });
  server.reply = ({ path }) => ({ body: silent(path) });
  const rewritten = { ...method, modifyIndex: method.modifyIndex + 1 };
  await types.jwt.validate(rewritten, await sign(RSA, claims));
  await t.rejects(
    types.jwt.validate(rewritten, await sign(EC, claims)),
    { code: 'login-refused' },
    'of a provider that names none, RS256 alone',
  );
  for (const more of [
    { issuer: `${server.url}/` },
    { issuer: undefined },
    { jwks_uri: 17 },
    { authorization_endpoint: 'javascript:alert(1)' },
  ]) {
    const changed = discovery(server, [RSA.jwk], more);
    server.reply = ({ path }) => ({ body: changed(path) });
    await t.rejects(types.jwt.checkConfig(method), {
      message: /^Invalid Auth Method: error checking OIDCDiscoveryURL: /,
    });
  }
  const downgraded = discovery(server, [RSA.jwk], { jwks_uri: 'http://127.0.0.1:1/keys' });
  server.reply = ({ path }) => ({ body: downgraded(path) });
  await t.rejects(types.jwt.checkConfig(method), {
    message: /jwks_uri of the discovery document is not an https URL/,
  });
});

t.test('http client: does not follow, wait or read on for ever', async (t) => {
  const server = await startLoopback(t);
  const http = new NodeHttpsClient();
  const ask = (limits: object = {}) =>
    http.request({
      method: 'GET',
      url: `${server.url}/a`,
      headers: {},
      timeoutMs: 2000,
      maxBytes: 1000,
      ...limits,
    });
  const failureOf = (request: Promise<unknown>) =>
    request.then(
      () => 'none',
      (error: unknown) => (error instanceof HttpsFailure ? error.kind : 'another error'),
    );
  server.reply = () => ({ status: 302, headers: { location: '/b', 'X-Two': 'Zwei' }, body: 'hop' });
  const response = await ask();
  t.match(response, { status: 302, headers: { 'x-two': 'Zwei' } });
  t.equal(server.seen.length, 1);
  server.reply = () => ({ body: 'x'.repeat(1000) });
  t.equal((await ask()).body.length, 1000);
  server.reply = () => ({ body: 'x'.repeat(1001) });
  t.equal(await failureOf(ask()), 'too-large');
  server.reply = () => undefined;
  t.equal(await failureOf(ask({ timeoutMs: 50 })), 'timeout');
  t.equal(await failureOf(ask({ url: 'file:///etc/passwd' })), 'bad-request');
  t.equal(await failureOf(ask({ url: 'nonsense' })), 'bad-request');
  t.equal(await failureOf(ask({ url: 'http://127.0.0.1:1/' })), 'connection');
  const secret = 'line\r\nbreak-secret';
  const failed = await ask({ headers: { authorization: secret } }).catch((error: unknown) => error);
  t.ok(failed instanceof HttpsFailure);
  t.notMatch(String(failed), /break-secret/);
});

t.test('http client: an answer that is none ends the request, and so does its time', async (t) => {
  let says = '';
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('data', () => socket.end(says));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/`;
  const limits = { timeoutMs: 5_000, maxBytes: 1000 };
  const ask = () => new NodeHttpsClient().request({ method: 'GET', url, headers: {}, ...limits });
  for (const [answer, text] of [
    ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n', /protocol/],
    ['', /ECONNRESET/],
    ['HTTP/1.1 103 x\r\n\r\n', /ECONNRESET/],
    ['HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}', /ECONNRESET/],
  ] as const) {
    says = answer;
    await t.rejects(ask(), { name: 'HttpsFailure', kind: 'connection', message: text }, answer);
  }
});

t.test(
  'jwt: a load that never ends holds up those who wait for it, and nobody later',
  async (t) => {
    const surroundings = testSurroundings();
    let answer: HttpsClient['request'] = () => new Promise(() => undefined);
    const http: HttpsClient = { request: (request) => answer(request) };
    const { types } = createAuthMethods({ ...surroundings, http });
    const method = authMethod('jwt', {
      JWKSURL: 'https://keys.test/',
      BoundAudiences: ['conclave'],
    });
    const bearer = await sign(RSA, CLAIMS, { kid: 'rsa-1' });
    const waiting = Promise.allSettled([0, 1].map(() => types.jwt.validate(method, bearer)));
    await new Promise(setImmediate);
    surroundings.advance(LOAD_MAX_MS);
    t.match(
      await waiting,
      [0, 1].map(() => ({ reason: { code: 'unavailable', message: /no answer \(timeout\)$/ } })),
    );
    const body = Buffer.from(JSON.stringify({ keys: [RSA.jwk] }));
    answer = () => Promise.resolve({ status: 200, headers: {}, body });
    t.ok(await types.jwt.validate(method, bearer));
  },
);

t.test(
  'jwt: what providers answer is bounded before it is read, and in what is kept',
  async (t) => {
    let asked: string[] = [];
    let answer: unknown;
    const http: HttpsClient = {
      request: ({ url }) => {
        asked.push(url);
        const body = Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer));
        return Promise.resolve({ status: 200, headers: {}, body });
      },
    };
    const { types } = createAuthMethods({ ...testSurroundings(), http });
    const method = (name: string) =>
      authMethod('jwt', { JWKSURL: `https://${name}/`, BoundAudiences: ['conclave'] });
    const many = Array.from({ length: 3_000 }, (_, place) => [`name-${place}`, place]);
    const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const keys = (count: number) => ({ keys: Array.from({ length: count }, () => RSA.jwk) });
    const forms: readonly (readonly [unknown, string])[] = [
      [
        { keys: [], ...Object.fromEntries(many) },
        'the answer has more than 1000 different names of fields',
      ],
      [`{"keys":[],"more":${nested}}`, 'the answer has more than 64 levels'],
      [keys(257), 'the JSON Web Key Set is too large'],
      [{ keys: 'none' }, 'the answer is not a JSON Web Key Set'],
    ];
    for (const [document, says] of forms) {
      answer = document;
      await t.rejects(types.jwt.checkConfig(method('keys.test')), {
        code: 'invalid',
        message: `Invalid Auth Method: error checking JWKSURL: ${says}`,
      });
    }
    answer = keys(256);
    await types.jwt.checkConfig(method('keys.test'));
    const bearer = await sign(RSA, CLAIMS, { kid: 'rsa-1' });
    const long = { kty: 'RSA', e: 'AQAB', kid: 'long', n: 'A'.repeat(1_000_000) };
    answer = { keys: [RSA.jwk, long] };
    const methods = Array.from({ length: 10 }, (_, place) => method(`keys-${place}.test`));
    for (const each of methods) await types.jwt.validate(each, bearer);
    asked = [];
    await types.jwt.validate(methods[9]!, bearer);
    t.same(asked, [], 'the last one is kept');
    await types.jwt.validate(methods[0]!, bearer);
    t.same(asked, ['https://keys-0.test/'], 'the first one has made room');
  },
);

t.test('jwt: only so many wait for one load', async (t) => {
  let answer: (response: HttpsResponse) => void = () => undefined;
  const http = { request: () => new Promise<HttpsResponse>((resolve) => (answer = resolve)) };
  const { types } = createAuthMethods({ ...testSurroundings(), http });
  const method = authMethod('jwt', { JWKSURL: 'https://keys.test/', BoundAudiences: ['conclave'] });
  const bearer = await sign(RSA, CLAIMS, { kid: 'rsa-1' });
  const logins = Array.from({ length: SHARERS_MAX }, () => types.jwt.validate(method, bearer));
  await new Promise(setImmediate);
  await t.rejects(types.jwt.validate(method, bearer), {
    code: 'unavailable',
    message: /1024 wait for the same answer already$/,
  });
  answer({ status: 200, headers: {}, body: Buffer.from(JSON.stringify({ keys: [RSA.jwk] })) });
  t.equal((await Promise.all(logins)).length, SHARERS_MAX);
});

t.test('cache: keeps each document once, so long and no longer, and so many', async (t) => {
  let nowMs = START_MS;
  const clock = Object.assign(new FakeClock(START_MS), { wallMs: () => nowMs });
  const cache = new RemoteCache<string>(clock);
  let loads = 0;
  const load =
    (text = 'x') =>
    () => {
      loads += 1;
      return Promise.resolve(text);
    };
  const asksAnew = async (key = 'a'): Promise<boolean> => {
    const before = loads;
    await cache.get(key, load());
    return loads > before;
  };
  const large = 'x'.repeat(1024 * 1024);
  for (let count = 0; count < 20; count += 1) await cache.load('a', load(large));
  t.notOk(await asksAnew(), 'what takes the place of another one does not count beside it');
  nowMs += 599_999;
  t.notOk(await asksAnew());
  nowMs += 1;
  t.ok(await asksAnew(), 'ten minutes are over');
  nowMs -= 3_600_000;
  t.ok(await asksAnew(), 'a clock that was set back makes nothing young for ever');
  for (let count = 1; count < 128; count += 1) await asksAnew(`key ${count}`);
  t.notOk(await asksAnew());
  await asksAnew('one more');
  t.ok(await asksAnew(), 'the oldest one is dropped');

  const away = () => Promise.reject(new RemoteFailure('away'));
  await t.rejects(cache.reload('b', away));
  await t.rejects(
    cache.reload('b', away),
    { message: 'away' },
    'where there is nothing to wait for',
  );
  await cache.get('b', load());
  nowMs += 29_999;
  t.equal(await cache.reload('b', load()), undefined);
  nowMs += 1;
  t.equal(await cache.reload('b', load('anew')), 'anew');
});

t.test('remote: an answer is an object in whole text, and a URL names nobody', (t) => {
  t.same(jsonObjectOf(Buffer.from('{"a":1}')), { a: 1 });
  const table: readonly (readonly [string | number[], string])[] = [
    ['null', 'the answer is not a JSON object'],
    ['[]', 'the answer is not a JSON object'],
    ['"a"', 'the answer is not a JSON object'],
    ['{', 'the answer is not JSON'],
    [[...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')], 'the answer is not JSON'],
  ];
  for (const [body, message] of table) {
    t.throws(() => jsonObjectOf(Buffer.from(body as string)), { message }, String(body));
  }
  for (const url of ['https://u@x.test/', 'https://:p@x.test/', 'https://u:p@x.test/']) {
    t.throws(() => parseHttpUrl(url), { message: 'a URL must not hold a user or a password' });
  }
  t.end();
});
