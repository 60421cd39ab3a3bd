// New tokens: defaults, given ids, links and identities, refusals in their order.

import fc from 'fast-check';
import t from 'tap';
import type { TokenDraft } from '../../../src/acl/checks/drafts.ts';
import { identityLists } from '../../../src/acl/checks/identity-checks.ts';
import {
  applyTokenUpdate,
  buildNewToken,
  type NewTokenGiven,
} from '../../../src/acl/checks/token-checks.ts';
import type { PolicyId } from '../../../src/acl/ids.ts';
import {
  authMethodGone,
  unknownPolicyId,
  unknownPolicyName,
  unknownRoleId,
  unknownRoleName,
} from '../../../src/acl/refusals.ts';
import { MAX_DURATION_NS, MINUTE_NS, SECOND_NS } from '../../../src/acl/values/duration.ts';
import { refusalOf } from '../refusal-of.ts';
import {
  ACCESSOR,
  GIVEN_ID,
  givenForCreate,
  givenForUpdate,
  IN_AN_HOUR,
  P1,
  R1,
  SECRET,
  storedToken,
  TEAM,
  USED_ID,
} from './cases.ts';

const RESERVED_ID = '00000000-0000-0000-0000-000000000009';

const P2 = '66666666-6666-6666-6666-666666666666' as PolicyId;

const create = (draft: TokenDraft, changes: Partial<NewTokenGiven> = {}) =>
  buildNewToken(draft, givenForCreate(changes));

t.test('create: an empty draft becomes a token of defaults', async (t) => {
  t.same(create({}), {
    accessorId: ACCESSOR,
    secretId: SECRET,
    namespace: 'default',
    description: '',
    policies: [],
    roles: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    local: false,
    authMethod: undefined,
    createTime: '2026-11-21T06:00:00.500Z',
    expirationTime: undefined,
    hash: create({}).hash,
  });
  t.match(create({}).hash, /^[A-Za-z0-9+/]{43}=$/);
});

t.test('create: fields that hold their defaults count as absent', async (t) => {
  const draft: TokenDraft = {
    accessorId: '',
    secretId: '',
    authMethod: '',
    expirationTime: '0001-01-01T00:00:00Z',
    expirationTtlNs: 0n,
  };
  t.same(create(draft), create({}));
  t.same(create({ expirationTime: '' }), create({}));
});

t.test('create: given ids, links and identities are kept in normal form', async (t) => {
  const token = create(
    {
      accessorId: GIVEN_ID,
      secretId: P2,
      description: 'd',
      local: true,
      serviceIdentities: [{ serviceName: 'web' }, { serviceName: 'api' }],
    },
    { namespace: TEAM, resolveLinks: () => ({ policies: [P2, P1, P2], roles: [R1, R1] }) },
  );
  t.equal(token.accessorId, GIVEN_ID, 'the letter case stays');
  t.equal(token.secretId, P2);
  t.equal(token.namespace, 'team');
  t.equal(token.local, true);
  t.same(token.policies, [P2, P1]);
  t.same(token.roles, [R1]);
  t.same(
    token.serviceIdentities.map((identity) => identity.serviceName),
    ['api', 'web'],
  );
});

t.test('create: refusals', async (t) => {
  const reserved = 'UUIDs with the prefix "00000000-0000-0000-0000-0000000000" are reserved';
  const cases: readonly (readonly [string, TokenDraft, string])[] = [
    [
      'accessor reserved',
      { accessorId: RESERVED_ID },
      `invalid: Invalid Token: AccessorID - ${reserved}`,
    ],
    [
      'secret reserved',
      { secretId: RESERVED_ID },
      `invalid: Invalid Token: SecretID - ${reserved}`,
    ],
    [
      'accessor no UUID',
      { accessorId: 'x' },
      'invalid: Invalid Token: AccessorID - not a valid UUID',
    ],
    ['secret no UUID', { secretId: 'x' }, 'invalid: Invalid Token: SecretID - not a valid UUID'],
    [
      'accessor used',
      { accessorId: USED_ID },
      'duplicate: Invalid Token: AccessorID is already in use',
    ],
    ['secret used', { secretId: USED_ID }, 'duplicate: Invalid Token: SecretID is already in use'],
    [
      'secret equal to the accessor',
      { accessorId: GIVEN_ID, secretId: GIVEN_ID.toLowerCase() },
      'duplicate: Invalid Token: SecretID is already in use',
    ],
    [
      'secret equal to the accessor, in capitals',
      { accessorId: GIVEN_ID.toLowerCase(), secretId: GIVEN_ID },
      'duplicate: Invalid Token: SecretID is already in use',
    ],
    [
      'ttl negative',
      { expirationTtlNs: -SECOND_NS },
      "invalid: Token Expiration TTL '-1s' should be > 0",
    ],
    [
      'ttl and time',
      { expirationTtlNs: MINUTE_NS, expirationTime: IN_AN_HOUR },
      'invalid: Token Expiration TTL and Expiration Time cannot both be set',
    ],
    [
      'time unreadable',
      { expirationTime: 'tomorrow' },
      'malformed: Token decoding failed: parsing time "tomorrow": ExpirationTime is not an RFC 3339 time',
    ],
    [
      'time passed',
      { expirationTime: '2026-11-21T06:00:00.499999999Z' },
      'invalid: ExpirationTime cannot be before CreateTime',
    ],
    [
      'time too near',
      { expirationTime: '2026-11-21T06:01:00.499999999Z' },
      'invalid: ExpirationTime cannot be less than 1m0s in the future (was 59.999999999s)',
    ],
    ['time just near enough', { expirationTime: '2026-11-21T06:01:00.5Z' }, 'accepted'],
    ['time as far as allowed', { expirationTime: '2026-11-22T06:00:00.5Z' }, 'accepted'],
    [
      'time too far',
      { expirationTime: '2026-11-22T06:00:00.501Z' },
      'invalid: ExpirationTime cannot be more than 24h0m0s in the future (was 24h0m0.001s)',
    ],
    [
      'time farther than a duration reaches',
      { expirationTime: '9999-01-01T00:00:00Z' },
      'invalid: ExpirationTime cannot be more than 24h0m0s in the future (was 2562047h47m16.854775807s)',
    ],
    [
      'ttl too short',
      { expirationTtlNs: 30n * SECOND_NS },
      'invalid: ExpirationTime cannot be less than 1m0s in the future (was 30s)',
    ],
    ['ttl just long enough', { expirationTtlNs: MINUTE_NS }, 'accepted'],
    ['ttl as long as allowed', { expirationTtlNs: 1440n * MINUTE_NS }, 'accepted'],
    [
      'ttl too long',
      { expirationTtlNs: 1500n * MINUTE_NS },
      'invalid: ExpirationTime cannot be more than 24h0m0s in the future (was 25h0m0s)',
    ],
    [
      'auth method',
      { authMethod: 'jwt' },
      'invalid: AuthMethod field is disallowed outside of login',
    ],
  ];
  for (const [title, draft, expected] of cases) {
    t.equal(
      refusalOf(() => create(draft)),
      expected,
      title,
    );
  }
});

t.test('create: the bounds of the life of a token are the given ones', async (t) => {
  const limits = { minTtlNs: SECOND_NS, maxTtlNs: MAX_DURATION_NS };
  const token = create({ expirationTtlNs: SECOND_NS + 1n }, { limits });
  t.equal(token.expirationTime, '2026-11-21T06:00:01.500000001Z');
  t.equal(
    create({ expirationTtlNs: MAX_DURATION_NS }, { limits }).expirationTime?.slice(0, 4),
    '2319',
  );
});

t.test('create: an expiration time is kept as UTC', async (t) => {
  t.equal(create({ expirationTtlNs: 60n * MINUTE_NS }).expirationTime, IN_AN_HOUR);
  t.equal(
    create({ expirationTime: '2026-11-21T08:00:00.50+01:00' }).expirationTime,
    '2026-11-21T07:00:00.50Z',
  );
});

t.test('create: the first refusal in the prescribed order is the answer', async (t) => {
  // Each step removes the cause of the refusal before it.
  const asked: string[] = [];
  const given = {
    resolveLinks: () => {
      asked.push('links');
      return { policies: [], roles: [] };
    },
  };
  const steps: readonly (readonly [TokenDraft, RegExp])[] = [
    [{ accessorId: 'x' }, /AccessorID - not a valid/],
    [{ accessorId: GIVEN_ID, secretId: 'x' }, /SecretID - not a valid/],
    [{ secretId: SECRET, expirationTtlNs: -1n }, /should be > 0/],
    [{ expirationTtlNs: 1n, authMethod: 'm' }, /cannot be less than/],
    [{ expirationTtlNs: MINUTE_NS, serviceIdentities: [{}] }, /disallowed outside of login/],
    [{ authMethod: '', nodeIdentities: [{}] }, /missing the service name/],
    [{ serviceIdentities: [], templatedPolicies: [{}] }, /missing the node name/],
    [{ nodeIdentities: [], local: true }, /missing the template name/],
    [{ templatedPolicies: [] }, /^accepted$/],
  ];
  let draft: TokenDraft = {
    authMethod: 'm',
    expirationTtlNs: -1n,
    secretId: 'x',
    nodeIdentities: [{}],
    templatedPolicies: [{}],
  };
  for (const [change, expected] of steps) {
    draft = { ...draft, ...change };
    t.match(
      refusalOf(() => create(draft, given)),
      expected,
    );
  }
  t.equal(asked.length, 4, 'links are resolved after the checks of ids, expiry and auth method');
});

const IDENTITY_REFUSALS: readonly (readonly [string, TokenDraft, string])[] = [
  [
    'service without name',
    { serviceIdentities: [{ datacenters: ['a'] }] },
    'Service identity is missing the service name field on this token',
  ],
  [
    'service with datacenters on a local token',
    { local: true, serviceIdentities: [{ serviceName: 'web', datacenters: ['a'] }] },
    'Service identity "web" cannot specify a list of datacenters on a local token',
  ],
  [
    'service name',
    { serviceIdentities: [{ serviceName: 'FOO' }] },
    `Service identity "FOO" has an invalid name. Only lowercase alphanumeric characters, '-' and '_' are allowed`,
  ],
  [
    'node without name',
    { nodeIdentities: [{ datacenter: 'dc1' }] },
    'Node identity is missing the node name field on this token',
  ],
  [
    'node without datacenter',
    { nodeIdentities: [{ nodeName: 'n' }] },
    'Node identity is missing the datacenter field on this token',
  ],
  [
    'node name',
    { nodeIdentities: [{ nodeName: 'FOO', datacenter: 'dc1' }] },
    "Node identity has an invalid name. Only lowercase alphanumeric characters, '-' and '_' are allowed",
  ],
  [
    'template without name',
    { templatedPolicies: [{ templateId: '00000000-0000-0000-0000-000000000003' }] },
    'templated policy is missing the template name field on this token',
  ],
  [
    'template unknown',
    { templatedPolicies: [{ templateName: 'builtin/x' }] },
    'no such ACL templated policy with Name "builtin/x"',
  ],
  [
    'template without its variable',
    { templatedPolicies: [{ templateName: 'builtin/service', variables: {} }] },
    'validation error for templated policy "builtin/service": service identity "" has an invalid name. ' +
      "Only lowercase alphanumeric characters, '-' and '_' are allowed",
  ],
  [
    'node template with a bad variable',
    { templatedPolicies: [{ templateName: 'builtin/node', variables: { name: 'A"' } }] },
    'validation error for templated policy "builtin/node": node identity "A""  has an invalid name. ' +
      "Only lowercase alphanumeric characters, '-' and '_' are allowed",
  ],
  [
    'gateway template without its variable',
    { templatedPolicies: [{ templateName: 'builtin/api-gateway', variables: {} }] },
    'validation error for templated policy "builtin/api-gateway": 1 error occurred:\n\t* name is required\n\n',
  ],
  [
    'gateway template with a name that no service can have',
    {
      templatedPolicies: [
        { templateName: 'builtin/api-gateway', variables: { name: 'a" {} key "' } },
      ],
    },
    'validation error for templated policy "builtin/api-gateway": ' +
      'api gateway "a" {} key "" has an invalid name. ' +
      "Only lowercase alphanumeric characters, '-' and '_' are allowed",
  ],
  [
    'template without variables',
    { templatedPolicies: [{ templateName: 'builtin/service' }] },
    'validation error for templated policy "builtin/service": ' +
      '1 error occurred:\n\t* Invalid type. Expected: object, given: null\n\n',
  ],
];

t.test('identities: refusals on create and on update', async (t) => {
  for (const [title, draft, expected] of IDENTITY_REFUSALS) {
    t.equal(
      refusalOf(() => create(draft)),
      `invalid: ${expected}`,
      `create: ${title}`,
    );
    const existing = storedToken({ local: draft.local ?? false });
    t.equal(
      refusalOf(() => applyTokenUpdate(existing, draft, givenForUpdate())),
      `invalid: ${expected}`,
      `update: ${title}`,
    );
  }
});

t.test('identities: very many lists of datacenters are united at once', async (t) => {
  // One by one it does not end.
  const datacenters = Array.from({ length: 200_000 }, (_, place) => [`dc${place}`]);
  const { serviceIdentities, templatedPolicies } = identityLists(
    {
      serviceIdentities: datacenters.map((each) => ({ serviceName: 'web', datacenters: each })),
      templatedPolicies: datacenters.map((each) => ({
        templateName: 'builtin/dns',
        datacenters: each,
      })),
    },
    'role',
  );
  t.equal(serviceIdentities[0]?.datacenters.length, 200_000);
  t.equal(templatedPolicies[0]?.datacenters.length, 200_000);
});

t.test('identities: one service is one identity, and no datacenters means all', async (t) => {
  const lists = identityLists(
    {
      serviceIdentities: [
        { serviceName: 'web', datacenters: ['dc3', 'dc1'] },
        { serviceName: 'db', datacenters: ['dc1'] },
        { serviceName: 'api' },
        { serviceName: 'web', datacenters: ['dc2', 'dc1'] },
        { serviceName: 'db', datacenters: [] },
        { serviceName: 'db', datacenters: ['dc2'] },
        { serviceName: 'api', datacenters: ['dc1'] },
      ],
      nodeIdentities: [
        { nodeName: 'n2', datacenter: 'dc1' },
        { nodeName: 'n1', datacenter: 'dc1' },
        { nodeName: 'n2', datacenter: 'dc1' },
        { nodeName: 'n2', datacenter: 'dc2' },
      ],
      templatedPolicies: [
        { templateName: 'builtin/service', variables: { name: 'web' }, datacenters: ['b', 'a'] },
        { templateName: 'builtin/service', variables: { name: 'api' } },
        { templateName: 'builtin/service', variables: { name: 'web' }, datacenters: ['c'] },
        { templateName: 'builtin/dns' },
        { templateName: 'builtin/dns', variables: {} },
        { templateName: 'builtin/node', variables: { name: 'web' } },
      ],
    },
    'role',
  );
  t.same(lists.serviceIdentities, [
    { serviceName: 'api', datacenters: [] },
    { serviceName: 'db', datacenters: [] },
    { serviceName: 'web', datacenters: ['dc1', 'dc2', 'dc3'] },
  ]);
  t.same(lists.nodeIdentities, [
    { nodeName: 'n2', datacenter: 'dc1' },
    { nodeName: 'n1', datacenter: 'dc1' },
    { nodeName: 'n2', datacenter: 'dc2' },
  ]);
  const templateId = '00000000-0000-0000-0000-000000000003';
  const templateName = 'builtin/service';
  t.same(lists.templatedPolicies, [
    { templateId, templateName, variables: { name: 'web' }, datacenters: ['a', 'b', 'c'] },
    { templateId, templateName, variables: { name: 'api' }, datacenters: [] },
    {
      templateId: '00000000-0000-0000-0000-000000000005',
      templateName: 'builtin/dns',
      variables: undefined,
      datacenters: [],
    },
    {
      templateId: '00000000-0000-0000-0000-000000000004',
      templateName: 'builtin/node',
      variables: { name: 'web' },
      datacenters: [],
    },
  ]);
});

t.test('identities: the order of service identities does not change the hash', async () => {
  const identity = fc.record({
    serviceName: fc.constantFrom('a', 'b', 'c', 'd'),
    datacenters: fc.array(fc.constantFrom('dc1', 'dc2', 'dc3'), { maxLength: 3 }),
  });
  const shuffled = fc
    .array(identity, { maxLength: 8 })
    .chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    );
  fc.assert(
    fc.property(shuffled, ([one, other]) => {
      return create({ serviceIdentities: one }).hash === create({ serviceIdentities: other }).hash;
    }),
    { numRuns: 100 },
  );
});

t.test('links: unknown ones are named', async (t) => {
  t.equal(unknownPolicyName('x').message, 'No such ACL policy with name "x"');
  t.equal(unknownPolicyId(P1).message, `No such ACL policy with ID "${P1}"`);
  t.equal(unknownRoleName('x').message, 'No such ACL role with name "x"');
  t.equal(unknownRoleId(R1).message, `No such ACL role with ID "${R1}"`);
  t.equal(
    authMethodGone('m').message,
    'Failed to apply token write request: No such auth method with Name: m',
  );
  t.equal(
    refusalOf(() =>
      create(
        { serviceIdentities: [{}] },
        {
          resolveLinks: () => {
            throw unknownRoleName('r');
          },
        },
      ),
    ),
    'invalid: No such ACL role with name "r"',
    'before identities',
  );
});
