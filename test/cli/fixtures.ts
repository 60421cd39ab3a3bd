// One object of each kind as the service sends it.

export const TOKEN_ID = '1e2f3a4b-0000-4000-8000-000000000001';
export const SECRET = '5ec7e700-0000-4000-8000-0000000000ff';
export const POLICY_ID = 'aaaa1111-0000-4000-8000-000000000001';
export const OTHER_POLICY_ID = 'aaaa2222-0000-4000-8000-000000000002';
export const ROLE_ID = 'bbbb1111-0000-4000-8000-000000000001';
export const RULE_ID = 'cccc1111-0000-4000-8000-000000000001';

const stamps = { CreateIndex: 10, ModifyIndex: 12 };

export const POLICY = {
  ID: POLICY_ID,
  Name: 'ops',
  Description: 'for people on duty',
  Rules: 'service_prefix "" {\n  policy = "write"\n}\n',
  Hash: 'aGFzaA==',
  ...stamps,
  Namespace: 'default',
};

export const POLICIES = [
  { ...POLICY, Rules: undefined, Datacenters: null },
  {
    ...POLICY,
    ID: OTHER_POLICY_ID,
    Name: 'web-read',
    Description: '',
    Rules: undefined,
    Datacenters: ['dc1', 'dc2'],
  },
];

export const LOGIN_EXPLANATION = {
  Granted: true,
  Summary: 'Granted: 1 of 2 binding rules bind something.',
  Attributes: [
    { Name: 'value.team', Value: 'eng' },
    { Name: 'list.groups', Value: ['a', 'b'] },
  ],
  Namespace: 'team-a',
  NamespaceSelector: 'value.team == eng',
  BindingRules: [
    {
      ID: RULE_ID,
      BindType: 'service',
      BindName: ['$', '{value.team}-api'].join(''),
      Selector: '',
      Result: 'bound',
      Name: 'eng-api',
      Why: 'its selector matches',
    },
    {
      ID: ROLE_ID,
      BindType: 'role',
      BindName: 'ops',
      Selector: 'ops in list.groups',
      Result: 'not-selected',
      Why: 'its selector does not match',
    },
  ],
  Token: {
    Description: 'token created via login',
    ServiceIdentities: [{ ServiceName: 'eng-api' }],
    Local: true,
    ExpirationTTL: '5m0s',
  },
};

export const TOKEN = {
  AccessorID: TOKEN_ID,
  SecretID: SECRET,
  Description: 'deploys of the web team',
  Policies: [{ ID: POLICY_ID, Name: 'ops' }],
  Roles: [{ ID: ROLE_ID, Name: 'deployers' }],
  ServiceIdentities: [{ ServiceName: 'web', Datacenters: ['dc1'] }],
  NodeIdentities: [{ NodeName: 'n1', Datacenter: 'dc1' }],
  TemplatedPolicies: [
    {
      TemplateID: '00000000-0000-0000-0000-000000000003',
      TemplateName: 'builtin/service',
      TemplateVariables: { name: 'api' },
    },
  ],
  Local: true,
  ExpirationTime: '2026-11-21T15:00:00.25Z',
  CreateTime: '2026-11-21T07:00:00.123456Z',
  Hash: 'aGFzaA==',
  ...stamps,
  Namespace: 'default',
};

export const PLAIN_TOKEN = {
  AccessorID: '00000000-0000-0000-0000-000000000002',
  SecretID: '<hidden>',
  Description: 'Anonymous Token',
  Policies: null,
  Local: false,
  CreateTime: '2026-11-21T07:00:00Z',
  Hash: null,
  ...stamps,
  Namespace: 'default',
};

export const ROLE = {
  ID: ROLE_ID,
  Name: 'deployers',
  Description: 'may deploy',
  Policies: [{ ID: POLICY_ID, Name: 'ops' }],
  ServiceIdentities: [{ ServiceName: 'web' }],
  Hash: 'aGFzaA==',
  ...stamps,
  Namespace: 'default',
};

export const METHOD = {
  Name: 'ci',
  Type: 'jwt',
  DisplayName: 'Build machines',
  Description: 'tokens of the build machines',
  MaxTokenTTL: '8h0m0s',
  TokenLocality: 'local',
  Config: { BoundIssuer: 'https://ci.example' },
  ...stamps,
  Namespace: 'default',
};

export const RULE = {
  ID: RULE_ID,
  Description: 'builds',
  AuthMethod: 'ci',
  Selector: 'value.project == "web"',
  BindType: 'templated-policy',
  BindName: 'builtin/service',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the language of bind names
  BindVars: { name: '${value.project}' },
  ...stamps,
  Namespace: 'default',
};

export const NAMESPACE = {
  Name: 'team-a',
  Description: 'the first team',
  ACLs: { PolicyDefaults: [{ ID: POLICY_ID, Name: 'ops' }] },
  Meta: { owner: 'ann' },
  ...stamps,
};

export const TEMPLATE = {
  TemplateName: 'builtin/service',
  Schema: '{"type":"object","properties":{"name":{"type":"string"}}}',
  Template: 'service "<name>" {\n  policy = "write"\n}',
  Description: 'What a service needs.',
};

export const MEMBER = {
  Name: 'n1',
  Addr: '10.0.0.1',
  Port: 8500,
  Tags: { role: 'server', voter: 'true' },
  Status: 1,
};

export const AUTHORIZATION = {
  Resource: 'service',
  Segment: 'web',
  Access: 'write',
  Allow: false,
  Explanation: {
    Decision: 'deny',
    Summary: 'the policy web-read denies it',
    DecidedBy: 'rule',
    Token: { AccessorID: TOKEN_ID, Description: 'deploys of the web team' },
    Role: { ID: ROLE_ID, Name: 'deployers' },
    Policy: { ID: OTHER_POLICY_ID, Name: 'web-read', Namespace: 'default' },
    Rule: { Text: 'service "web" { policy = "read" }', Line: 3, Column: 1 },
    Overruled: [
      {
        Policy: 'ops',
        Rule: 'service_prefix "" { policy = "write" }',
        Why: 'a longer name goes first',
      },
    ],
  },
};
