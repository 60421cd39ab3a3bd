// The method `kubernetes`, against a server on the loopback that plays the cluster.

import t from 'tap';
import type { JsonValue } from '../../src/acl/auth-method.ts';
import type { NamespaceName } from '../../src/acl/ids.ts';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import type { Identity } from '../../src/auth-methods/identity.ts';
import { CERTIFICATES_MAX } from '../../src/auth-methods/jwt/signing-keys.ts';
import { selfSigned } from '../support/certificates.ts';
import { checkTable, jwt } from './check-table.ts';
import { authMethod, type Reply, startLoopback, testSurroundings } from './loopback.ts';

const TLS = selfSigned();
const { cert } = TLS;

t.test('kubernetes: refuses a config with the prescribed words', async (t) => {
  const full = { Host: 'https://k8s.test', CACert: cert, ServiceAccountJWT: jwt('reviewer') };
  await checkTable(
    'kubernetes',
    [
      [{ ...full, Host: '' }, 'Config.Host is required'],
      [{ ...full, CACert: null }, 'Config.CACert is required'],
      [{ Host: 'h', CACert: cert }, 'Config.ServiceAccountJWT is required'],
      [
        { ...full, CACert: 'x' },
        /^Invalid Auth Method: error parsing kubernetes ca cert: it holds no/,
      ],
      [
        { ...full, CACert: cert.replace(/\n.{20}/, '\n') },
        /error parsing kubernetes ca cert: .* malformed$/,
      ],
      [
        { ...full, CACert: cert.repeat(CERTIFICATES_MAX + 1) },
        'error parsing kubernetes ca cert: it may hold at most 256 certificates, and holds 257',
      ],
      [
        { ...full, ServiceAccountJWT: 'a.b' },
        'Config.ServiceAccountJWT is not a valid JWT: it does not parse',
      ],
      [{ ...full, Host: 'ftp://x' }, 'Config.Host is not valid: the scheme must be https or http'],
      [{ ...full, Bogus: 1 }, 'error decoding config: invalid key "Bogus"'],
      [{ ...full, MapNamespaces: 'x' }, 'error decoding config: "MapNamespaces" must be a bool'],
      [
        { ...full, ConsulNamespacePrefix: 'k8s-' },
        'Config.ConsulNamespacePrefix needs Config.MapNamespaces',
      ],
      [
        { ...full, MapNamespaces: false, ConsulNamespaceOverrides: { a: 'b' } },
        'Config.ConsulNamespaceOverrides needs Config.MapNamespaces',
      ],
      ...['-a', 'A', 'a.', 'a$', 'a'.repeat(63)].map(
        (ConsulNamespacePrefix) =>
          [
            { ...full, MapNamespaces: true, ConsulNamespacePrefix },
            'Config.ConsulNamespacePrefix is not valid: no namespace can begin so',
          ] as const,
      ),
      [
        { ...full, MapNamespaces: true, ConsulNamespaceOverrides: { a: 'B' } },
        /^Invalid Auth Method: Config.ConsulNamespaceOverrides is not valid: Invalid Namespace/,
      ],
      [
        { ...full, MapNamespaces: true, ConsulNamespaceOverrides: 'a' },
        'error decoding config: "ConsulNamespaceOverrides" must be a map',
      ],
    ],
    t,
  );
  const { types } = createAuthMethods(testSurroundings());
  await types.kubernetes.checkConfig(authMethod('kubernetes', { ...full, MapNamespaces: false }));
  const mapped = authMethod('kubernetes', { ...full, MapNamespaces: true });
  await types.kubernetes.checkConfig(mapped);
  await t.rejects(types.kubernetes.checkConfig({ ...mapped, namespace: 'a' as NamespaceName }), {
    message: 'Invalid Auth Method: Config.MapNamespaces can only be used in the default namespace',
  });
  const namespaceRules = [{ selector: '', bindNamespace: 'a' }];
  await t.rejects(types.kubernetes.checkConfig({ ...mapped, namespaceRules }), {
    message: 'Invalid Auth Method: Config.MapNamespaces cannot be used with NamespaceRules',
  });
  const many = { ...full, CACert: cert.repeat(CERTIFICATES_MAX) };
  await types.kubernetes.checkConfig(authMethod('kubernetes', many));
  const names = types.kubernetes.attributeNames(authMethod('kubernetes', full));
  t.same(names.interpolatable, [
    'serviceaccount.namespace',
    'serviceaccount.name',
    'serviceaccount.uid',
  ]);
});

t.test('kubernetes: the cluster reviews the bearer and names the account', async (t) => {
  const server = await startLoopback(t, TLS);
  const surroundings = testSurroundings();
  const { types } = createAuthMethods(surroundings);
  const reviewer = jwt('reviewer');
  const bearer = jwt('demo');
  // Without scheme and with a slash, as clusters' own settings have it.
  const Host = `${server.url.replace('https://', '')}/`;
  const method = authMethod('kubernetes', { Host, CACert: cert, ServiceAccountJWT: reviewer });
  let review: object = {};
  let reviewStatus = 201;
  let account: Reply = { body: {} };
  server.reply = ({ path }) =>
    path.startsWith('/apis/') ? { status: reviewStatus, body: review } : account;
  const user = (username: string) => ({
    status: { authenticated: true, user: { username, uid: 'u-1' } },
  });
  const login = (token = bearer) => types.kubernetes.validate(method, token);
  const shown = ({ interpolatable }: Identity) => Object.fromEntries(interpolatable);

  review = user('system:serviceaccount:default:demo');
  const expected = {
    'serviceaccount.namespace': 'default',
    'serviceaccount.name': 'demo',
    'serviceaccount.uid': 'u-1',
  };
  t.same(shown(await login()), expected);
  const [asked, read] = server.seen;
  t.match(asked, {
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    headers: { authorization: `Bearer ${reviewer}` },
  });
  t.match(JSON.parse(asked?.body ?? ''), { kind: 'TokenReview', spec: { token: bearer } });
  t.match(read, { method: 'GET', path: '/api/v1/namespaces/default/serviceaccounts/demo' });
  account = {
    body: { metadata: { annotations: { 'consul.hashicorp.com/service-name': 'alias' } } },
  };
  t.same(shown(await login()), { ...expected, 'serviceaccount.name': 'alias' });

  const refusals: readonly (readonly [object, string])[] = [
    [{}, 'lookup failed: service account jwt not valid'],
    [{ status: { authenticated: 'true' } }, 'lookup failed: service account jwt not valid'],
    [
      { status: { authenticated: true, error: `bad ${bearer}` } },
      'lookup failed: the cluster could not authenticate the service account jwt',
    ],
    [user('jeff'), 'lookup failed: unexpected username format'],
    [user('a:b:c:d:e'), 'lookup failed: unexpected username format'],
    [
      { status: { authenticated: true, user: { username: 7 } } },
      'lookup failed: unexpected username format',
    ],
    [user('system:node:a:b'), 'lookup failed: username returned is not a service account'],
    [
      user('other:serviceaccount:default:demo'),
      'lookup failed: username returned is not a service account',
    ],
    [user('system:serviceaccount:default:..'), 'lookup failed: unexpected username format'],
    [user('system:serviceaccount:a/../b:x'), 'lookup failed: unexpected username format'],
    [user('system:serviceaccount:default:x?y'), 'lookup failed: unexpected username format'],
  ];
  for (const [answer, message] of refusals) {
    review = answer;
    await t.rejects(
      login(),
      { code: 'login-refused', message },
      JSON.stringify(answer).slice(0, 60),
    );
  }
  const username = 'system:serviceaccount:default:demo';
  review = { status: { authenticated: true, user: { username, uid: 7 } } };
  t.equal(shown(await login())['serviceaccount.uid'], '', 'an id that is no text is none');
  reviewStatus = 404;
  await t.rejects(login(), { code: 'unavailable', message: /unexpected status 404$/ });
  reviewStatus = 201;
  review = user(username);
  account = { status: 404, body: {} };
  await t.rejects(login(), { code: 'login-refused', message: /^annotation lookup failed/ });
  account = { status: 403, body: {} };
  await t.rejects(login(), {
    code: 'unavailable',
    message: 'error asking for a review of the service account: unexpected status 403',
  });
  const before = server.seen.length;
  await t.rejects(login('words'), {
    code: 'login-refused',
    message: 'the bearer token is not a JSON Web Token',
  });
  await t.rejects(login(`${bearer}${'x'.repeat(70_000)}`), {
    message: 'the bearer token is too large',
  });
  t.equal(server.seen.length, before, 'the cluster is not asked about what is no JWT');
  account = { body: {} };
  const mapped = async (account: string, mapping: Readonly<Record<string, JsonValue>>) => {
    review = user(`system:serviceaccount:${account}`);
    const config = { ...method.config, ...mapping };
    const { mappedNamespace } = await types.kubernetes.validate({ ...method, config }, bearer);
    return mappedNamespace;
  };
  const ConsulNamespaceOverrides = { 'kube-system': 'ops', default: '' };
  const whole = { MapNamespaces: true, ConsulNamespacePrefix: 'k8s-', ConsulNamespaceOverrides };
  t.equal(await mapped('team:demo', { MapNamespaces: false }), undefined);
  t.equal(await mapped('team:demo', { MapNamespaces: 'true', ConsulNamespacePrefix: '' }), 'team');
  t.equal(await mapped('team:demo', whole), 'k8s-team');
  t.equal(await mapped('kube-system:demo', whole), 'ops');
  t.equal(await mapped('default:demo', whole), 'default', 'without a name: where the method is');
  t.equal(await mapped('constructor:demo', whole), 'k8s-constructor');
  const { mappingText = () => '' } = types.kubernetes;
  const said = (mapping: object) => mappingText({ config: { ...method.config, ...mapping } });
  t.same([said({}), said({ MapNamespaces: 'false' })], ['', ''], 'which says nothing of them');
  const { MapNamespaces: _map, ...rest } = whole;
  t.equal(said({ ...rest, MAPNAMESPACES: 1 }), said(whole), 'however it is written');
  const turned = Object.fromEntries(Object.entries(ConsulNamespaceOverrides).reverse());
  const resent = { ...whole, ConsulNamespaceOverrides: turned };
  t.equal(said(resent), said(whole), 'and in whatever order: clients sort maps');
  const others = [
    { MapNamespaces: true },
    { ...whole, ConsulNamespacePrefix: '' },
    { ...whole, ConsulNamespaceOverrides: { 'kube-system': 'ops' } },
    { ...whole, ConsulNamespaceOverrides: { ...ConsulNamespaceOverrides, 'kube-system': 'x' } },
  ];
  const texts = new Set([whole, ...others].map(said));
  t.equal(texts.size, 5, 'each says something else');
  t.notOk(texts.has(''));
  const other = authMethod('kubernetes', {
    Host: 'localhost:1',
    CACert: cert,
    ServiceAccountJWT: reviewer,
  });
  await t.rejects(types.kubernetes.validate(other, bearer), {
    code: 'unavailable',
    message: /\(connection\)$/,
  });
  for (const secret of [bearer, reviewer]) t.notOk(surroundings.lines.join().includes(secret));
});
