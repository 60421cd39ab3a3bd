// Secrets stay where they belong. A server that logs as much as it can is used in every way, rightly
// and wrongly; then each secret that it ever saw is searched for in its log, its refusals, its headers,
// its figures, and in what it shows to those who may only read.

import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportJWK, exportPKCS8, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import t from 'tap';
import { parseJsonSettings } from '../../src/cli/agent/settings-text.ts';
import { parseYamlSettings } from '../../src/cli/agent/yaml-settings.ts';
import { startLoopback } from '../auth-methods/loopback.ts';
import { selfSigned } from '../support/certificates.ts';
import { type Answer, type Asked, ask, MANAGEMENT, sendRaw } from './asking.ts';
import { startRefused, startServer, temporaryFolder } from './server-process.ts';

/** A text that must not be found where it does not belong, and what it is. */
type Secrets = Map<string, string>;

/** One answer, with what was asked. */
interface Seen extends Answer {
  readonly asked: Asked;
}

/** Asks, remembers the answers, and collects the secrets of those answers that are meant to show some. */
class Recorder {
  readonly secrets: Secrets = new Map();
  readonly seen: Seen[] = [];
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Marks a text as a secret; gives it back. */
  keep(says: string, text: string): string {
    this.secrets.set(text, says);
    return text;
  }

  async ask(asked: Asked): Promise<Record<string, unknown>> {
    const answer = await ask(this.#port, asked);
    this.seen.push({ ...answer, asked });
    if (answer.status !== 200) return {};
    for (const [, secret] of answer.text.matchAll(/"SecretID":"([^"]+)"/g)) {
      const isShown = secret !== 'anonymous' && secret?.startsWith('\\u003c') !== true;
      if (secret !== undefined && isShown) this.keep(`SecretID of ${asked.path}`, secret);
    }
    return answer.text.startsWith('{') ? (JSON.parse(answer.text) as Record<string, unknown>) : {};
  }

  put(path: string, body: unknown, more: Partial<Asked> = {}): Promise<Record<string, unknown>> {
    return this.ask({ method: 'PUT', path: `/v1/acl/${path}`, body, ...more });
  }

  post(path: string, body: unknown, more: Partial<Asked> = {}): Promise<Record<string, unknown>> {
    return this.ask({ method: 'POST', path: `/v1/acl/${path}`, body, secret: '', ...more });
  }
}

/** Where a secret stands in a text; at most one finding a secret. */
function findings(secrets: Secrets, text: string, where: string): readonly string[] {
  return [...secrets]
    .filter(([secret]) => text.includes(secret) || text.includes(encodeURIComponent(secret)))
    .map(([secret, says]) => {
      const at = Math.max(0, text.indexOf(secret));
      return `${where}: ${says}: ${text.slice(Math.max(0, at - 80), at + 100)}`;
    });
}

const CERTIFICATE = selfSigned().cert;
const RSA = await generateKeyPair('RS256', { extractable: true });
const CLIENT_KEY = await exportPKCS8(
  (await generateKeyPair('RS256', { extractable: true })).privateKey,
);

function signed(claims: Record<string, unknown>): Promise<string> {
  return new SignJWT({ name: 'jane', ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(RSA.privateKey);
}

t.test(
  'secrets: none is found in log, refusals, headers, figures or the view of a reader',
  async (t) => {
    const provider = await startLoopback(t);
    const jwk = { ...(await exportJWK(RSA.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
    let idToken = '';
    const accessToken = `access-${randomUUID()}`;
    provider.reply = ({ path }) => {
      if (path === '/keys') return { body: { keys: [jwk] } };
      if (path === '/token') {
        return { body: { id_token: idToken, access_token: accessToken, token_type: 'Bearer' } };
      }
      if (path === '/.well-known/openid-configuration') {
        return {
          body: {
            issuer: provider.url,
            jwks_uri: `${provider.url}/keys`,
            authorization_endpoint: `${provider.url}/authorize`,
            token_endpoint: `${provider.url}/token`,
          },
        };
      }
      return { status: 401, body: 'no' };
    };
    const defaultToken = randomUUID();
    const clusterKey = randomBytes(32).toString('base64');
    const auditLog = join(temporaryFolder(t), 'audit.log');
    const server = await startServer(t, {
      dataFolder: join(temporaryFolder(t), 'data'),
      flags: {
        'log-level': 'debug',
        'acl-tokens-default': defaultToken,
        'audit-file': auditLog,
        'audit-required': 'true',
      },
      environment: { CONCLAVE_CLUSTER_KEY: clusterKey },
    });
    const recorder = new Recorder(server.port);
    const { ask: send } = { ask: recorder.ask.bind(recorder) };
    recorder.keep('initial management', MANAGEMENT);
    recorder.keep('default token', defaultToken);
    recorder.keep('cluster key', clusterKey);
    recorder.keep('access token', accessToken);

    // Tokens, in all ways in which one comes to be.
    const rules = 'acl = "read" operator = "read" agent_prefix "" { policy = "read" }';
    await recorder.put('policy', { Name: 'reader', Rules: rules });
    const chosen = recorder.keep('chosen secret', randomUUID());
    const reader = await recorder.put('token', {
      SecretID: chosen,
      Policies: [{ Name: 'reader' }],
    });
    await recorder.put('token', { SecretID: chosen });
    await recorder.put('token', { SecretID: defaultToken, Policies: [{ Name: 'reader' }] });
    const made = await recorder.put('token', { Description: 'x' });
    await recorder.put(`token/${made.AccessorID}/clone`, {});
    await recorder.put(`token/${made.AccessorID}`, { Description: 'y', SecretID: made.SecretID });
    await recorder.put(`token/${made.AccessorID}`, {
      SecretID: recorder.keep('wrong secret in a body', randomUUID()),
    });
    const requestId = { headers: { 'X-Service-Request-Id': 'once' } };
    for (const Description of ['a', 'a', 'b'])
      await recorder.put('token', { Description }, requestId);
    await recorder.put('bootstrap', { BootstrapSecret: recorder.keep('bootstrap', randomUUID()) });
    await recorder.put('bootstrap', {
      BootstrapSecret: recorder.keep('bad bootstrap', 'hunter2-hunter2'),
    });
    await recorder.put('token', { SecretID: recorder.keep('bad secret', 'hunter3-hunter3') });
    await recorder.put('token', `{"SecretID":"${recorder.keep('cut body', 'hunter4-hunter4')}`);
    await recorder.put(
      'token',
      `{"SecretID":["${recorder.keep('wrong type', 'hunter5-hunter5')}"]}`,
    );
    await recorder.put(
      'token',
      `{"SecretID":"${recorder.keep('bad escape', 'hunter6-hunter6')}\\x"}`,
    );

    // Secrets at the wrong place, of the wrong kind, without a meaning.
    const wrong = recorder.keep('unknown token', randomUUID());
    for (const path of [
      '/v1/acl/tokens',
      '/v1/acl/policy/name/reader',
      '/v1/agent/self',
      '/v1/acl/token/self',
    ]) {
      await send({ path, secret: wrong });
      await send({ path, secret: '', headers: { Authorization: `Bearer ${wrong}` } });
      for (const token of [wrong, MANAGEMENT, chosen]) {
        await send({ path: `${path}?token=${token}`, secret: '' });
        await send({
          path: path.replace('/v1', '//v1').concat(`?token=${token}&pretty`),
          secret: '',
        });
        await send({ path: path.replace('/v1', '/v2').concat(`?token=${token}`), secret: '' });
        await send({ path: `${path}?token=${token}&index=x`, secret: '' });
        await send({ method: 'PATCH', path: `${path}?token=${token}`, secret: '' });
        await send({ path: `${path}?token=${token}&%zz`, secret: '' });
        await send({
          path,
          secret: '',
          headers: { Authorization: `Basic ${token}`, 'X-Consul-Token': token },
        });
      }
    }
    await recorder.post('logout', '', { secret: MANAGEMENT });
    await recorder.post('logout', '', { secret: wrong });

    // Logins, let in and refused.
    const publicKey = await exportSPKI(RSA.publicKey);
    const Config = { JWTValidationPubKeys: [publicKey], ClaimMappings: { name: 'name' } };
    await recorder.put('auth-method', { Name: 'jwt', Type: 'jwt', Config, MaxTokenTTL: '5m' });
    await recorder.put('binding-rule', { AuthMethod: 'jwt', BindType: 'service', BindName: 'web' });
    const bearer = recorder.keep('bearer', await signed({}));
    const login = await recorder.post('login', { AuthMethod: 'jwt', BearerToken: bearer });
    t.type(login.SecretID, 'string', 'the login is let in');
    const asReader = { secret: MANAGEMENT };
    const input = { AuthMethod: 'jwt', BearerToken: bearer };
    const told = await recorder.post('login/explain', input, asReader);
    t.equal(told.Granted, true, 'and explained');
    const badBearers = [
      recorder.keep('expired bearer', await signed({ nbf: 9_999_999_999 })),
      recorder.keep('forged bearer', `${bearer.slice(0, -8)}AAAAAAAA`),
      recorder.keep('no JWT', 'hunter7-hunter7'),
      recorder.keep('bearer without signature', bearer.split('.').slice(0, 2).join('.')),
    ];
    for (const BearerToken of badBearers) {
      for (const AuthMethod of ['jwt', 'oidc', 'k8s', 'none']) {
        await recorder.post('login', { AuthMethod, BearerToken });
        await recorder.post('login/explain', { AuthMethod, BearerToken }, asReader);
      }
    }
    await recorder.post('logout', '', { secret: String(login.SecretID) });
    const serviceAccount = recorder.keep('service account', await signed({ sub: 'reviewer' }));
    const kubernetes = (jwt: string) => ({
      Name: 'k8s',
      Type: 'kubernetes',
      Config: { Host: provider.url, CACert: CERTIFICATE, ServiceAccountJWT: jwt },
    });
    await recorder.put('auth-method', kubernetes(recorder.keep('bad account', 'hunter8.hunter8')));
    const { Type } = await recorder.put('auth-method', kubernetes(serviceAccount));
    t.equal(Type, 'kubernetes', 'the method is made');
    const review = recorder.keep(
      'reviewed bearer',
      await signed({ sub: 'system:serviceaccount:a:b' }),
    );
    await recorder.post('login', { AuthMethod: 'k8s', BearerToken: review });
    const clientSecret = recorder.keep('client secret', `client-${randomUUID()}`);
    const redirectUri = 'http://localhost:9/callback';
    const oidc = (client: object) => ({
      Name: 'oidc',
      Type: 'oidc',
      MaxTokenTTL: '5m',
      Config: {
        OIDCDiscoveryURL: provider.url,
        OIDCClientID: 'conclave',
        AllowedRedirectURIs: [redirectUri],
        ClaimMappings: { name: 'name' },
        VerboseOIDCLogging: true,
        ...client,
      },
    });
    const keyLine = CLIENT_KEY.split('\n')[3] ?? '';
    recorder.keep('client key', keyLine);
    const assertion = (PEMKey: string) => ({
      OIDCClientAssertion: { Audience: ['x'], PrivateKey: { PEMKey } },
    });
    await recorder.put('auth-method', oidc(assertion(CLIENT_KEY)));
    await recorder.put('auth-method', oidc(assertion(CLIENT_KEY.slice(0, -80))));
    await recorder.put('auth-method', oidc({ OIDCClientSecret: { a: clientSecret } }));
    await recorder.put(
      'auth-method',
      oidc({ OIDCClientSecret: clientSecret, NoSuchKey: clientSecret }),
    );
    await recorder.put('auth-method', oidc({ OIDCClientSecret: clientSecret }));
    await recorder.put('binding-rule', {
      AuthMethod: 'oidc',
      BindType: 'service',
      BindName: 'web',
    });
    const nonce = recorder.keep('client nonce', randomUUID());
    for (const turn of ['right', 'explained', 'wrong code', 'wrong nonce']) {
      const begun = await recorder.post('oidc/auth-url', {
        AuthMethod: 'oidc',
        RedirectURI: redirectUri,
        ClientNonce: nonce,
      });
      const url = new URL(String(begun.AuthURL));
      const State = recorder.keep('state', String(url.searchParams.get('state')));
      const providerNonce = turn === 'wrong nonce' ? 'other' : url.searchParams.get('nonce');
      idToken = await signed({ iss: provider.url, aud: 'conclave', nonce: providerNonce });
      recorder.keep('ID token', idToken);
      if (turn === 'wrong code') idToken = 'nonsense';
      const Code = recorder.keep('code', randomUUID());
      const callback = { AuthMethod: 'oidc', State, Code, ClientNonce: nonce };
      if (turn === 'explained') {
        const why = await recorder.post('oidc/callback/explain', callback, asReader);
        t.equal(why.Granted, true, turn);
      }
      const finished = await recorder.post('oidc/callback', callback);
      t.equal(finished.AuthMethod, turn === 'right' ? 'oidc' : undefined, turn);
      await recorder.post('oidc/callback', callback);
    }

    // Deletes, errors of every kind, and what the server says about itself.
    for (const path of [
      `token/${made.AccessorID}`,
      `token/${reader.AccessorID}x`,
      'auth-method/jwt',
    ]) {
      await send({ method: 'DELETE', path: `/v1/acl/${path}` });
    }
    const shown: Answer[] = [];
    for (const path of [
      '/v1/acl/tokens',
      `/v1/acl/token/${reader.AccessorID}`,
      `/v1/acl/token/${reader.AccessorID}?expanded`,
      '/v1/acl/auth-methods',
      '/v1/agent/self',
      '/v1/agent/metrics',
      '/v1/agent/metrics?format=prometheus',
      '/v1/agent/members',
      '/v1/openapi.json',
      '/v1/acl/replication',
      '/v1/acl/policies',
    ]) {
      const answer = await ask(server.port, { path, secret: chosen });
      t.equal(answer.status, 200, path);
      shown.push(answer);
    }
    const lists = shown[0]?.text ?? '';
    t.match(lists, '"SecretID":"\\u003chidden\\u003e"', 'a reader sees that something is hidden');
    await sendRaw(
      server.port,
      `GET /v1/acl/tokens HTTP/1.1\r\nX-Service-Token: ${MANAGEMENT}\r\n\r\n`,
    );
    t.same(await server.end('SIGTERM'), { code: 0, signal: null });

    const { secrets, seen } = recorder;
    t.ok(secrets.size > 30, `${secrets.size} secrets`);
    t.ok(seen.filter(({ status }) => status >= 400).length > 60, 'many refusals');
    t.same(findings(secrets, server.output(), 'log'), []);
    const audited = readFileSync(auditLog, 'utf8');
    t.ok(audited.split('\n').length > 100, 'all of it is in the audit log');
    t.same(findings(secrets, audited, 'audit log'), []);
    for (const { asked, status, headers, text } of seen) {
      const where = `${asked.method ?? 'GET'} ${asked.path} ${status}`;
      t.same(findings(secrets, JSON.stringify(headers), `headers of ${where}`), []);
      if (status >= 300) t.same(findings(secrets, text, `body of ${where}`), []);
    }
    for (const { text, headers } of shown) {
      t.same(findings(secrets, text + JSON.stringify(headers), 'shown to a reader'), []);
    }
  },
);

const HUNTER = 'hunter9-hunter9';

t.test('secrets: the text of a configuration is not repeated by what refuses it', (t) => {
  const cases: readonly (readonly [
    parse: (text: string) => unknown,
    text: string,
    says: RegExp,
  ])[] = [
    [parseJsonSettings, `{"default":"${HUNTER}"`, /^unexpected EOF in line 1, column 29$/],
    [parseJsonSettings, `{"default":"${HUNTER}",}`, /^invalid character '}'/],
    [parseJsonSettings, `{"default":${HUNTER}}`, /^invalid character 'h' looking for/],
    [parseJsonSettings, `{\n "default":\n  "${HUNTER}"\n "b": 1\n}`, / pair in line 4, column 2$/],
    [parseJsonSettings, `{"a": [nul, "${HUNTER}"]}`, / \(expecting 'l'\) in line 1, column 11$/],
    [parseJsonSettings, `{"a": "\\x${HUNTER}"}`, / escape code in line 1, column 9$/],
    [parseJsonSettings, `{"a":\n -}`, / in numeric literal in line 2, column 3$/],
    [parseJsonSettings, '', /^EOF in line 1, column 1$/],
    [parseJsonSettings, `{}\n "${HUNTER}"`, /^something follows .* in line 2, column 2$/],
    [
      parseJsonSettings,
      `{"a": {"b": 1, "c": {"b": 2}},\n "d": {"b": "${HUNTER}"},\n "\\u0061": 1}`,
      /^duplicate key in line 3, column 2$/,
    ],
    [parseYamlSettings, `a:\n  b: "${HUNTER}\n`, /^missing char in line 3, column 1$/],
    [parseYamlSettings, `a:\n  b: ${HUNTER}\n c: d\n`, / in line \d, column \d+$/],
    [parseYamlSettings, `a: *${HUNTER}\n`, /^an alias names no anchor/],
    [parseYamlSettings, `a: !${HUNTER} x\n`, /^tag resolve failed in line 1, column 4$/],
    [parseYamlSettings, `a: @${HUNTER}\n`, /^bad scalar start in line 1, column 4$/],
    [parseYamlSettings, `a: ${HUNTER}\na: ${HUNTER}\n`, /^duplicate key in line 2/],
  ];
  for (const [parse, text, says] of cases) {
    t.throws(() => parse(text), { message: says }, text);
    try {
      parse(text);
    } catch (error) {
      t.notMatch(String(error), HUNTER);
    }
  }
  for (const parse of [parseJsonSettings, parseYamlSettings]) {
    t.same(parse('{"a": [1, null, "x"]}'), { a: [1, null, 'x'] });
  }
  t.end();
});

t.test(
  'secrets: a server that refuses its configuration names it and repeats nothing',
  async (t) => {
    const folder = temporaryFolder(t);
    const cases: readonly (readonly [name: string, text: string])[] = [
      ['comma.json', `{"acl":{"tokens":{"default":"${HUNTER}",}}}`],
      ['type.json', `{"acl":{"tokens":{"default":["${HUNTER}"]}}}`],
      ['indent.yaml', `acl:\n  tokens:\n    default: ${HUNTER}\n   initial: x\n`],
      ['misspelt.yaml', `acl:\n  tokens:\n    defualt: ${HUNTER}\n`],
    ];
    for (const [name, text] of cases) {
      const path = join(folder, name);
      writeFileSync(path, text);
      const { ending, output } = await startRefused(t, {
        dataFolder: join(folder, 'data'),
        flags: { 'config-file': path, 'acl-tokens-initial-management': '' },
      });
      t.equal(ending.code, 2);
      t.match(output, name);
      t.notMatch(output, HUNTER, name);
    }
    const flags = { [`acl-tokens-defualt=${HUNTER}`]: 'x' };
    const { output } = await startRefused(t, { dataFolder: join(folder, 'data'), flags });
    t.match(output, 'acl-tokens-defualt');
    t.notMatch(output, HUNTER, 'a mistyped flag');
  },
);

t.test('secrets: only their owner may look into the files of a server', async (t) => {
  const folder = temporaryFolder(t);
  const present = join(folder, 'present');
  mkdirSync(present, { mode: 0o755 });
  for (const dataFolder of [join(folder, 'a', 'made'), present]) {
    const server = await startServer(t, { dataFolder });
    await server.end('SIGTERM');
    const folders = ['log', 'state'].map((name) => join(dataFolder, name));
    if (dataFolder !== present) folders.push(dataFolder);
    for (const each of folders) t.equal(statSync(each).mode & 0o777, 0o700, each);
    for (const entry of readdirSync(dataFolder, { withFileTypes: true })) {
      if (entry.isFile())
        t.equal(statSync(join(dataFolder, entry.name)).mode & 0o077, 0, entry.name);
    }
  }
});
