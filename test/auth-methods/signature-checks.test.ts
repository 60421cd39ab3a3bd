// What logins with signatures cost a server: few checks at once, and no key read twice.

import { exportJWK, exportPKCS8, exportSPKI, generateKeyPair, type JWK, SignJWT } from 'jose';
import t from 'tap';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import {
  CHECK_WAIT_MAX_MS,
  CHECKS_MAX,
  SignatureChecks,
} from '../../src/auth-methods/jwt/signature-checks.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { authMethod, START_MS, startLoopback, testSurroundings } from './loopback.ts';

const method = (name: string) => ({ ...authMethod('jwt', {}), name });

/** Checks that end when they are told to, by the names they were begun under. */
class Checks {
  readonly begun: string[] = [];
  readonly #ends: (() => void)[] = [];

  readonly begin = (name: string) => (): Promise<string> => {
    this.begun.push(name);
    return new Promise((resolve) => this.#ends.push(() => resolve(name)));
  };

  /** Ends the one that began first of those that have not ended. */
  async endOne(): Promise<void> {
    await this.settled();
    this.#ends.shift()?.();
    await this.settled();
  }

  async settled(): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  }
}

t.test('signature checks: few are under way, and auth methods have them in turn', async (t) => {
  const turns = new SignatureChecks(new FakeClock());
  const checks = new Checks();
  const run = (name: string) =>
    turns
      .of(method(name.charAt(0)))(checks.begin(name))
      .catch(() => 'failed');
  const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map(run);
  await checks.endOne();
  t.same(checks.begun, ['a1', 'a2', 'a3'], `${CHECKS_MAX} at once`);
  for (let check = 0; check < 5; check += 1) await checks.endOne();
  t.same(checks.begun.slice(3), ['b1', 'c1', 'a4', 'b2'], 'whoever sends many waits longest');
  await checks.endOne();
  t.same(await Promise.all(all), ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']);

  const inTurn = turns.of(method('d'));
  for (let check = 0; check < CHECKS_MAX + 1; check += 1) {
    await t.rejects(
      inTurn(() => Promise.reject(new Error('no'))),
      /no/,
      'its place is free again',
    );
  }
});

t.test('signature checks: who waits too long is told so, and holds up nobody', async (t) => {
  const clock = new FakeClock();
  const turns = new SignatureChecks(clock);
  const checks = new Checks();
  const first = ['a', 'b'].map((name) => turns.of(method('m'))(checks.begin(name)));
  const late = turns.of(method('m'));
  const waiting = late(checks.begin('late'));
  await checks.settled();
  clock.advance(CHECK_WAIT_MAX_MS + 1);
  const next = turns.of(method('m'))(checks.begin('next'));
  const refused = t.rejects(waiting, {
    code: 'unavailable',
    message: 'too many logins wait for the check of their signature, try again later',
  });
  await checks.endOne();
  await refused;
  t.same(checks.begun, ['a', 'b', 'next']);
  const again = t.rejects(late(checks.begin('later')), { code: 'unavailable' }, 'nor is it later');
  for (let check = 0; check < 2; check += 1) await checks.endOne();
  await again;
  t.same(checks.begun, ['a', 'b', 'next']);
  t.same(await Promise.all([...first, next]), ['a', 'b', 'next']);
});

/** How often the platform was asked to do each, and how many checks were under way at most. */
function countedCrypto(owner: { teardown(action: () => void): void }) {
  const { subtle } = globalThis.crypto;
  const { verify, sign, importKey } = subtle;
  const counts = { imported: 0, checked: 0, signed: 0, underWayMost: 0 };
  let underWay = 0;
  const during = async <T>(work: Promise<T>): Promise<T> => {
    underWay += 1;
    counts.underWayMost = Math.max(counts.underWayMost, underWay);
    return work.finally(() => {
      underWay -= 1;
    });
  };
  Object.assign(subtle, {
    importKey: (...given: Parameters<typeof importKey>) => {
      counts.imported += 1;
      return importKey.apply(subtle, given);
    },
    verify: (...given: Parameters<typeof verify>) => {
      counts.checked += 1;
      return during(verify.apply(subtle, given));
    },
    sign: (...given: Parameters<typeof sign>) => {
      counts.signed += 1;
      return during(sign.apply(subtle, given));
    },
  });
  owner.teardown(() => Object.assign(subtle, { verify, sign, importKey }));
  return counts;
}

t.test('logins: keys are read once, and few signatures are checked at once', async (t) => {
  const keys = await Promise.all(
    Array.from({ length: 4 }, () => generateKeyPair('ES256', { extractable: true })),
  );
  const [{ privateKey }] = keys as [(typeof keys)[0]];
  const nowS = START_MS / 1000;
  const bearer = await new SignJWT({ iat: nowS, iss: 'i' })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey);
  const pems = await Promise.all(keys.map(({ publicKey }) => exportSPKI(publicKey)));
  const jwks: JWK[] = await Promise.all(keys.map(({ publicKey }) => exportJWK(publicKey)));
  const provider = await startLoopback(t);
  provider.reply = ({ path }) =>
    path === '/jwks'
      ? { body: { keys: jwks.toReversed() } }
      : { body: { issuer: provider.url, jwks_uri: `${provider.url}/jwks` } };
  const configs = [
    { JWTValidationPubKeys: pems.toReversed() },
    { JWKSURL: `${provider.url}/jwks` },
  ];
  const counts = countedCrypto(t);
  for (const config of configs) {
    const { types } = createAuthMethods(testSurroundings());
    const login = () => types.jwt.validate(authMethod('jwt', config), bearer);
    await login();
    const { imported, checked } = counts;
    await Promise.all(Array.from({ length: 10 }, login));
    t.equal(counts.imported - imported, 0, `${Object.keys(config)}: no key is read anew`);
    t.equal(counts.checked - checked, 40);
    await t.rejects(types.jwt.validate(authMethod('jwt', config), `${bearer.slice(0, -9)}A`));
  }
  t.equal(counts.underWayMost, CHECKS_MAX);
  const { types } = createAuthMethods(testSurroundings());
  const { imported } = counts;
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.`;
  await t.rejects(types.jwt.validate(authMethod('jwt', configs[0] ?? {}), unsigned));
  t.equal(counts.imported, imported, 'nor is one for a token that no key could have signed');
});

t.test('logins by OpenID: few client assertions are signed at once', async (t) => {
  const provider = await startLoopback(t);
  const { url } = provider;
  provider.reply = ({ path }) => {
    if (path === '/jwks') return { body: { keys: [] } };
    if (path === '/token') return { status: 400, body: {} };
    const endpoints = {
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
    };
    return { body: { issuer: url, jwks_uri: `${url}/jwks`, ...endpoints } };
  };
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const config = {
    OIDCDiscoveryURL: url,
    OIDCClientID: 'conclave',
    OIDCClientAssertion: {
      Audience: ['a'],
      PrivateKey: { PemKey: await exportPKCS8(privateKey) },
    },
    AllowedRedirectURIs: ['http://localhost/back'],
  };
  const method = authMethod('oidc', config);
  const { types, oidcFlow } = createAuthMethods(testSurroundings());
  await types.oidc.checkConfig(method);
  const counts = countedCrypto(t);
  const redirectUri = 'http://localhost/back';
  const { pending } = await oidcFlow.authUrl({ method, redirectUri, clientNonce: '', meta: {} });
  const { state } = pending;
  const callback = () =>
    oidcFlow
      .callback({ method, pending, state, code: 'c', clientNonce: '' })
      .catch(() => 'refused');
  await Promise.all(Array.from({ length: 10 }, callback));
  t.match(counts, { signed: 10, underWayMost: CHECKS_MAX });
});
