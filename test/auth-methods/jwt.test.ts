// Signed tokens: which keys and algorithms count, times, audiences, claims, and configs that are refused.

import {
  base64url,
  CompactSign,
  exportPKCS8,
  exportSPKI,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
} from 'jose';
import t from 'tap';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import { compileSelector } from '../../src/auth-methods/binding/selector.ts';
import {
  attributesOf,
  checkAudience,
  checkTimes,
  LIST_ITEMS_MAX,
} from '../../src/auth-methods/jwt/claims.ts';
import {
  keyFits,
  type PublicKey,
  SIGNATURE_ALGORITHMS,
} from '../../src/auth-methods/jwt/signing-keys.ts';
import { CLAIMS, EC, makeKey, NOW_S, OIDC, RSA, sign, TLS, validate } from './identity-provider.ts';
import { authMethod, START_MS, startLoopback, testSurroundings } from './loopback.ts';

const P384 = await makeKey('ES384');

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

function staticMethod(pems: readonly string[], more: AuthMethod['config'] = {}): AuthMethod {
  return authMethod('jwt', {
    JWTValidationPubKeys: pems,
    BoundAudiences: ['conclave'],
    BoundIssuer: 'https://issuer.test/',
    ...MAPPINGS,
    ...more,
  });
}

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

t.test('jwt: judges times with the leeways by the table', async (t) => {
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
    const method = staticMethod([EC.pem], {
      BoundIssuer: '',
      BoundAudiences: [],
      ExpirationLeeway: leeways.expirationNs,
      NotBeforeLeeway: leeways.notBeforeNs,
      ClockSkewLeeway: leeways.clockSkewNs,
    });
    const login = validate(method, await sign(EC, claims));
    if (message === undefined) await t.resolves(login, name);
    else await t.rejects(login, { code: 'login-refused', message }, name);
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

t.test('jwt: what a key signed and is no object of claims refuses the login', async (t) => {
  const signed = (payload: Uint8Array) =>
    new CompactSign(payload).setProtectedHeader({ alg: RSA.alg }).sign(RSA.privateKey);
  const claims = JSON.stringify({ ...CLAIMS, first_name: 'jeff?' });
  const method = staticMethod([RSA.pem]);
  const taken = await validate(method, await signed(Buffer.from(claims)));
  t.equal(taken.selectable.strings.get('value.name'), 'jeff?');
  // Which is no text: two names must not end up as one.
  const broken = Buffer.from(claims.replace('?', '\xff'), 'latin1');
  const others = ['jeff', `[${claims}]`, 'null', ''].map((text) => Buffer.from(text));
  for (const payload of [broken, ...others]) {
    await t.rejects(validate(method, await signed(payload)), { code: 'login-refused' });
  }
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
    '/org/a~01b': 'tilde',
    '/__proto__/x': 'p',
    '/org/list/9': 'no',
  };
  const bearer = await sign(RSA, {
    ...CLAIMS,
    org: { list: ['a', 'b'], 'a/b': 'c', 'a~1b': 'd' },
  } as JWTPayload);
  const method = staticMethod([RSA.pem], { ClaimMappings: pointers });
  const { interpolatable } = await validate(method, bearer);
  const found = { 'value.item': 'b', 'value.slash': 'c', 'value.tilde': 'd' };
  t.same(Object.fromEntries(interpolatable), found);
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
