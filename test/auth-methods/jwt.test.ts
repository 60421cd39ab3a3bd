// The methods that trust signed tokens, `jwt` and `oidc`, against real signatures and real servers
// on the loopback; and the HTTP client that carries them.

import { createPrivateKey } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import tls from 'node:tls';
import {
  base64url,
  type CryptoKey,
  exportJWK,
  exportPKCS8,
  exportSPKI,
  generateKeyPair,
  importSPKI,
  type JWK,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from 'jose';
import t from 'tap';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import {
  attributesOf,
  checkAudience,
  checkTimes,
  LIST_ITEMS_MAX,
} from '../../src/auth-methods/claims.ts';
import {
  type HttpsClient,
  HttpsFailure,
  type HttpsResponse,
} from '../../src/auth-methods/https-client.ts';
import { LOAD_MAX_MS, SHARERS_MAX } from '../../src/auth-methods/remote-cache.ts';
import { compileSelector } from '../../src/auth-methods/selector.ts';
import {
  CERTIFICATES_MAX,
  keyFits,
  type PublicKey,
  SIGNATURE_ALGORITHMS,
} from '../../src/auth-methods/signing-keys.ts';
import { NodeHttpsClient } from '../../src/platform-node/https-client.ts';
import {
  authMethod,
  type Loopback,
  selfSigned,
  START_MS,
  startLoopback,
  testSurroundings,
} from './loopback.ts';

interface Key {
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly pem: string;
  readonly jwk: JWK;
}

async function makeKey(alg: string, kid?: string): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = {
    ...(await exportJWK(publicKey)),
    ...(kid === undefined ? {} : { kid, alg, use: 'sig' }),
  };
  return { alg, privateKey, pem: await exportSPKI(publicKey), jwk };
}

const RSA = await makeKey('RS256', 'rsa-1');
const EC = await makeKey('ES256', 'ec-1');
const P384 = await makeKey('ES384');
const TLS = selfSigned();
const NOW_S = START_MS / 1000;

const CLAIMS = {
  iss: 'https://issuer.test/',
  aud: ['conclave', 'other'],
  sub: 'r3qXcK2bix9eFECzsU3Sbmh0K16fatW6@clients',
  iat: NOW_S,
  exp: NOW_S + 300,
  first_name: 'jeff2',
  org: { primary: 'engineering' },
  'https://groups.test/groups': ['foo', 'bar'],
  admin: true,
  level: 7.9,
};
const MAPPINGS = {
  ClaimMappings: {
    first_name: 'name',
    '/org/primary': 'primary_org',
    admin: 'admin',
    level: 'level',
    missing: 'missing',
  },
  ListClaimMappings: {
    'https://groups.test/groups': 'groups',
    first_name: 'single',
    missing: 'missing',
  },
};

function sign(
  key: Key,
  claims: JWTPayload = CLAIMS,
  header: Record<string, unknown> = {},
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: key.alg, ...header }).sign(key.privateKey);
}

function staticMethod(pems: readonly string[], more: AuthMethod['config'] = {}): AuthMethod {
  return authMethod('jwt', {
    JWTValidationPubKeys: pems,
    BoundAudiences: ['conclave'],
    BoundIssuer: 'https://issuer.test/',
    ...MAPPINGS,
    ...more,
  });
}

const validate = (method: AuthMethod, bearer: string) =>
  createAuthMethods(testSurroundings()).types[method.type].validate(method, bearer);

t.test('jwt: maps the claims of a token that a configured key signed', async (t) => {
  for (const key of [RSA, EC, P384, await makeKey('PS512')]) {
    const identity = await validate(staticMethod([EC.pem, key.pem]), await sign(key));
    t.same(Object.fromEntries(identity.selectable.strings), {
      'value.name': 'jeff2',
      'value.primary_org': 'engineering',
      'value.admin': 'true',
      'value.level': '7',
    });
    t.same(Object.fromEntries(identity.selectable.lists), {
      'list.groups': ['foo', 'bar'],
      'list.single': ['jeff2'],
    });
    t.same(identity.interpolatable, identity.selectable.strings);
  }
  if (TLS === undefined) return;
  const fromCertificate = staticMethod([TLS.cert]);
  await createAuthMethods(testSurroundings()).types.jwt.checkConfig(fromCertificate);
});

t.test('jwt: no key is ever a secret, and no algorithm but the nine counts', async (t) => {
  const encode = (value: unknown) => base64url.encode(JSON.stringify(value));
  const now = encode(CLAIMS);
  const hmac = async (secret: Uint8Array, alg: string, kid?: string) =>
    new SignJWT(CLAIMS)
      .setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) })
      .sign(secret);
  const text = (value: string) => new TextEncoder().encode(value);
  const good = await sign(RSA);
  const [header = '', , signature = ''] = good.split('.');
  const other = await makeKey('RS256');
  const ed = await generateKeyPair('EdDSA', { extractable: true });
  const attacks: Readonly<Record<string, string>> = {
    none: `${encode({ alg: 'none' })}.${now}.`,
    'none with the signature of another': `${encode({ alg: 'none' })}.${now}.${signature}`,
    'None in capitals': `${encode({ alg: 'None' })}.${now}.`,
    'no alg': `${encode({})}.${now}.${signature}`,
    'HS256 over the PEM': await hmac(text(RSA.pem), 'HS256'),
    'HS256 over the trimmed PEM': await hmac(text(RSA.pem.trim()), 'HS256'),
    'HS512 over the PEM': await hmac(text(RSA.pem), 'HS512'),
    'HS256 over the modulus': await hmac(base64url.decode(RSA.jwk.n ?? ''), 'HS256'),
    'HS256 over the JWK': await hmac(text(JSON.stringify(RSA.jwk)), 'HS256', 'rsa-1'),
    'HS256 over nothing': await hmac(new Uint8Array(32), 'HS256'),
    'another key': await sign(other),
    'another key that brings itself along': await sign(other, CLAIMS, { jwk: other.jwk }),
    EdDSA: await new SignJWT(CLAIMS).setProtectedHeader({ alg: 'EdDSA' }).sign(ed.privateKey),
    'changed claims': `${header}.${encode({ ...CLAIMS, first_name: 'root' })}.${signature}`,
    'changed algorithm': `${encode({ alg: 'PS256' })}.${now}.${signature}`,
    'cut signature': good.slice(0, -8),
    'no signature': `${header}.${now}.`,
    'critical extension': await sign(RSA, CLAIMS, { crit: ['b64'], b64: true }),
    'two parts': `${header}.${now}`,
    'five parts': `${good}.a.b`,
    words: 'not a token at all',
    empty: '',
    'too long': `${good}${'A'.repeat(70_000)}`,
  };
  const method = staticMethod([RSA.pem, EC.pem, P384.pem]);
  await validate(method, good);
  for (const [name, bearer] of Object.entries(attacks)) {
    const error = await validate(method, bearer).then(
      () => undefined,
      (error: unknown) => error,
    );
    t.match(error, { name: 'AclError', code: 'login-refused' }, name);
    const shown = String((error as Error | undefined)?.message);
    t.notOk(shown.includes(signature), `${name}: the text holds no signature`);
    t.ok(shown.length < 120, `${name}: the text is short`);
  }
});

t.test('jwt: a symmetric key in a key set is no key', async (t) => {
  const server = await startLoopback(t);
  const secret = new Uint8Array(32).fill(7);
  const oct = { kty: 'oct', k: base64url.encode(secret), kid: 'shared', alg: 'HS256' };
  server.reply = () => ({
    body: {
      keys: [
        oct,
        17,
        null,
        { kty: 'RSA' },
        { ...RSA.jwk, use: 'enc' },
        { ...EC.jwk, key_ops: ['sign'] },
      ],
    },
  });
  const method = authMethod('jwt', { JWKSURL: server.url, BoundAudiences: ['conclave'] });
  const forged = await new SignJWT(CLAIMS)
    .setProtectedHeader({ alg: 'HS256', kid: 'shared' })
    .sign(secret);
  for (const bearer of [forged, await sign(RSA), await sign(EC)]) {
    await t.rejects(validate(method, bearer), { code: 'login-refused' });
  }
});

t.test('jwt: what a provider names without a value counts as not named', async (t) => {
  const server = await startLoopback(t);
  const signIn = async (key: Record<string, unknown>, header: Record<string, unknown>) => {
    server.reply = () => ({ body: { keys: [{ ...RSA.jwk, ...key }] } });
    const method = authMethod('jwt', { JWKSURL: server.url, BoundAudiences: ['conclave'] });
    await validate(method, await sign(RSA, CLAIMS, header));
  };
  for (const empty of ['', null]) {
    for (const member of ['use', 'alg']) {
      await t.resolves(signIn({ [member]: empty }, { kid: 'rsa-1' }), `${member} ${empty}`);
    }
    await t.resolves(signIn({ kid: empty }, { kid: 'other' }), `kid of the key ${empty}`);
  }
  await t.resolves(signIn({}, { kid: '' }), 'kid of the token');
  for (const [key, header] of [
    [{ use: 'enc' }, {}],
    [{ use: ['sig'] }, {}],
    [{ alg: 'ES256' }, {}],
    [{}, { kid: ' ' }],
  ] as const) {
    await t.rejects(signIn(key, header), { code: 'login-refused' }, JSON.stringify([key, header]));
  }
});

t.test('jwt: a key verifies only the algorithms of its family, or its one', (t) => {
  const rsa = { kty: 'RSA', n: 'n', e: 'AQAB' } as const;
  const ec = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' } as const;
  const free = { keyId: undefined, algorithm: undefined };
  const fitting = (key: PublicKey) => SIGNATURE_ALGORITHMS.filter((name) => keyFits(key, name));
  t.same(fitting({ ...free, jwk: ec }), ['ES256']);
  t.same(fitting({ ...free, jwk: { ...ec, crv: 'secp256k1' } }), []);
  t.same(fitting({ ...free, algorithm: 'RS256', jwk: ec }), []);
  t.same(fitting({ ...free, algorithm: 'HS256', jwk: rsa }), []);
  t.same(fitting({ ...free, algorithm: 'PS384', jwk: rsa }), ['PS384']);
  t.same(fitting({ ...free, jwk: rsa }), ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']);
  t.end();
});

t.test('jwt: judges times with the leeways by the table', (t) => {
  const none = { expirationNs: 0, notBeforeNs: 0, clockSkewNs: 0 };
  const strict = { expirationNs: -1, notBeforeNs: -1, clockSkewNs: -1 };
  const table: readonly (readonly [
    string,
    Record<string, unknown>,
    typeof none,
    string | undefined,
  ])[] = [
    ['nothing', {}, none, 'no issue time, notbefore, or expiration time encoded in token'],
    ['all good', { iat: -10, nbf: -10, exp: 10 }, none, undefined],
    ['expired within the skew', { exp: -60 }, none, undefined],
    ['expired beyond the skew', { exp: -61 }, none, 'token is expired (exp)'],
    ['expired without skew', { exp: -1 }, strict, 'token is expired (exp)'],
    ['expires now', { exp: 0 }, strict, undefined],
    ['early within the skew', { nbf: 60, exp: 90 }, none, undefined],
    ['early beyond the skew', { nbf: 61, exp: 90 }, none, 'token not valid yet (nbf)'],
    ['early without skew', { nbf: 1, exp: 90 }, strict, 'token not valid yet (nbf)'],
    [
      'issued in the future',
      { iat: 61, nbf: 0, exp: 90 },
      none,
      'token issued in the future (iat)',
    ],
    ['no exp: iat + 150 s, and the skew', { iat: -210 }, none, undefined],
    ['no exp: past that', { iat: -211 }, none, 'token is expired (exp)'],
    ['no exp: the later of iat and nbf', { iat: -500, nbf: -210 }, none, undefined],
    [
      'no exp, leeway 10 s',
      { iat: -11 },
      { ...strict, expirationNs: 1e10 },
      'token is expired (exp)',
    ],
    ['no exp, leeway 10 s, within', { iat: -10 }, { ...strict, expirationNs: 1e10 }, undefined],
    ['no exp, no leeway', { iat: -1 }, strict, 'token is expired (exp)'],
    ['only exp: nbf is 150 s before', { exp: 210 }, none, undefined],
    ['only exp: too far ahead', { exp: 211 }, none, 'token not valid yet (nbf)'],
    [
      'only exp, leeway 10 s',
      { exp: 11 },
      { ...strict, notBeforeNs: 1e10 },
      'token not valid yet (nbf)',
    ],
    ['iat stands for nbf', { iat: -1, exp: 9_999 }, strict, undefined],
  ];
  for (const [name, offsets, leeways, message] of table) {
    const claims = Object.fromEntries(
      Object.entries(offsets).map(([claim, offset]) => [claim, NOW_S + Number(offset)]),
    );
    const judge = () => checkTimes(claims, leeways, START_MS);
    if (message === undefined) t.doesNotThrow(judge, name);
    else t.throws(judge, { code: 'login-refused', message }, name);
  }
  for (const claims of [
    { exp: '9999999999' },
    { exp: 0 },
    { iat: true, exp: NOW_S },
    { exp: {} },
  ]) {
    t.throws(
      () => checkTimes(claims, none, START_MS),
      { code: 'login-refused' },
      JSON.stringify(claims),
    );
  }
  t.end();
});

t.test('jwt: judges audience and issuer by the table', async (t) => {
  const unbound = 'audience claim found in JWT but no audiences are bound';
  const unmatched = 'aud claim does not match any bound audience';
  const table: readonly (readonly [unknown, readonly string[], boolean, string | undefined])[] = [
    [undefined, [], true, undefined],
    ['a', [], true, unbound],
    [['a'], [], true, unbound],
    [[], [], true, undefined],
    ['a', [], false, undefined],
    ['a', ['a'], true, undefined],
    [['x', 'a'], ['b', 'a'], true, undefined],
    [['x'], ['a', 'b'], false, unmatched],
    [undefined, ['a'], true, unmatched],
    ['ab', ['a'], true, unmatched],
    [17, ['17'], true, 'the aud claim is malformed'],
    [['a', 17], ['a'], true, 'the aud claim is malformed'],
  ];
  for (const [aud, bound, strict, message] of table) {
    const judge = () => checkAudience({ aud }, { bound, strict });
    const name = JSON.stringify([aud, bound, strict]);
    if (message === undefined) t.doesNotThrow(judge, name);
    else t.throws(judge, { code: 'login-refused', message }, name);
  }
  for (const iss of ['https://issuer.test', 'https://ISSUER.test/', 17, undefined]) {
    const bearer = await sign(RSA, { ...CLAIMS, iss } as JWTPayload);
    await t.rejects(validate(staticMethod([RSA.pem]), bearer), {
      message: 'invalid issuer (iss) claim',
    });
  }
  await validate(
    staticMethod([RSA.pem], { BoundIssuer: '' }),
    await sign(RSA, { ...CLAIMS, iss: 'x' }),
  );
  // With discovery it is not refused: see below.
  const server = await startLoopback(t);
  server.reply = () => ({ body: { keys: [RSA.jwk] } });
  for (const method of [
    staticMethod([RSA.pem], { BoundAudiences: [] }),
    authMethod('jwt', { JWKSURL: server.url }),
  ]) {
    const bearer = await sign(RSA, CLAIMS, { kid: 'rsa-1' });
    await t.rejects(validate(method, bearer), { code: 'login-refused', message: unbound });
  }
});

t.test('jwt: an audience that is bound by an empty text, 0 or false is bound', async (t) => {
  const server = await startLoopback(t);
  server.reply = () => ({ body: { issuer: server.url, jwks_uri: server.url, keys: [RSA.jwk] } });
  const { aud, ...withoutAudience } = CLAIMS;
  const bearers = [
    await sign(RSA, withoutAudience, { kid: 'rsa-1' }),
    await sign(RSA, { ...CLAIMS, iss: server.url, aud }, { kid: 'rsa-1' }),
    await sign(RSA, { ...withoutAudience, iss: server.url }, { kid: 'rsa-1' }),
  ];
  for (const BoundAudiences of ['', 0, false, ['']]) {
    const name = JSON.stringify(BoundAudiences);
    for (const [bearer, Config] of [
      [bearers[0], { JWTValidationPubKeys: [RSA.pem] }],
      [bearers[1], { OIDCDiscoveryURL: server.url }],
      [bearers[2], { OIDCDiscoveryURL: server.url }],
    ] as const) {
      const method = (more: AuthMethod['config']) => authMethod('jwt', { ...Config, ...more });
      await t.resolves(validate(method({}), bearer ?? ''), `${name}: unbound`);
      await t.rejects(
        validate(method({ BoundAudiences }), bearer ?? ''),
        { code: 'login-refused', message: 'aud claim does not match any bound audience' },
        name,
      );
    }
  }
  const zero = staticMethod([RSA.pem], { BoundAudiences: 0 });
  await t.resolves(validate(zero, await sign(RSA, { ...CLAIMS, aud: '0' })), 'its text is bound');
});

t.test('jwt: what every object has is no claim of a token', async (t) => {
  const more = { ClaimMappings: { constructor: 'made', toString: 'text', '/org/valueOf': 'own' } };
  const method = staticMethod([RSA.pem], { ...more, ListClaimMappings: {} });
  const { selectable } = await validate(method, await sign(RSA));
  t.same([...selectable.strings.keys()], []);
});

t.test('jwt: a claim that has no faithful text refuses the login', async (t) => {
  for (const first_name of [{ a: 1 }, ['x'], 2 ** 53 + 2]) {
    const bearer = await sign(RSA, { ...CLAIMS, first_name });
    const method = staticMethod([RSA.pem], { ListClaimMappings: {} });
    await t.rejects(validate(method, bearer), {
      code: 'login-refused',
      message: 'error converting claim "first_name" to a string',
    });
  }
  const pointers = {
    '/org/list/1': 'item',
    '/org/a~1b': 'slash',
    '/__proto__/x': 'p',
    '/org/list/9': 'no',
  };
  const bearer = await sign(RSA, {
    ...CLAIMS,
    org: { list: ['a', 'b'], 'a/b': 'c' },
  } as JWTPayload);
  const method = staticMethod([RSA.pem], { ClaimMappings: pointers });
  const { interpolatable } = await validate(method, bearer);
  t.same(Object.fromEntries(interpolatable), { 'value.item': 'b', 'value.slash': 'c' });
});

t.test(
  'jwt, oidc: keys without a value are as good as absent, all that clients name',
  async (t) => {
    const empty = {
      ...{ JWTSupportedAlgs: null, BoundAudiences: null, ClaimMappings: null },
      ...{ ListClaimMappings: null, OIDCDiscoveryURL: '', OIDCDiscoveryCACert: '' },
      ...{ OIDCClientID: '', OIDCClientSecret: '', OIDCClientAssertion: null },
      ...{ OIDCClientUsePKCE: null, OIDCScopes: null, OIDCACRValues: null },
      ...{ AllowedRedirectURIs: null, VerboseOIDCLogging: false },
      ...{ OIDCPostLogoutRedirectURIs: null, OIDCLogoutURL: '' },
      ...{ JWKSURL: '', JWKSCACert: '', JWTValidationPubKeys: null, BoundIssuer: '' },
      ...{ ExpirationLeeway: 0, NotBeforeLeeway: 0, ClockSkewLeeway: 0 },
    };
    const { types } = createAuthMethods(testSurroundings());
    const jwt = authMethod('jwt', { ...empty, JWTValidationPubKeys: [RSA.pem] });
    await t.resolves(types.jwt.checkConfig(jwt));
    const oidc = authMethod('oidc', { ...empty, ...OIDC, OIDCDiscoveryURL: 'http://127.0.0.1:1' });
    t.doesNotThrow(() => types.oidc.attributeNames(oidc));
  },
);

t.test('jwt: whoever is in no group by an empty text is in none', (t) => {
  const mapping = {
    strings: new Map([['groups', 'text']]),
    lists: new Map([['groups', 'groups']]),
  };
  const one = attributesOf({ groups: '' }, mapping);
  t.same([...one.lists], [['list.groups', []]]);
  t.same([...one.strings], [['value.text', '']], 'a text may be empty');
  const fields = { strings: [], stringMaps: ['value'], listMaps: ['list'] };
  t.notOk(compileSelector('list.groups is not empty', fields).matches(one));
  const lists = new Map([['groups', 'groups']]);
  const some = attributesOf({ groups: ['', 'a', ''] }, { strings: new Map(), lists });
  t.same(some.lists.get('list.groups'), ['a']);
  t.end();
});

t.test('jwt: a list that is mapped very often is not held as often', (t) => {
  const groups = Array.from({ length: 10_000 }, () => 'g');
  // Pointers may name one claim in many ways.
  const claims = { '~~~~~~~': groups };
  const ways = Array.from({ length: LIST_ITEMS_MAX / groups.length + 1 }, (_, way) => {
    const tildes = Array.from({ length: 7 }, (_, place) => ((way >> place) & 1 ? '~0' : '~'));
    return [`/${tildes.join('')}`, `g${way}`] as const;
  });
  const mapping = (lists: typeof ways) => ({ strings: new Map(), lists: new Map(lists) });
  t.equal(attributesOf(claims, mapping(ways.slice(1))).lists.size, 100);
  t.throws(() => attributesOf(claims, mapping(ways)), {
    code: 'login-refused',
    message: 'the mapped lists have more than 1000000 items',
  });
  t.end();
});

t.test('jwt: refuses a config with the prescribed words', async (t) => {
  const base = { JWTValidationPubKeys: [RSA.pem] };
  const exactlyOne = `exactly one of 'JWTValidationPubKeys', 'JWKSURL', or 'OIDCDiscoveryURL' must be set for type "jwt"`;
  const table: readonly (readonly [AuthMethod['config'], string | RegExp])[] = [
    [{}, exactlyOne],
    [{ ...base, JWKSURL: 'https://x.test' }, exactlyOne],
    [{ JWTValidationPubKeys: [], JWKSURL: '' }, exactlyOne],
    [{ ...base, Bogus: 1 }, 'error decoding config: invalid key "Bogus"'],
    [
      { ...base, jwtvalidationpubkeys: [] },
      'error decoding config: key "JWTValidationPubKeys" is given twice',
    ],
    [{ ...base, BoundIssuer: ['a'] }, 'error decoding config: "BoundIssuer" must be a string'],
    [{ ...base, ClaimMappings: 'x' }, 'error decoding config: "ClaimMappings" must be a map'],
    [{ ...base, ClaimMappings: '' }, 'error decoding config: "ClaimMappings" must be a map'],
    [{ ...base, ListClaimMappings: 0 }, 'error decoding config: "ListClaimMappings" must be a map'],
    [
      { ...base, ExpirationLeeway: '5m' },
      'error decoding config: "ExpirationLeeway" must be an integer',
    ],
    [
      { ...base, ExpirationLeeway: '' },
      'error decoding config: "ExpirationLeeway" must be an integer',
    ],
    [
      { ...base, ExpirationLeeway: 1.5 },
      'error decoding config: "ExpirationLeeway" must be an integer',
    ],
    [{ ...base, JWKSCACert: 'x' }, `'JWKSCACert' should not be set unless 'JWKSURL' is set`],
    [
      { ...base, OIDCDiscoveryCACert: 'x' },
      `'OIDCDiscoveryCACert' should not be set unless 'OIDCDiscoveryURL' is set`,
    ],
    [{ ...base, JWTSupportedAlgs: ['RS256', 'HS256'] }, 'Invalid supported algorithm: HS256'],
    [{ ...base, JWTSupportedAlgs: ['none'] }, 'Invalid supported algorithm: none'],
    [{ ...base, JWTSupportedAlgs: '' }, 'Invalid supported algorithm: '],
    [
      { ...base, ClaimMappings: { a: 'x', b: 'x' } },
      'ClaimMappings contains multiple mappings for key "x"',
    ],
    [
      { ...base, ListClaimMappings: { a: 'x', b: 'x' } },
      'ListClaimMappings contains multiple mappings for key "x"',
    ],
    [{ ...base, OIDCClientID: 'a' }, `'OIDCClientID' must not be set for type "jwt"`],
    [{ ...base, VerboseOIDCLogging: true }, `'VerboseOIDCLogging' must not be set for type "jwt"`],
    [
      { ...base, OIDCLogoutURL: 'https://x.test' },
      `'OIDCLogoutURL' must not be set for type "jwt"`,
    ],
    [
      { JWTValidationPubKeys: [RSA.pem, 'nonsense'] },
      /^error parsing public key JWTValidationPubKeys\[1\]: expected a PEM/,
    ],
    [
      { JWTValidationPubKeys: RSA.pem.replace(/\n[^-]{30}/, '\n') },
      /^error parsing public key JWTValidationPubKeys\[0\]: /,
    ],
    [
      { JWTValidationPubKeys: await exportPKCS8(RSA.privateKey) },
      /^error parsing public key JWTValidationPubKeys\[0\]: expected a PEM/,
    ],
    [
      { JWTValidationPubKeys: Array.from({ length: 257 }, () => RSA.pem) },
      'JWTValidationPubKeys may hold at most 256 keys, and holds 257',
    ],
    [
      { JWTValidationPubKeys: await weakPem() },
      /^error parsing public key JWTValidationPubKeys\[0\]: an RSA key must have/,
    ],
    [{ JWKSURL: 'https://x.test', JWKSCACert: 'x' }, /^error parsing JWKSCACert: /],
    [{ JWKSURL: 'ftp://x.test' }, 'error checking JWKSURL: the scheme must be https or http'],
    [
      { JWKSURL: 'https://u:p@x.test' },
      'error checking JWKSURL: a URL must not hold a user or a password',
    ],
    [{ JWKSURL: 'nowhere' }, 'error checking JWKSURL: not an absolute URL'],
    [{ JWKSURL: 'http://127.0.0.1:1/' }, /^error checking JWKSURL: 127\.0\.0\.1:1: ECONNREFUSED/],
    [
      { OIDCDiscoveryURL: 'http://127.0.0.1:1/' },
      /^error checking OIDCDiscoveryURL: 127\.0\.0\.1:1: ECONNREFUSED/,
    ],
  ];
  const { types } = createAuthMethods(testSurroundings());
  for (const [config, text] of table) {
    const message =
      typeof text === 'string'
        ? `Invalid Auth Method: ${text}`
        : new RegExp(text.source.replace('^', '^Invalid Auth Method: '));
    await t.rejects(
      types.jwt.checkConfig(authMethod('jwt', config)),
      { code: 'invalid', message },
      String(text),
    );
  }
  const weak = {
    jwtVALIDATIONpubkeys: RSA.pem,
    boundaudiences: 'one',
    clockskewLEEWAY: '-5',
    claimmappings: [{ a: 'x' }, { b: 7 }],
    NotBeforeLeeway: null,
  };
  await types.jwt.checkConfig(authMethod('jwt', weak));
  t.same(types.jwt.attributeNames(authMethod('jwt', weak)).interpolatable, ['value.x', 'value.7']);
  await t.rejects(
    types.jwt.checkConfig({
      ...authMethod('jwt', base),
      namespaceRules: [{ selector: 'x', bindNamespace: 'a' }],
    }),
    { message: /^Invalid Auth Method: NamespaceRules\[0\]\.Selector is invalid: / },
  );
});

/** Of 8192 bits, which none but its length is looked at of. */
function longPrivateKey(): string {
  const number = (bytes: number) => Buffer.alloc(bytes, 0xff).toString('base64url');
  const parts = ['p', 'q', 'dp', 'dq', 'qi'].map((part) => [part, number(512)] as const);
  const numbers = { n: number(1024), e: 'AQAB', d: number(1024), ...Object.fromEntries(parts) };
  const key = createPrivateKey({ format: 'jwk', key: { kty: 'RSA', ...numbers } });
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

async function weakPem(): Promise<string> {
  const algorithm = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 1024,
    publicExponent: new Uint8Array([1, 0, 1]),
  };
  const { publicKey } = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  return exportSPKI(publicKey);
}

t.test(
  'jwt: keys of a JWKS URL are cached, and asked for again once when one is unknown',
  async (t) => {
    const server = await startLoopback(t, TLS);
    const surroundings = testSurroundings();
    const { types } = createAuthMethods(surroundings);
    const method = authMethod('jwt', {
      JWKSURL: `${server.url}/keys`,
      ...(TLS === undefined ? {} : { JWKSCACert: TLS.cert }),
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
    if (TLS === undefined) t.comment('no openssl: over plain http');
  },
);

t.test(
  'jwt: TLS to the key server is checked against the given CA',
  { skip: TLS === undefined && 'no openssl' },
  async (t) => {
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
      types.jwt.checkConfig(authMethod('jwt', { JWKSURL: otherName, JWKSCACert: TLS?.cert ?? '' })),
      {
        message: /ERR_TLS_CERT_ALTNAME_INVALID/,
      },
    );
    const many = (TLS?.cert ?? '').repeat(CERTIFICATES_MAX + 1);
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
  },
);

t.test(
  'http client: a Host header does not change whom TLS trusts',
  { skip: TLS === undefined && 'no openssl' },
  async (t) => {
    const server = await startLoopback(t, TLS);
    server.reply = ({ headers }) => ({ body: String(headers.host) });
    const { body } = await new NodeHttpsClient().request({
      method: 'POST',
      url: server.url,
      headers: { host: 'sts.amazonaws.com' },
      body: 'x',
      caPem: TLS?.cert,
      timeoutMs: 2000,
      maxBytes: 100,
    });
    t.equal(Buffer.from(body).toString(), 'sts.amazonaws.com');
  },
);

t.test(
  'http client: certificates to trust are read once, and count for who brings them alone',
  { skip: TLS === undefined && 'no openssl' },
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
    const stranger = selfSigned()?.cert;
    for (let round = 0; round < 2; round += 1) {
      await ask(TLS?.cert);
      await t.rejects(ask(stranger), { message: /CERT/ });
    }
    t.equal(readCount, 2);
    await t.rejects(ask(undefined), { message: /CERT/ });
  },
);

function discovery(
  server: Loopback,
  keys: readonly JWK[],
  more: object = {},
): (path: string) => unknown {
  return (path) => {
    if (path === '/keys') return { keys };
    if (path !== '/.well-known/openid-configuration') return undefined;
    return {
      issuer: server.url,
      jwks_uri: `${server.url}/keys`,
      authorization_endpoint: `${server.url}/authorize?tenant=1`,
      token_endpoint: `${server.url}/token`,
      userinfo_endpoint: `${server.url}/userinfo`,
      id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
      ...more,
    };
  };
}

t.test('jwt: discovery pins issuer and algorithms', async (t) => {
  const server = await startLoopback(t, TLS);
  const documents = discovery(server, [RSA.jwk, EC.jwk]);
  server.reply = ({ path }) => ({ body: documents(path) });
  const { types } = createAuthMethods(testSurroundings());
  const config = {
    OIDCDiscoveryURL: server.url,
    ...(TLS === undefined ? {} : { OIDCDiscoveryCACert: TLS.cert }),
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
  if (TLS === undefined) return;
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
    t.match(await types.jwt.validate(method, bearer), { summary: /^subject / });
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

const OIDC = {
  OIDCClientID: 'conclave',
  OIDCClientSecret: 's3cret:/?',
  AllowedRedirectURIs: [
    'http://localhost:8550/oidc/callback',
    'https://ui.test/cb',
    'http://intranet.test/cb',
    'https://localhost:8443/cb',
  ],
};

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
