// Tests of tokens: what a create, an update and a clone may ask for, when a token is void, what its
// identities expand to, and the tokens that the service makes itself.

import { createRequire } from 'node:module';
import fc from 'fast-check';
import t from 'tap';
import {
  anonymousToken,
  bootstrapToken,
  builtinPolicies,
  defaultNamespace,
  initialManagementToken,
} from '../../src/acl/built-ins.ts';
import type { TokenDraft } from '../../src/acl/drafts.ts';
import { MAX_DURATION_NS, MINUTE_NS, SECOND_NS } from '../../src/acl/duration.ts';
import { identityLists } from '../../src/acl/identity-checks.ts';
import {
  type AccessorId,
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
  type SecretId,
} from '../../src/acl/ids.ts';
import { type Instant, instantOfMs } from '../../src/acl/instant.ts';
import {
  authMethodGone,
  unknownPolicyId,
  unknownPolicyName,
  unknownRoleId,
  unknownRoleName,
} from '../../src/acl/refusals.ts';
import {
  policyOfNodeIdentity,
  policyOfServiceIdentity,
  policyOfTemplatedPolicy,
  previewTemplate,
} from '../../src/acl/synthetic-policy.ts';
import { renderTemplate, TEMPLATES, templateNamed } from '../../src/acl/templates.ts';
import type { Token } from '../../src/acl/token.ts';
import {
  applyTokenUpdate,
  buildNewToken,
  cloneToken,
  type NewTokenGiven,
  requireDeletableToken,
  type TokenUpdateGiven,
} from '../../src/acl/token-checks.ts';
import { DEFAULT_TTL_LIMITS, isExpired } from '../../src/acl/token-expiry.ts';
import { refusalOf } from './refusal-of.ts';

const NOW = Date.parse('2026-11-21T06:00:00.500Z');
const ACCESSOR = '11111111-1111-1111-1111-111111111111' as AccessorId;
const SECRET = '22222222-2222-2222-2222-222222222222' as SecretId;
const GIVEN_ID = '33333333-3333-3333-3333-33333333333A';
const USED_ID = '44444444-4444-4444-4444-444444444444';
const RESERVED_ID = '00000000-0000-0000-0000-000000000009';
const P1 = '55555555-5555-5555-5555-555555555555' as PolicyId;
const P2 = '66666666-6666-6666-6666-666666666666' as PolicyId;
const R1 = '77777777-7777-7777-7777-777777777777' as RoleId;
const TEAM = 'team' as NamespaceName;
const IN_AN_HOUR = '2026-11-21T07:00:00.500Z';

function givenForCreate(changes: Partial<NewTokenGiven> = {}): NewTokenGiven {
  return {
    nowMs: NOW,
    freshAccessorId: ACCESSOR,
    freshSecretId: SECRET,
    namespace: DEFAULT_NAMESPACE,
    limits: DEFAULT_TTL_LIMITS,
    localTokensEnabled: true,
    idInUse: (id) => id === USED_ID,
    resolveLinks: () => ({ policies: [], roles: [] }),
    ...changes,
  };
}

function givenForUpdate(changes: Partial<TokenUpdateGiven> = {}): TokenUpdateGiven {
  return {
    pathId: ACCESSOR,
    nowMs: NOW,
    localTokensEnabled: true,
    resolveLinks: () => ({ policies: [], roles: [] }),
    ...changes,
  };
}

function storedToken(changes: Partial<Token> = {}): Token {
  const token = buildNewToken({ description: 'stored' }, givenForCreate());
  return { ...token, createIndex: 7, modifyIndex: 9, ...changes };
}

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
  t.equal(
    refusalOf(() => create({ local: true }, { localTokensEnabled: false })),
    'invalid: Local tokens are disabled',
  );
  t.equal(
    refusalOf(() => create({}, { localTokensEnabled: false })),
    'accepted',
  );
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
    localTokensEnabled: false,
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
    [{ templatedPolicies: [] }, /Local tokens are disabled/],
    [{ local: false }, /^accepted$/],
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
  t.equal(asked.length, 5, 'links are resolved after the checks of ids, expiry and auth method');
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

t.test('update: links and description are replaced, the rest stays', async (t) => {
  const existing = storedToken({
    namespace: TEAM,
    local: true,
    authMethod: { name: 'm', namespace: DEFAULT_NAMESPACE, createIndex: 3 },
    expirationTime: '2026-11-21T07:00:00.5Z' as Instant,
    nodeIdentities: [{ nodeName: 'n', datacenter: 'dc1' }],
  });
  const given = givenForUpdate({ resolveLinks: () => ({ policies: [P1, P1], roles: [] }) });
  const updated = applyTokenUpdate(existing, { local: true }, given);
  const { createIndex: _created, modifyIndex: _modified, ...unstamped } = existing;
  t.same(updated, {
    ...unstamped,
    description: '',
    policies: [P1],
    nodeIdentities: [],
    hash: updated.hash,
  });
  t.not(updated.hash, existing.hash);
});

t.test('update: refusals and what is no change', async (t) => {
  const expiring = storedToken({ expirationTime: '2026-11-21T07:00:00.5Z' as Instant });
  const ofMethod = storedToken({
    authMethod: { name: 'm', namespace: DEFAULT_NAMESPACE, createIndex: 3 },
  });
  const local = storedToken({ local: true });
  const plain = storedToken();
  const cases: readonly (readonly [string, Token | undefined, TokenDraft, string])[] = [
    ['nothing', plain, {}, 'accepted'],
    ['empty accessor', plain, { accessorId: '' }, 'accepted'],
    ['same accessor', plain, { accessorId: ACCESSOR }, 'accepted'],
    [
      'other accessor',
      plain,
      { accessorId: USED_ID },
      'id-mismatch: Token Accessor ID in URL and payload do not match',
    ],
    ['missing', undefined, {}, `update-target-missing: Cannot find token "${ACCESSOR}"`],
    [
      'expired',
      storedToken({ expirationTime: instantOfMs(NOW - 1) }),
      {},
      `update-target-missing: Cannot find token "${ACCESSOR}"`,
    ],
    ['same secret', plain, { secretId: SECRET }, 'accepted'],
    [
      'other secret',
      plain,
      { secretId: USED_ID },
      "invalid: Changing a token's SecretID is not permitted",
    ],
    [
      'root secret',
      plain,
      { secretId: 'manage' },
      'permission-denied: Permission denied: Cannot modify root ACL',
    ],
    ['local missing', local, {}, `invalid: Cannot toggle local mode of ${ACCESSOR}`],
    ['local false', local, { local: false }, `invalid: Cannot toggle local mode of ${ACCESSOR}`],
    ['local same', local, { local: true }, 'accepted'],
    ['local true', plain, { local: true }, `invalid: Cannot toggle local mode of ${ACCESSOR}`],
    ['method same', ofMethod, { authMethod: 'm' }, 'accepted'],
    ['method absent', ofMethod, { authMethod: '' }, 'accepted'],
    [
      'method other',
      ofMethod,
      { authMethod: 'n' },
      `invalid: Cannot change AuthMethod of ${ACCESSOR}`,
    ],
    ['method new', plain, { authMethod: 'm' }, `invalid: Cannot change AuthMethod of ${ACCESSOR}`],
    [
      'ttl',
      plain,
      { expirationTtlNs: MINUTE_NS },
      `invalid: Cannot change expiration time of ${ACCESSOR}`,
    ],
    [
      'ttl negative',
      plain,
      { expirationTtlNs: -1n },
      `invalid: Cannot change expiration time of ${ACCESSOR}`,
    ],
    ['ttl zero', expiring, { expirationTtlNs: 0n }, 'accepted'],
    ['time same', expiring, { expirationTime: '2026-11-21T08:00:00.500+01:00' }, 'accepted'],
    ['time zero', expiring, { expirationTime: '0001-01-01T00:00:00Z' }, 'accepted'],
    [
      'time other',
      expiring,
      { expirationTime: '2026-11-21T07:00:00.500000001Z' },
      `invalid: Cannot change expiration time of ${ACCESSOR}`,
    ],
    [
      'time new',
      plain,
      { expirationTime: IN_AN_HOUR },
      `invalid: Cannot change expiration time of ${ACCESSOR}`,
    ],
  ];
  for (const [title, existing, draft, expected] of cases) {
    t.equal(
      refusalOf(() => applyTokenUpdate(existing, draft, givenForUpdate())),
      expected,
      title,
    );
  }
  t.equal(
    refusalOf(() => applyTokenUpdate(undefined, {}, givenForUpdate({ pathId: 'x' }))),
    'invalid: AccessorID is not a valid UUID',
  );
});

t.test('expiry: a token is void from the moment after its expiration time', async (t) => {
  const at = (text: string) => ({ expirationTime: text as Instant });
  t.equal(isExpired({ expirationTime: undefined }, NOW), false);
  t.equal(isExpired(at('2026-11-21T06:00:00.5Z'), NOW), false, 'at the very moment');
  t.equal(isExpired(at('2026-11-21T06:00:00.499999999Z'), NOW), true);
  t.equal(isExpired(at('2026-11-21T06:00:00.500000001Z'), NOW), false);
});

t.test('clone: rights and expiry are copied, ids and times are new', async (t) => {
  const source = storedToken({
    namespace: TEAM,
    local: true,
    policies: [P1],
    roles: [R1],
    serviceIdentities: [{ serviceName: 'web', datacenters: [] }],
    expirationTime: IN_AN_HOUR as Instant,
  });
  const fresh = {
    nowMs: NOW + 1000,
    freshAccessorId: GIVEN_ID as AccessorId,
    freshSecretId: USED_ID as SecretId,
    limits: DEFAULT_TTL_LIMITS,
  };
  const { createIndex: _created, modifyIndex: _modified, ...unstamped } = source;
  const clone = cloneToken(source, 'copy', fresh);
  t.same(clone, {
    ...unstamped,
    accessorId: GIVEN_ID,
    secretId: USED_ID,
    description: 'copy',
    createTime: '2026-11-21T06:00:01.500Z',
    hash: clone.hash,
  });
  t.not(clone.hash, source.hash);
  for (const empty of ['', undefined]) {
    t.equal(cloneToken(source, empty, fresh).description, 'stored');
  }

  const ofMethod = { name: 'm', namespace: DEFAULT_NAMESPACE, createIndex: 3 };
  const cases: readonly (readonly [string, Token | undefined, number, string])[] = [
    ['missing', undefined, NOW, 'token-not-found: token does not exist: ACL not found'],
    [
      'expired',
      source,
      Date.parse(IN_AN_HOUR) + 1,
      'token-not-found: token is expired: ACL not found',
    ],
    [
      'of an auth method',
      storedToken({ authMethod: ofMethod }),
      NOW,
      'invalid: Cannot clone a token created from an auth method',
    ],
    [
      'in its last minute',
      source,
      Date.parse(IN_AN_HOUR) - 59_000,
      'invalid: ExpirationTime cannot be less than 1m0s in the future (was 59s)',
    ],
  ];
  for (const [title, token, nowMs, expected] of cases) {
    t.equal(
      refusalOf(() => cloneToken(token, 'd', { ...fresh, nowMs })),
      expected,
      title,
    );
  }
});

t.test('delete: some tokens stay whatever the caller may do', async (t) => {
  const cases: readonly (readonly [string, string, string])[] = [
    [ACCESSOR, USED_ID, 'accepted'],
    ['x', USED_ID, 'invalid: Accessor ID is missing or an invalid UUID'],
    [
      '00000000-0000-0000-0000-000000000002',
      USED_ID,
      'invalid: Delete operation not permitted on the anonymous token',
    ],
    [
      GIVEN_ID,
      GIVEN_ID.toLowerCase(),
      "invalid: Deletion of the request's authorization token is not permitted",
    ],
  ];
  for (const [accessorId, callerAccessorId, expected] of cases) {
    t.equal(
      refusalOf(() => requireDeletableToken({ accessorId, callerAccessorId })),
      expected,
    );
  }
});

t.test('built-ins: ids, texts and links are fixed', async (t) => {
  const given = { accessorId: ACCESSOR, secretId: SECRET, nowMs: NOW };
  t.match(anonymousToken(NOW), {
    accessorId: '00000000-0000-0000-0000-000000000002',
    secretId: 'anonymous',
    description: 'Anonymous Token',
    policies: [],
    local: false,
  });
  t.match(bootstrapToken(given), {
    ...{ accessorId: ACCESSOR, secretId: SECRET, createTime: instantOfMs(NOW) },
    description: 'Bootstrap Token (Global Management)',
    policies: ['00000000-0000-0000-0000-000000000001'],
    hash: 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=',
  });
  t.equal(initialManagementToken(given).description, 'Initial Management Token');
  t.same(initialManagementToken(given).policies, bootstrapToken(given).policies);
  t.match(builtinPolicies({ globalManagement: 'all', globalReadOnly: 'some' }), [
    {
      id: '00000000-0000-0000-0000-000000000001',
      name: 'global-management',
      description: 'A built-in policy that grants read and write access to all Consul features',
      rules: 'all',
    },
    {
      id: '00000000-0000-0000-0000-000000000002',
      name: 'builtin/global-read-only',
      description: 'A built-in policy that grants read-only access to all Consul features',
      rules: 'some',
    },
  ]);
  t.equal(defaultNamespace().name, 'default');
});

t.test('templates: the catalogue holds what clients know', async (t) => {
  t.same(
    TEMPLATES.map(({ templateName, templateId, schema }) => [
      templateName,
      templateId.slice(-4),
      schema === '' ? '' : Object.keys(JSON.parse(schema).properties).join(),
    ]),
    [
      ['builtin/api-gateway', '0008', 'name'],
      ['builtin/dns', '0005', ''],
      ['builtin/node', '0004', 'name'],
      ['builtin/nomad-client', '0009', ''],
      ['builtin/nomad-server', '0006', ''],
      ['builtin/service', '0003', 'name'],
    ],
  );
  t.equal(
    templateNamed('builtin/node')?.template,
    'node "{{.Name}}" {\n  policy = "write"\n}\nservice_prefix "" {\n  policy = "read"\n}\n',
  );
  t.equal(templateNamed('BUILTIN/node'), undefined);
});

/** The reference parser of the rule language's notation: text in, JSON text out. */
const hcl = createRequire(import.meta.url)('js-hcl-parser') as {
  readonly parse: (text: string) => string;
};

t.test('templates: each becomes the rules that it promises', async (t) => {
  const write = [{ policy: 'write' }];
  const read = [{ policy: 'read' }];
  const everything = (level: unknown) => [{ '': level }];
  const cases: Readonly<Record<string, object>> = {
    'builtin/service': {
      service: [{ w: write }, { 'w-sidecar-proxy': write }],
      service_prefix: everything(read),
      node_prefix: everything(read),
    },
    'builtin/node': { node: [{ w: write }], service_prefix: everything(read) },
    'builtin/dns': {
      node_prefix: everything(read),
      service_prefix: everything(read),
      query_prefix: everything(read),
    },
    'builtin/nomad-server': {
      acl: 'write',
      agent_prefix: everything(read),
      node_prefix: everything(read),
      service_prefix: everything(write),
    },
    'builtin/api-gateway': {
      mesh: 'read',
      node_prefix: everything(read),
      service_prefix: everything(read),
      service: [{ w: write }],
    },
    'builtin/nomad-client': {
      agent_prefix: everything(read),
      node_prefix: everything(read),
      key_prefix: everything(read),
      service_prefix: everything(write),
    },
  };
  for (const { templateName } of TEMPLATES) {
    t.same(
      JSON.parse(hcl.parse(renderTemplate(templateName, 'w'))),
      cases[templateName],
      templateName,
    );
  }
});

t.test('templates: no value can leave its quotes', async () => {
  const nasty = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
    fc
      .array(fc.constantFrom(`\${`, '}', '"', '\\', '\n', 'x', ' { policy = "write" }'), {
        minLength: 1,
        maxLength: 8,
      })
      .map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(nasty, (name) => {
      const rules = JSON.parse(hcl.parse(renderTemplate('builtin/api-gateway', name)));
      return (
        Object.keys(rules).join() === 'mesh,node_prefix,service,service_prefix' &&
        JSON.stringify(rules.service) === JSON.stringify([{ [name]: [{ policy: 'write' }] }])
      );
    }),
    { numRuns: 100 },
  );
});

t.test('synthetic policies: made from identities, with ids that say their rules', async (t) => {
  const policy = policyOfServiceIdentity({ serviceName: 'web', datacenters: ['dc1'] }, TEAM);
  const hex = Buffer.from(policy.rules).toString('hex');
  t.match(policy, {
    id: `${hex}6c62272e07bb014262b821756295c58d`,
    name: `synthetic-policy-${policy.id}`,
    description: 'synthetic policy generated from templated policy: builtin/service',
    namespace: 'team',
    datacenters: ['dc1'],
    createIndex: 0,
    modifyIndex: 0,
  });
  t.match(policy.hash, /^[A-Za-z0-9+/]{43}=$/);
  t.match(policyOfNodeIdentity({ nodeName: 'n', datacenter: 'dc2' }, TEAM), {
    description: 'synthetic policy generated from templated policy: builtin/node',
    rules: /^node "n" \{/,
    datacenters: ['dc2'],
  });
  const { templatedPolicies } = identityLists(
    { templatedPolicies: [{ templateName: 'builtin/service', variables: { name: 'web' } }] },
    'role',
  );
  const templated = policyOfTemplatedPolicy(templatedPolicies[0]!, TEAM);
  t.equal(templated?.id, policy.id, 'a service identity is that template');
  t.equal(
    policyOfTemplatedPolicy({ ...templatedPolicies[0]!, templateName: 'builtin/gone' }, TEAM),
    undefined,
  );
});

t.test('preview: the policy that a template would become, or why not', async (t) => {
  t.equal(
    previewTemplate('builtin/dns', {}, DEFAULT_NAMESPACE).rules,
    renderTemplate('builtin/dns', ''),
  );
  t.equal(
    refusalOf(() => previewTemplate('x', {}, DEFAULT_NAMESPACE)),
    'malformed: templated policy "x" does not exist',
  );
  t.match(
    refusalOf(() => previewTemplate('builtin/node', { name: 'N' }, DEFAULT_NAMESPACE)),
    'malformed: validation error for templated policy: "builtin/node": node identity "N"  has an invalid name.',
  );
});
