// What each command sends: method, path, query and body, in order.

import t from 'tap';
import {
  METHOD,
  NAMESPACE,
  OTHER_POLICY_ID,
  POLICY,
  POLICY_ID,
  ROLE,
  ROLE_ID,
  RULE,
  RULE_ID,
  SECRET,
  TOKEN,
  TOKEN_ID,
} from './fixtures.ts';
import { run } from './harness.ts';
import { ANONYMOUS, FILES, policy, role, rule, SERVER, token } from './whole-server.ts';

const page = 'limit=1000';
/** What the token of the fixtures grants, as an update sends it back. */
const kept = {
  Policies: TOKEN.Policies,
  Roles: TOKEN.Roles,
  ServiceIdentities: TOKEN.ServiceIdentities,
  NodeIdentities: TOKEN.NodeIdentities,
  TemplatedPolicies: [{ TemplateName: 'builtin/service', TemplateVariables: { name: 'api' } }],
};

/** Command line → requests; a body stands as a value behind its request. */
const CASES: readonly (readonly [line: string, ...asked: (string | object)[]])[] = [
  ['acl bootstrap', 'PUT /v1/acl/bootstrap'],
  [`acl bootstrap ${SECRET}`, 'PUT /v1/acl/bootstrap', { BootstrapSecret: SECRET }],
  ['acl bootstrap @secret', 'PUT /v1/acl/bootstrap', { BootstrapSecret: SECRET }],
  ['acl bootstrap -', 'PUT /v1/acl/bootstrap', { BootstrapSecret: 'from-standard-input' }],

  ['acl token create', 'PUT /v1/acl/token', {}],
  [
    `acl token create -accessor ${TOKEN_ID} -secret @secret -description text -policy-id ${POLICY_ID} -policy-name web-read -role-name deployers -service-identity web -service-identity api:dc1,dc2 -node-identity n1:dc1 -templated-policy builtin/service -var name:api -local -expires-ttl=8h`,
    'PUT /v1/acl/token',
    {
      AccessorID: TOKEN_ID,
      SecretID: SECRET,
      Description: 'text',
      Policies: [{ ID: POLICY_ID }, { Name: 'web-read' }],
      Roles: [{ Name: 'deployers' }],
      ServiceIdentities: [
        { ServiceName: 'web' },
        { ServiceName: 'api', Datacenters: ['dc1', 'dc2'] },
      ],
      NodeIdentities: [{ NodeName: 'n1', Datacenter: 'dc1' }],
      TemplatedPolicies: [{ TemplateName: 'builtin/service', TemplateVariables: { name: 'api' } }],
      Local: true,
      ExpirationTTL: '8h',
    },
  ],
  [
    'acl token create --var name:api --templated-policy builtin/node',
    'PUT /v1/acl/token',
    { TemplatedPolicies: [{ TemplateName: 'builtin/node', TemplateVariables: { name: 'api' } }] },
  ],
  [
    'acl token create --templated-policy builtin/service --var name:a --templated-policy builtin/dns --templated-policy builtin/node --var name:b',
    'PUT /v1/acl/token',
    {
      TemplatedPolicies: [
        { TemplateName: 'builtin/service', TemplateVariables: { name: 'a' } },
        { TemplateName: 'builtin/dns' },
        { TemplateName: 'builtin/node', TemplateVariables: { name: 'b' } },
      ],
    },
  ],
  [
    'acl token create --policy-id ops --role-id bbbb',
    `GET /v1/acl/policies?${page}`,
    `GET /v1/acl/roles?${page}`,
    'PUT /v1/acl/token',
    { Policies: [{ ID: POLICY_ID }], Roles: [{ ID: ROLE_ID }] },
  ],
  [`acl token read -id-is-wrong`],
  [`acl token read --accessor-id ${TOKEN_ID}`, `GET ${token}`],
  [`acl token read --accessor-id ${TOKEN_ID} --expanded`, `GET ${token}?expanded`],
  ['acl token read 1e2f', `GET /v1/acl/tokens?${page}`, `GET ${token}`],
  ['acl token read anonymous', `GET /v1/acl/token/${ANONYMOUS}`],
  ['acl token read -self', 'GET /v1/acl/token/self'],
  ['acl token read -self -expanded', 'GET /v1/acl/token/self', `GET ${token}?expanded`],
  [
    `acl token update ${TOKEN_ID} --description new`,
    `GET ${token}`,
    `PUT ${token}?cas=12`,
    { Description: 'new', ...kept, Local: true },
  ],
  [
    `acl token update ${TOKEN_ID} --policy-name web-read --cas 12`,
    `GET ${token}`,
    `PUT ${token}?cas=12`,
    {
      Description: TOKEN.Description,
      ...kept,
      Policies: [{ Name: 'web-read' }],
      Local: true,
    },
  ],
  [
    `acl token update ${TOKEN_ID} --append-policy-name web-read --append-role-name more --append-service-identity db`,
    `GET ${token}`,
    `PUT ${token}?cas=12`,
    {
      Description: TOKEN.Description,
      ...kept,
      Policies: [...TOKEN.Policies, { Name: 'web-read' }],
      Roles: [...TOKEN.Roles, { Name: 'more' }],
      ServiceIdentities: [...TOKEN.ServiceIdentities, { ServiceName: 'db' }],
      Local: true,
    },
  ],
  [
    `acl token update ${TOKEN_ID} --clear policies --clear roles --append-role-name more`,
    `GET ${token}`,
    `PUT ${token}?cas=12`,
    {
      Description: TOKEN.Description,
      ...kept,
      Policies: [],
      Roles: [{ Name: 'more' }],
      Local: true,
    },
  ],
  [
    `acl token update ${TOKEN_ID} --clear service-identities --clear node-identities --clear templated-policies`,
    `GET ${token}`,
    `PUT ${token}?cas=12`,
    {
      Description: TOKEN.Description,
      ...kept,
      ServiceIdentities: [],
      NodeIdentities: [],
      TemplatedPolicies: [],
      Local: true,
    },
  ],
  [`acl token clone ${TOKEN_ID} --description copy`, `PUT ${token}/clone`, { Description: 'copy' }],
  [`acl token delete --accessor-id ${TOKEN_ID} --cas 12`, `DELETE ${token}?cas=12`],
  ['acl token list', `GET /v1/acl/tokens?${page}`],
  [
    'acl token list --policy ops --service-name web --auth-method ci',
    `GET /v1/acl/policies?${page}`,
    `GET /v1/acl/tokens?${page}&policy=${POLICY_ID}&servicename=web&authmethod=ci`,
  ],

  [
    'acl policy create --name ops --rules @rules.hcl --description text --valid-datacenter dc1 --valid-datacenter dc2',
    'PUT /v1/acl/policy',
    { Name: 'ops', Description: 'text', Rules: FILES['rules.hcl'], Datacenters: ['dc1', 'dc2'] },
  ],
  [
    'acl policy create --name ops --rules -',
    'PUT /v1/acl/policy',
    { Name: 'ops', Rules: 'from-standard-input' },
  ],
  [`acl policy read --id ${POLICY_ID}`, `GET ${policy}`],
  ['acl policy read --name ops', 'GET /v1/acl/policy/name/ops'],
  ['acl policy read ops', `GET /v1/acl/policies?${page}`, `GET ${policy}`],
  ['acl policy read aaaa1', `GET /v1/acl/policies?${page}`, `GET ${policy}`],
  [
    `acl policy update --id ${POLICY_ID} --name renamed`,
    `GET ${policy}`,
    `PUT ${policy}?cas=12`,
    { Name: 'renamed', Description: POLICY.Description, Rules: POLICY.Rules },
  ],
  [
    'acl policy update --name ops --new-name renamed --rules @rules.hcl',
    'GET /v1/acl/policy/name/ops',
    `PUT ${policy}?cas=12`,
    { Name: 'renamed', Description: POLICY.Description, Rules: FILES['rules.hcl'] },
  ],
  [
    `acl policy update --id ${POLICY_ID} --clear rules`,
    `GET ${policy}`,
    `PUT ${policy}?cas=12`,
    { Name: 'ops', Description: POLICY.Description, Rules: '' },
  ],
  [
    `acl policy update --id ${POLICY_ID} --all-datacenters`,
    `GET ${policy}`,
    `PUT ${policy}?cas=12`,
    { Name: 'ops', Description: POLICY.Description, Rules: POLICY.Rules, Datacenters: [] },
  ],
  [`acl policy delete --id ${POLICY_ID}`, `DELETE ${policy}`],
  ['acl policy delete --name ops', 'GET /v1/acl/policy/name/ops', `DELETE ${policy}`],
  ['acl policy list', `GET /v1/acl/policies?${page}`],

  [
    'acl role create --name deployers --policy-name ops --service-identity web',
    'PUT /v1/acl/role',
    {
      Name: 'deployers',
      Policies: [{ Name: 'ops' }],
      ServiceIdentities: [{ ServiceName: 'web' }],
    },
  ],
  ['acl role read --name deployers', 'GET /v1/acl/role/name/deployers'],
  [
    `acl role update --id ${ROLE_ID} --append-policy-id ${OTHER_POLICY_ID}`,
    `GET ${role}`,
    `PUT ${role}?cas=12`,
    {
      Name: 'deployers',
      Description: 'may deploy',
      Policies: [...ROLE.Policies, { ID: OTHER_POLICY_ID }],
      ServiceIdentities: ROLE.ServiceIdentities,
    },
  ],
  [`acl role delete ${ROLE_ID}`, `DELETE ${role}`],
  [
    'acl role list --policy ops',
    `GET /v1/acl/policies?${page}`,
    `GET /v1/acl/roles?${page}&policy=${POLICY_ID}`,
  ],

  [
    'acl auth-method create --name ci --type jwt --max-token-ttl 8h --config @config.json --namespace-rule-selector all-identities --namespace-rule-bind-namespace team-a',
    'PUT /v1/acl/auth-method',
    {
      Name: 'ci',
      Type: 'jwt',
      MaxTokenTTL: '8h',
      Config: { BoundIssuer: 'https://other.example' },
      NamespaceRules: [{ Selector: '', BindNamespace: 'team-a' }],
    },
  ],
  ['acl auth-method read ci', 'GET /v1/acl/auth-method/ci'],
  [
    'acl auth-method update --name ci --description new',
    'GET /v1/acl/auth-method/ci',
    'PUT /v1/acl/auth-method/ci?cas=12',
    {
      Type: 'jwt',
      Description: 'new',
      DisplayName: METHOD.DisplayName,
      MaxTokenTTL: METHOD.MaxTokenTTL,
      TokenLocality: 'local',
      Config: METHOD.Config,
    },
  ],
  [
    'acl auth-method update --name ci --clear namespace-rules',
    'GET /v1/acl/auth-method/ci',
    'PUT /v1/acl/auth-method/ci?cas=12',
    {
      Type: 'jwt',
      Description: METHOD.Description,
      DisplayName: METHOD.DisplayName,
      MaxTokenTTL: METHOD.MaxTokenTTL,
      TokenLocality: 'local',
      Config: METHOD.Config,
      NamespaceRules: [],
    },
  ],
  ['acl auth-method delete ci', 'DELETE /v1/acl/auth-method/ci'],
  ['acl auth-method list', `GET /v1/acl/auth-methods?${page}`],

  [
    'acl binding-rule create --method ci --bind-type templated-policy --bind-name builtin/service --bind-vars name=web --selector a==b',
    'PUT /v1/acl/binding-rule',
    {
      AuthMethod: 'ci',
      Selector: 'a==b',
      BindType: 'templated-policy',
      BindName: 'builtin/service',
      BindVars: { name: 'web' },
    },
  ],
  ['acl binding-rule read cccc', `GET /v1/acl/binding-rules?${page}`, `GET ${rule}`],
  [
    `acl binding-rule update --id ${RULE_ID} --all-identities`,
    `GET ${rule}`,
    `PUT ${rule}?cas=12`,
    {
      AuthMethod: 'ci',
      Description: 'builds',
      Selector: '',
      BindType: RULE.BindType,
      BindName: RULE.BindName,
      BindVars: RULE.BindVars,
    },
  ],
  [
    `acl binding-rule update --id ${RULE_ID} --bind-type role --bind-name ops --clear bind-vars`,
    `GET ${rule}`,
    `PUT ${rule}?cas=12`,
    {
      AuthMethod: 'ci',
      Description: 'builds',
      Selector: RULE.Selector,
      BindType: 'role',
      BindName: 'ops',
      BindVars: {},
    },
  ],
  [`acl binding-rule delete ${RULE_ID}`, `DELETE ${rule}`],
  ['acl binding-rule list --method ci', `GET /v1/acl/binding-rules?${page}&authmethod=ci`],

  ['acl templated-policy list', 'GET /v1/acl/templated-policies'],
  [
    'acl templated-policy read --name builtin/service',
    'GET /v1/acl/templated-policy/name/builtin%2Fservice',
  ],
  [
    'acl templated-policy preview --name builtin/service --var name:api',
    'POST /v1/acl/templated-policy/preview/builtin%2Fservice',
    { name: 'api' },
  ],
  [
    'acl templated-policy preview builtin/service --file variables',
    'POST /v1/acl/templated-policy/preview/builtin%2Fservice',
    { name: 'api' },
  ],

  [
    'acl explain --resource service --segment web --access write --namespace team-a',
    'POST /v1/internal/acl/authorize?explain',
    [{ Resource: 'service', Access: 'write', Segment: 'web', Namespace: 'team-a' }],
  ],
  [
    `acl explain --resource acl --access read --accessor-id ${TOKEN_ID.slice(0, 8)}`,
    `GET /v1/acl/tokens?${page}`,
    `POST /v1/internal/acl/authorize/${TOKEN_ID}?explain`,
    [{ Resource: 'acl', Access: 'read' }],
  ],

  [
    'namespace create team-a --default-policy-id ops --meta owner=ann',
    `GET /v1/acl/policies?${page}`,
    'PUT /v1/namespace',
    {
      Name: 'team-a',
      Description: '',
      ACLs: { PolicyDefaults: [{ ID: POLICY_ID }] },
      Meta: { owner: 'ann' },
    },
  ],
  ['namespace read team-a', 'GET /v1/namespace/team-a'],
  [
    'namespace update team-a --clear default-policies --clear default-roles --clear meta',
    'GET /v1/namespace/team-a',
    'PUT /v1/namespace/team-a?cas=12',
    {
      Description: NAMESPACE.Description,
      ACLs: { PolicyDefaults: [], RoleDefaults: [] },
      Meta: {},
    },
  ],
  [
    'namespace update --name team-a --description new --default-role-name deployers',
    'GET /v1/namespace/team-a',
    'PUT /v1/namespace/team-a?cas=12',
    {
      Description: 'new',
      ACLs: {
        PolicyDefaults: NAMESPACE.ACLs.PolicyDefaults,
        RoleDefaults: [{ Name: 'deployers' }],
      },
      Meta: { owner: 'ann' },
    },
  ],
  ['namespace delete team-a --cas 12', 'DELETE /v1/namespace/team-a?cas=12'],
  ['namespace list', `GET /v1/namespaces?${page}`],

  [
    'login --method ci --bearer-token-file jwt --meta pod=a --token-sink-file sink',
    'POST /v1/acl/login',
    { AuthMethod: 'ci', BearerToken: 'header.payload.signature', Meta: { pod: 'a' } },
  ],
  [
    'login --method ci --bearer-token-file jwt --dry-run',
    'POST /v1/acl/login/explain',
    { AuthMethod: 'ci', BearerToken: 'header.payload.signature' },
  ],
  ['logout', 'POST /v1/acl/logout'],
  ['members', 'GET /v1/agent/members'],
  ['version'],
];

for (const [line, ...expected] of CASES) {
  t.test(`conclave ${line}: asks for that and nothing else`, async (t) => {
    const outcome = await run(line.split(' '), {
      answers: SERVER,
      files: FILES,
      standardInput: 'from-standard-input\n'.trimEnd(),
    });
    const asked = outcome.requests.flatMap(({ method, url, body }) => {
      const place = `${method} ${url.replace('http://127.0.0.1:8500', '')}`;
      return body === undefined ? [place] : [place, JSON.parse(body) as object];
    });
    t.same(asked, expected);
    t.equal(outcome.status, line.includes('-is-wrong') ? 2 : 0, outcome.err);
  });
}

const CHANGES = [
  `acl token update ${TOKEN_ID}`,
  'acl policy update ops',
  'acl role update deployers',
  'acl auth-method update ci',
  `acl binding-rule update ${RULE_ID}`,
  'namespace update team-a',
];

for (const line of CHANGES) {
  t.test(`conclave ${line}: puts no older version over the one that --cas names`, async (t) => {
    const given = [...line.split(' '), '--description', 'x', '--cas', '13'];
    const { asked, err, status } = await run(given, { answers: SERVER });
    t.same([status, asked.filter((one) => one.startsWith('PUT'))], [1, []]);
    t.match(err, /not as --cas 13 expects: what was read has ModifyIndex 12; nothing was changed/);
  });
}
