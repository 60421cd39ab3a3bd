// Tokens that are there: changed, expired, cloned, deleted, built in.

import t from 'tap';
import {
  anonymousToken,
  bootstrapToken,
  builtinPolicies,
  defaultNamespace,
  initialManagementToken,
} from '../../../src/acl/built-in/built-ins.ts';
import type { TokenDraft } from '../../../src/acl/checks/drafts.ts';
import {
  applyTokenUpdate,
  cloneToken,
  requireDeletableToken,
} from '../../../src/acl/checks/token-checks.ts';
import { isExpired } from '../../../src/acl/checks/token-expiry.ts';
import { type AccessorId, DEFAULT_NAMESPACE, type SecretId } from '../../../src/acl/ids.ts';
import type { Token } from '../../../src/acl/token.ts';
import { MINUTE_NS } from '../../../src/acl/values/duration.ts';
import { type Instant, instantOfMs } from '../../../src/acl/values/instant.ts';
import { TTL_LIMITS } from '../../support/state-and-service/fixtures.ts';
import { refusalOf } from '../refusal-of.ts';
import {
  ACCESSOR,
  GIVEN_ID,
  givenForUpdate,
  IN_AN_HOUR,
  NOW,
  P1,
  R1,
  SECRET,
  storedToken,
  TEAM,
  USED_ID,
} from './cases.ts';

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
    [
      'datacenters',
      plain,
      { serviceIdentities: [{ serviceName: 'web', datacenters: ['dc1'] }] },
      'accepted',
    ],
    [
      'datacenters of a local one',
      local,
      { local: true, serviceIdentities: [{ serviceName: 'web', datacenters: ['dc1'] }] },
      'invalid: Service identity "web" cannot specify a list of datacenters on a local token',
    ],
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
    limits: TTL_LIMITS,
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
    [
      GIVEN_ID.toLowerCase(),
      GIVEN_ID,
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
