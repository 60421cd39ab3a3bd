// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how binding rules name attributes.
// The words of refusals that deployed clients compare.

import t from 'tap';
import { jwtIssuer } from '../../support/running/jwt-issuer.ts';
import { answers, Client, type Fields, runNode } from '../../support/running/running-node.ts';
import { fresh, makersOn } from '../makers.ts';
import { CLAIMS, GLOBAL_MANAGEMENT, ID } from './values.ts';

const DAY = '24h0m0s';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newPolicy, newToken, newMethod, newRule } = makersOn(consul, ISSUER.config);

const JWT_CONFIG = ISSUER.config;

t.test('texts: the words that clients see, all with 500', async (t) => {
  const { Name: taken } = await newPolicy();
  const role = await consul.made('PUT', '/acl/role', { Name: fresh('role') });
  const { Name: method } = await newMethod();
  const { Name: otherMethod } = await newMethod();
  const rule = await newRule({ AuthMethod: method });
  await newRule({ AuthMethod: method });
  const bearer = await ISSUER.sign(CLAIMS);
  const login = await consul.made('POST', '/acl/login', {
    AuthMethod: method,
    BearerToken: bearer,
  });
  const self = await newToken({ Policies: [{ ID: GLOBAL_MANAGEMENT }] });
  const letters = "Only alphanumeric characters, '-' and '_' are allowed";
  const lowercase = "Only lowercase alphanumeric characters, '-' and '_' are allowed";
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const rules = { AuthMethod: method, BindType: 'service', BindName: 'web' };
  const jwt = { Type: 'jwt', Config: JWT_CONFIG };
  const cases: readonly [string, Fields, string | RegExp][] = [
    ['policy', {}, 'Invalid Policy: no Name is set'],
    ['policy', { Name: 'a b' }, `Invalid Policy: invalid Name. ${letters}`],
    ['policy', { Name: 'a/b' }, `Invalid Policy: invalid Name. ${letters}`],
    ['policy', { Name: taken }, `Invalid Policy: A Policy with Name "${taken}" already exists`],
    [`policy/${ID}`, { Name: 'x' }, `cannot find policy ${ID}`],
    [
      `policy/${GLOBAL_MANAGEMENT}`,
      { Name: 'global-management', Rules: 'acl = "read"' },
      'Changing the Rules for the builtin global-management policy is not permitted',
    ],
    ['role', {}, 'Invalid Role: no Name is set'],
    ['role', { Name: 'a b' }, `Invalid Role: invalid Name. ${letters}`],
    ['role', { Name: role.Name }, `Invalid Role: A Role with Name "${role.Name}" already exists`],
    ['token', { Policies: [{ Name: 'none' }] }, 'No such ACL policy with name "none"'],
    [
      'token',
      { ServiceIdentities: [{ ServiceName: 'A' }] },
      `Service identity "A" has an invalid name. ${lowercase}`,
    ],
    [
      'role',
      { Name: 'n', NodeIdentities: [{ NodeName: 'n' }] },
      'Node identity is missing the datacenter field on this role',
    ],
    [`token/${login.AccessorID}/clone`, {}, 'Cannot clone a token created from an auth method'],
    ['token', { AuthMethod: method }, 'AuthMethod field is disallowed outside of login'],
    [
      'token',
      { ExpirationTTL: '1h', ExpirationTime: inAnHour },
      'Token Expiration TTL and Expiration Time cannot both be set',
    ],
    [
      'auth-method',
      { ...jwt, Name: 'n', MaxTokenTTL: '24h0m1s' },
      `MaxTokenTTL 24h0m1s cannot be more than ${DAY}`,
    ],
    [
      'auth-method',
      { ...jwt, Name: 'n', MaxTokenTTL: '59s' },
      'MaxTokenTTL 59s cannot be less than 1m0s',
    ],
    [
      'auth-method',
      { ...jwt, Name: method, Type: 'kubernetes' },
      'the Type field of an Auth Method is immutable',
    ],
    [
      'auth-method',
      { ...jwt, Name: 'n', Type: 'ldap' },
      'Invalid Auth Method: Type should be one of: [aws-iam jwt kubernetes oidc]',
    ],
    [
      `binding-rule/${rule.ID}`,
      { ...rules, AuthMethod: otherMethod },
      'the AuthMethod field of an Binding Rule is immutable',
    ],
    ['binding-rule', { ...rules, AuthMethod: 'none' }, 'cannot find auth method with name "none"'],
    [
      'binding-rule',
      { ...rules, Selector: 'value.name ==' },
      /^invalid Binding Rule: Selector is invalid: /,
    ],
    ['binding-rule', { ...rules, BindType: 'x' }, /: invalid Binding Rule: unknown BindType "x"$/],
    ['binding-rule', { ...rules, BindName: '${' }, /^Invalid Binding Rule: invalid BindName/],
  ];
  for (const [path, body, text] of cases) {
    answers(t, await consul.put(`/acl/${path}`, body), 500, text);
  }
  const deletes: readonly [Client, string, string][] = [
    [
      consul,
      `policy/${GLOBAL_MANAGEMENT}`,
      'Delete operation not permitted on the builtin global-management policy',
    ],
    [consul, 'token/x', 'Accessor ID is missing or an invalid UUID'],
    [
      consul,
      'token/00000000-0000-0000-0000-000000000002',
      'Delete operation not permitted on the anonymous token',
    ],
    [
      consul.as(self.SecretID),
      `token/${self.AccessorID}`,
      "Deletion of the request's authorization token is not permitted",
    ],
  ];
  for (const [client, path, text] of deletes) {
    answers(t, await client.delete(`/acl/${path}`), 500, text);
  }
});
