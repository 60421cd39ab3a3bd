// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how binding rules name attributes.
// As objects.test.ts, for auth methods, binding rules, and logins by them.

import t from 'tap';
import { startLoopback } from '../../auth-methods/loopback.ts';
import { selfSigned } from '../../support/certificates.ts';
import { jwtIssuer } from '../../support/running/jwt-issuer.ts';
import {
  answers,
  Client,
  type Fields,
  type Reply,
  runNode,
} from '../../support/running/running-node.ts';
import { makersOn } from '../makers.ts';
import { CLAIMS, ID } from './values.ts';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newMethod, newRule } = makersOn(consul, ISSUER.config);

const JWT_CONFIG = ISSUER.config;

t.test('auth methods', async (t) => {
  await t.test('M1: a create answers with Config', async (t) => {
    const body = { Name: 'm1', Type: 'jwt', Description: 'one', Config: JWT_CONFIG };
    t.match(await consul.made('PUT', '/acl/auth-method', body), body);
  });

  await t.test('M1: Config may hold any JSON value of a known key (decisions 3)', async (t) => {
    const Config = { ...JWT_CONFIG, ClockSkewLeeway: '5', BoundAudiences: ['a', 'b'] };
    t.same((await newMethod({ Config })).Config, Config);
    const Name = 'm1-unknown';
    const body = { Name, Type: 'jwt', Config: { ...JWT_CONFIG, Bogus: [1] } };
    const text = /^Invalid Auth Method: error decoding config: .*Bogus/;
    answers(t, await consul.put('/acl/auth-method', body), 500, text);
  });

  await t.test(
    'M: what newer command lines send unasked is taken, another wish is not',
    async (t) => {
      const body = { Name: 'm-format', Type: 'jwt', Config: JWT_CONFIG };
      const asked = (TokenNameFormat: string) => ({ ...body, TokenNameFormat });
      const made = await consul.made(
        'PUT',
        '/acl/auth-method',
        asked('${auth_method_type}-${auth_method_name}'),
      );
      t.notOk('TokenNameFormat' in made);
      for (const path of ['/acl/auth-method', '/acl/auth-method/m-format']) {
        t.equal((await consul.put(path, asked(''))).status, 200);
        const text = /^Invalid Auth Method: TokenNameFormat cannot be chosen/;
        answers(t, await consul.put(path, asked('ci-${value.name}')), 500, text);
      }
    },
  );

  await t.test('M2: global locality, and a TTL in nanoseconds', async (t) => {
    const body = { TokenLocality: 'global', MaxTokenTTL: 500_000_000_000 };
    t.match(await newMethod(body), { TokenLocality: 'global', MaxTokenTTL: '8m20s' });
  });

  await t.test('M3: an unknown datacenter', async (t) => {
    const body = { Name: 'm3', Type: 'jwt', Config: JWT_CONFIG };
    const reply = await consul.put('/acl/auth-method?dc=remote', body);
    answers(t, reply, 500, 'No path to datacenter');
    t.equal((await consul.put('/acl/auth-method?dc=dc1', body)).status, 200);
  });

  await t.test('M4: another Name in the body than in the path', async (t) => {
    const body = { Name: 'test', Type: 'jwt', Config: JWT_CONFIG };
    const reply = await consul.put('/acl/auth-method/not-test', body);
    answers(t, reply, 400, 'AuthMethod Name in URL and payload do not match');
  });

  await t.test('M5: an update, on either path (decisions 3: an upsert)', async (t) => {
    const first = await newMethod();
    const { Name, CreateIndex } = first;
    let before = first;
    for (const path of [`/acl/auth-method/${Name}`, '/acl/auth-method']) {
      const body = { Name, Description: path, Config: JWT_CONFIG };
      const after = await consul.made('PUT', path, body);
      t.match(after, { Type: 'jwt', Description: path, CreateIndex });
      t.ok(Number(after.ModifyIndex) > Number(before.ModifyIndex));
      before = after;
    }
  });

  await t.test('M6: the list shows TTL and locality, and never Config', async (t) => {
    const body = { Description: 'd', MaxTokenTTL: '5m', TokenLocality: 'global' };
    const { Config: _config, ...entry } = await newMethod(body);
    const { list } = await consul.get('/acl/auth-methods');
    t.same(
      list.find(({ Name }) => Name === entry.Name),
      entry,
    );
    t.notOk(list.some((method) => 'Config' in method));
  });

  await t.test('M7: read and delete; decisions 2: false when there is none', async (t) => {
    const method = await newMethod();
    const path = `/acl/auth-method/${method.Name}`;
    t.same((await consul.get(path)).json, method);
    answers(t, await consul.delete(path), 200, 'true');
    const text = 'Requested auth method does not exist: ACL not found';
    answers(t, await consul.get(path), 404, text);
    answers(t, await consul.delete(path), 200, 'false');
  });
});

t.test('binding rules', async (t) => {
  const { Name: AuthMethod } = await newMethod();
  const full = {
    AuthMethod,
    Description: 'd',
    Selector: 'value.name == jeff2',
    BindType: 'role',
    BindName: 'jeff',
  };

  await t.test('L1: a create answers an ID', async (t) => {
    t.match(await newRule(full), { ...full, ID: /^.{36}$/ });
  });

  await t.test('L2: an update with a template in BindName', async (t) => {
    const { ID: id } = await newRule(full);
    const body = { ...full, BindName: '${value.name}' };
    t.match(await consul.made('PUT', `/acl/binding-rule/${id}`, body), body);
  });

  await t.test('L3: an ID on create', async (t) => {
    const reply = await consul.put('/acl/binding-rule', { ...full, ID });
    answers(t, reply, 400, 'BindingRule ID in URL and payload do not match');
  });

  await t.test('L4: no id', async (t) => {
    answers(t, await consul.get('/acl/binding-rule/'), 400, 'Missing binding rule ID');
  });

  await t.test('L5: list by method, read, delete', async (t) => {
    const { Name: other } = await newMethod();
    const list = `/acl/binding-rules?authmethod=${other}`;
    t.equal((await consul.get(list)).text, '[]');
    const rule = await newRule({ ...full, AuthMethod: other });
    t.same((await consul.get(list)).json, [rule]);
    t.same((await consul.get(`/acl/binding-rule/${rule.ID}`)).json, rule);
    answers(t, await consul.delete(`/acl/binding-rule/${rule.ID}`), 200, 'true');
    t.equal((await consul.get(list)).text, '[]');
    const text = 'Requested binding rule does not exist: ACL not found';
    answers(t, await consul.get(`/acl/binding-rule/${rule.ID}`), 404, text);
  });
});

t.test('logins', async (t) => {
  const anybody = consul.as('');
  const { Name: AuthMethod } = await newMethod();
  await newRule({ AuthMethod, BindName: 'demo' });
  await newRule({ AuthMethod, BindType: 'role', BindName: 'no-such-role' });
  const BearerToken = await ISSUER.sign(CLAIMS);
  const login = (body: Fields = {}): Promise<Reply> =>
    anybody.post('/acl/login', { AuthMethod, BearerToken, ...body });

  const isGranted = (
    t: Pick<typeof import('tap').default, 'equal' | 'match' | 'same'>,
    { status, json }: Reply,
  ): void => {
    t.equal(status, 200);
    t.match(json, {
      Description: 'token created via login: {"foo":"bar"}',
      Local: true,
      ServiceIdentities: [{ ServiceName: 'demo' }],
    });
    t.same(json.Policies, undefined);
    t.same(json.Roles, undefined);
  };

  await t.test('G1: a login gives what the rules bind; a missing role is skipped', async (t) => {
    const reply = await login({ Meta: { foo: 'bar' } });
    isGranted(t, reply);
    t.equal(reply.json.AuthMethod, AuthMethod);
    t.equal((await login()).json.Description, 'token created via login');
  });

  const TLS = selfSigned();
  await t.test('G1: the same through a cluster that reviews the bearer', async (t) => {
    const cluster = await startLoopback(t, TLS);
    const user = { username: 'system:serviceaccount:default:demo', uid: 'u' };
    cluster.reply = ({ path }) =>
      path.startsWith('/apis/')
        ? { status: 201, body: { status: { authenticated: true, user } } }
        : { body: {} };
    const bearer = await ISSUER.sign({});
    const Config = { Host: cluster.url, CACert: TLS.cert, ServiceAccountJWT: bearer };
    const { Name } = await newMethod({ Type: 'kubernetes', Config });
    await newRule({
      AuthMethod: Name,
      Selector: 'serviceaccount.namespace==default',
      BindName: '${serviceaccount.name}',
    });
    await newRule({ AuthMethod: Name, BindType: 'role', BindName: 'no-such-role' });
    isGranted(t, await login({ AuthMethod: Name, BearerToken: bearer, Meta: { foo: 'bar' } }));
  });

  await t.test(
    'a service account gets its token where its own namespace is mirrored',
    async (t) => {
      const cluster = await startLoopback(t, TLS);
      let namespace = '';
      cluster.reply = ({ path }) => {
        const user = { username: `system:serviceaccount:${namespace}:web`, uid: 'u-1' };
        const body = path.startsWith('/apis/') ? { status: { authenticated: true, user } } : {};
        return { body };
      };
      const bearer = await ISSUER.sign({});
      const given = { Host: cluster.url, CACert: TLS.cert, ServiceAccountJWT: bearer };
      const Config = { ...given, MapNamespaces: true, ConsulNamespacePrefix: 'k8s-' };
      const { Name: AuthMethod } = await newMethod({ Type: 'kubernetes', Config });
      t.match((await consul.get(`/acl/auth-method/${AuthMethod}`)).json.Config, Config);
      await newRule({ AuthMethod, BindName: '${serviceaccount.name}' });
      await newRule({ AuthMethod, BindType: 'role', BindName: 'team' });
      for (const Name of ['k8s-a', 'k8s-b']) await consul.made('PUT', '/namespace', { Name });
      const role = await consul.made('PUT', '/acl/role?ns=k8s-a', { Name: 'team' });
      const asked = { AuthMethod, BearerToken: bearer };

      namespace = 'a';
      const inA = (await login(asked)).json;
      t.match(inA, { Namespace: 'k8s-a', AuthMethod, Roles: [{ ID: role.ID }] });
      t.match(inA.ServiceIdentities, [{ ServiceName: 'web' }]);
      namespace = 'b';
      const inB = (await login(asked)).json;
      t.equal(inB.Namespace, 'k8s-b');
      t.notOk(inB.Roles, 'the role of another namespace is none of its own');
      const mayWrite = async (token: Fields, Namespace: string) => {
        const question = { Resource: 'service', Segment: 'web', Access: 'write', Namespace };
        const { list } = await consul
          .as(token.SecretID)
          .post('/internal/acl/authorize', [question]);
        return list[0]?.Allow;
      };
      t.same(
        [
          await mayWrite(inA, 'k8s-a'),
          await mayWrite(inA, 'k8s-b'),
          await mayWrite(inA, 'default'),
        ],
        [true, false, false],
      );
      t.same(
        (await consul.get(`/acl/tokens?ns=k8s-a&authmethod=${AuthMethod}&authmethod-ns=default`))
          .list.length,
        1,
      );

      namespace = 'c';
      answers(t, await login(asked), 500, 'namespace "k8s-c" does not exist');
      for (const query of ['?ns=k8s-a', '?ns=k8s-b']) {
        const body = { Name: 'm-mapped', Type: 'kubernetes', Config };
        const text = /Config.MapNamespaces can only be used in the default namespace/;
        answers(t, await consul.put(`/acl/auth-method${query}`, body), 500, text);
      }
      answers(t, await consul.delete(`/acl/auth-method/${AuthMethod}`), 200, 'true');
      for (const token of [inA, inB]) {
        answers(t, await consul.as(token.SecretID).get('/acl/token/self'), 403, /ACL not found/);
      }
    },
  );

  await t.test('G2: the list by method', async (t) => {
    const { Name: busy } = await newMethod();
    const { Name: idle } = await newMethod();
    await newRule({ AuthMethod: busy });
    for (let count = 0; count < 2; count += 1) await login({ AuthMethod: busy });
    t.equal((await consul.get(`/acl/tokens?authmethod=${idle}`)).text, '[]');
    t.equal((await consul.get(`/acl/tokens?authmethod=${busy}`)).list.length, 2);
  });

  await t.test('G3: a logout ends the token', async (t) => {
    const { SecretID, AccessorID } = (await login()).json;
    answers(t, await consul.as(SecretID).post('/acl/logout'), 200, 'true');
    // Compatibility 3.4: reads of a missing token are 403, for these clients.
    answers(t, await consul.get(`/acl/token/${AccessorID}`), 403, /ACL not found/);
    answers(t, await consul.as(SecretID).get('/acl/token/self'), 403, /ACL not found/);
  });

  await t.test('G4: logouts without a token, and of tokens that no login made', async (t) => {
    answers(t, await anybody.post('/acl/logout'), 401, 'Supplied token does not exist');
    const text = "Permission denied: token wasn't created via login";
    answers(t, await consul.post('/acl/logout'), 403, text);
    answers(t, await consul.as(ID.replace('7', '8')).post('/acl/logout'), 403, 'ACL not found');
  });

  await t.test('J1: static keys, JWKS and discovery; an invalid bearer', async (t) => {
    const servers = [await startLoopback(t), await startLoopback(t, TLS)];
    const { JWTValidationPubKeys, BoundIssuer, ...mappings } = JWT_CONFIG;
    const configs: Fields[] = [{ ...mappings, JWTValidationPubKeys, BoundIssuer }];
    for (const server of servers) {
      server.reply = ({ path }) =>
        path === '/keys'
          ? { body: { keys: [ISSUER.jwk] } }
          : {
              body: {
                issuer: server.url,
                jwks_uri: `${server.url}/keys`,
                authorization_endpoint: `${server.url}/authorize`,
                token_endpoint: `${server.url}/token`,
                response_types_supported: ['code'],
                subject_types_supported: ['public'],
                id_token_signing_alg_values_supported: ['ES256'],
              },
            };
      const isTls = server.url.startsWith('https:');
      configs.push(
        { ...mappings, JWKSURL: `${server.url}/keys`, ...(isTls && { JWKSCACert: TLS.cert }) },
        {
          ...mappings,
          OIDCDiscoveryURL: server.url,
          JWTSupportedAlgs: ['ES256'],
          ...(isTls && { OIDCDiscoveryCACert: TLS.cert }),
        },
      );
    }
    const stranger = await jwtIssuer();
    for (const Config of configs) {
      const what = Object.keys(Config).slice(3).join();
      const { Name } = await newMethod({ Config });
      await newRule({ AuthMethod: Name });
      const iss = Config.OIDCDiscoveryURL;
      const claims = { ...CLAIMS, ...(iss === undefined ? {} : { iss }) };
      const good = await login({ AuthMethod: Name, BearerToken: await ISSUER.sign(claims) });
      t.equal(good.status, 200, `${what}: ${good.text}`);
      const forged = await login({ AuthMethod: Name, BearerToken: await stranger.sign(claims) });
      t.equal(forged.status, 500, what);
      t.equal((await login({ AuthMethod: Name, BearerToken: 'invalid' })).status, 500, what);
    }
  });

  await t.test('J2: a good bearer, and no rule', async (t) => {
    const { Name } = await newMethod();
    answers(t, await login({ AuthMethod: Name }), 403, 'Permission denied');
  });

  await t.test('J3: selectors over mapped claims, and names made of them', async (t) => {
    const { Name } = await newMethod();
    await newRule({
      AuthMethod: Name,
      Selector: 'value.name == jeff2 and value.primary_org == engineering and foo in list.groups',
      BindName: 'test--${value.name}--${value.primary_org}',
    });
    const { status, json } = await login({ AuthMethod: Name });
    t.equal(status, 200);
    t.match(json, { ServiceIdentities: [{ ServiceName: 'test--jeff2--engineering' }] });
    const other = await ISSUER.sign({ ...CLAIMS, 'https://groups.test/groups': ['bar'] });
    answers(t, await login({ AuthMethod: Name, BearerToken: other }), 403, 'Permission denied');
  });
});
