// Tests of the values that the domain is made of: ids, durations, moments, names, content hashes.

import fc from 'fast-check';
import t from 'tap';
import { uniqueIds } from '../../src/acl/checks/links.ts';
import { AclError } from '../../src/acl/error.ts';
import { policyHash, roleHash, tokenHash } from '../../src/acl/hash.ts';
import {
  GLOBAL_MANAGEMENT_ID,
  isReservedId,
  isUuid,
  lookupBytes,
  type PolicyId,
  type RoleId,
  requireBootstrapSecret,
  requireConfiguredSecret,
  requireLookupUuid,
  uuidOfBytes,
} from '../../src/acl/ids.ts';
import {
  durationNsOf,
  formatDuration,
  MAX_DURATION_NS,
  parseDuration,
} from '../../src/acl/values/duration.ts';
import {
  compareInstants,
  type Instant,
  instantMs,
  instantNs,
  instantOfMs,
  instantOfNs,
  isZeroMoment,
  parseInstant,
  ZERO_INSTANT,
} from '../../src/acl/values/instant.ts';
import {
  isIdentityName,
  nameKey,
  requireAuthMethodName,
  requireNamespaceName,
  requirePolicyName,
  requireRoleName,
} from '../../src/acl/values/names.ts';
import { excerpt } from '../../src/rules/source-text.ts';
import { refusalOf } from './refusal-of.ts';

const UUID = '0b1c2d3e-4f50-6172-8394-a5b6c7d8e9fA';

t.test('ids', async (t) => {
  t.test('a UUID for a write has its hyphens in place and hex digits of either case', async (t) => {
    const cases: readonly (readonly [string, boolean])[] = [
      [UUID, true],
      [UUID.toUpperCase(), true],
      ['', false],
      [UUID.slice(1), false],
      [`${UUID}0`, false],
      [UUID.replace('b', 'g'), false],
      [UUID.replaceAll('-', '0'), false],
      ['0b1c2d3-e4f50-6172-8394-a5b6c7d8e9fa', false],
      [` ${UUID.slice(1)}`, false],
      [UUID.replace('0', '\u0130'), false],
    ];
    for (const [text, expected] of cases) t.equal(isUuid(text), expected, JSON.stringify(text));
  });

  t.test(
    'a UUID for a lookup may have its hyphens anywhere, and some texts find nothing',
    async (t) => {
      const refused = 'invalid: failed acl token lookup: index error: UUID must be 36 characters';
      const cases: readonly (readonly [string, string, boolean])[] = [
        [UUID, 'accepted', true],
        ['0b1c2d3-e4f50-6172-8394-a5b6c7d8e9fa', 'accepted', true],
        ['----0b1c2d3e4f5061728394a5b6c7d8e9fa', 'accepted', true],
        ['0'.repeat(36), 'accepted', false],
        [`--${'0'.repeat(34)}`, 'accepted', false],
        [`-${'0'.repeat(35)}`, refused, false],
        [`------${'0'.repeat(30)}`, refused, false],
        [`${UUID}0`, refused, false],
        ['xyz', refused, false],
        ['', refused, false],
        [UUID.replace('b', 'g'), refused, false],
      ];
      for (const [text, expected, findable] of cases) {
        t.equal(
          refusalOf(() => requireLookupUuid('token', text)),
          expected,
          text,
        );
        t.equal(lookupBytes(text) !== undefined, findable, text);
      }
      t.match(
        refusalOf(() => requireLookupUuid('binding rule', 'x')),
        'failed acl binding rule lookup: index error: UUID must be 36 characters',
      );
    },
  );

  t.test('bytes and text of a UUID are each other, whatever the letter case', async () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const text = uuidOfBytes(bytes);
        return (
          isUuid(text) &&
          Buffer.compare(lookupBytes(text)!, bytes) === 0 &&
          Buffer.compare(lookupBytes(text.toUpperCase())!, bytes) === 0
        );
      }),
      { numRuns: 200 },
    );
  });

  t.test('bytes of another length are a fault of the program', async (t) => {
    t.throws(() => uuidOfBytes(new Uint8Array(15)));
  });

  t.test('ids of the service are reserved', async (t) => {
    t.equal(isReservedId(GLOBAL_MANAGEMENT_ID), true);
    t.equal(isReservedId('00000000-0000-0000-0000-0000000000ff'), true);
    t.equal(isReservedId('00000000-0000-0000-0000-000000000100'), false);
  });

  t.test('a bootstrap secret is a UUID that is not reserved', async (t) => {
    const cases: readonly (readonly [string, string])[] = [
      [UUID, 'accepted'],
      ['short', 'invalid: uuid string is wrong length'],
      ['x'.repeat(36), 'invalid: uuid is improperly formatted'],
      [
        GLOBAL_MANAGEMENT_ID,
        'invalid: Invalid Token: SecretID - UUIDs with the prefix "00000000-0000-0000-0000-0000000000" are reserved',
      ],
    ];
    for (const [text, expected] of cases) {
      t.equal(
        refusalOf(() => requireBootstrapSecret(text)),
        expected,
      );
    }
  });

  t.test('a configured secret is any text but the words of the system', async (t) => {
    t.equal(requireConfiguredSecret('root'), 'root');
    t.equal(requireConfiguredSecret('a pass phrase'), 'a pass phrase', 'a header carries it');
    for (const word of ['', ' a', 'a ', 'a\tb', 'ü', 'anonymous', 'allow', 'deny', 'manage']) {
      t.match(
        refusalOf(() => requireConfiguredSecret(word)),
        /^invalid: /,
        word,
      );
    }
  });
});

t.test('durations', async (t) => {
  t.test('are read as deployed clients write them and shown in one form', async (t) => {
    const cases: readonly (readonly [string | number, string | undefined])[] = [
      ['30m80s', '31m20s'],
      ['60s', '1m0s'],
      ['120s', '2m0s'],
      ['90s', '1m30s'],
      ['1h', '1h0m0s'],
      ['24h', '24h0m0s'],
      ['1h30m', '1h30m0s'],
      ['1.5h', '1h30m0s'],
      ['.5h', '30m0s'],
      ['5.s', '5s'],
      ['-1.5s', '-1.5s'],
      ['+5m', '5m0s'],
      ['0', '0s'],
      ['-0', '0s'],
      ['0h', '0s'],
      ['1ns', '1ns'],
      ['1500ns', '1.5\u00b5s'],
      ['1us', '1\u00b5s'],
      ['1\u00b5s', '1\u00b5s'],
      ['1\u03bcs', '1\u00b5s'],
      ['1100us', '1.1ms'],
      ['2m500ms', '2m0.5s'],
      ['1s1h1s', '1h0m2s'],
      ['0.3333333333333333333h', '19m59.999999999s'],
      ['9223372036854775807ns', '2562047h47m16.854775807s'],
      ['-9223372036854775808ns', '-2562047h47m16.854775808s'],
      ['9223372036854775808ns', undefined],
      ['2562048h', undefined],
      ['99999999999999999999s', undefined],
      ['60', undefined],
      ['1d', undefined],
      [' 1s', undefined],
      ['1s ', undefined],
      ['1 s', undefined],
      ['1S', undefined],
      ['', undefined],
      ['-', undefined],
      ['.s', undefined],
      ['s', undefined],
      ['1.2.3s', undefined],
      ['1h-5m', undefined],
      ['--1s', undefined],
      ['00', undefined],
      [300_000_000_000, '5m0s'],
      [1.9, '1ns'],
      [1e30, undefined],
      [Number.NaN, undefined],
    ];
    for (const [given, expected] of cases) {
      const ns = durationNsOf(given);
      t.equal(ns === undefined ? undefined : formatDuration(ns), expected, String(given));
    }
  });

  t.test('text and value are each other in all of 64 bits', async () => {
    const values = fc.oneof(
      fc.bigInt({ min: -MAX_DURATION_NS - 1n, max: MAX_DURATION_NS }),
      fc.bigInt({ min: -5_000_000_000n, max: 5_000_000_000n }),
      fc.bigInt({ min: 0n, max: 200_000n }).map((seconds) => seconds * 1_000_000_000n),
    );
    fc.assert(
      fc.property(values, (ns) => parseDuration(formatDuration(ns)) === ns),
      { numRuns: 500 },
    );
  });

  t.test('a sum of whole terms is their sum, and its canonical text stays as it is', async () => {
    const units = [
      ['h', 3_600_000_000_000n],
      ['m', 60_000_000_000n],
      ['s', 1_000_000_000n],
      ['ms', 1_000_000n],
      ['us', 1_000n],
      ['ns', 1n],
    ] as const;
    const term = fc.tuple(fc.bigInt({ min: 0n, max: 100_000n }), fc.constantFrom(...units));
    fc.assert(
      fc.property(fc.array(term, { minLength: 1, maxLength: 8 }), (terms) => {
        const text = terms.map(([count, [unit]]) => `${count}${unit}`).join('');
        const sum = terms.reduce((total, [count, [, unitNs]]) => total + count * unitNs, 0n);
        const canonical = formatDuration(sum);
        return (
          parseDuration(text) === sum && formatDuration(parseDuration(canonical)!) === canonical
        );
      }),
      { numRuns: 200 },
    );
  });

  t.test('so long a text may be, and no longer', async (t) => {
    t.equal(parseDuration('0s'.repeat(128)), 0n);
    t.equal(parseDuration(`.${'1'.repeat(254)}s`), 111_111_111n);
    t.equal(parseDuration('0s'.repeat(129)), undefined);
    t.equal(parseDuration(`.${'1'.repeat(255)}s`), undefined);
  });

  t.test('a long text costs no more than reading it once', async (t) => {
    const size = 4_000_000;
    const cases: readonly (readonly [string, bigint | undefined])[] = [
      ['1'.repeat(size), undefined],
      [`${'1'.repeat(size)}s`, undefined],
      [`.${'1'.repeat(size)}s`, undefined],
      [`${'0'.repeat(size)}1s`, undefined],
      ['0s'.repeat(size / 40), undefined],
      ['1.'.repeat(size / 2), undefined],
      [`1${'s'.repeat(size)}`, undefined],
    ];
    const begin = process.cpuUsage();
    for (const [text, expected] of cases) {
      t.equal(parseDuration(text), expected, `${text.slice(0, 4)}…`);
    }
    const parsing = process.cpuUsage(begin).user;
    const before = process.cpuUsage();
    BigInt('1'.repeat(size));
    const oneNumber = process.cpuUsage(before).user;
    // All of it takes a tenth of that, and backtracking takes hours.
    t.ok(parsing < oneNumber, 'no text is turned into a number of so many digits');
  });
});

t.test('moments', async (t) => {
  t.test('are read from RFC 3339 text and kept in UTC with their digits', async (t) => {
    const cases: readonly (readonly [string, string | undefined])[] = [
      ['2026-11-21T06:17:45Z', '2026-11-21T06:17:45Z'],
      ['2026-11-21T06:17:45.120Z', '2026-11-21T06:17:45.120Z'],
      ['2026-11-21T06:17:45.123456789Z', '2026-11-21T06:17:45.123456789Z'],
      ['2026-11-21t06:17:45z', '2026-11-21T06:17:45Z'],
      ['2026-11-21T01:30:00.5+02:00', '2026-11-20T23:30:00.5Z'],
      ['2026-12-31T20:00:00-05:30', '2027-01-01T01:30:00Z'],
      ['2026-11-21T06:17:45-00:00', '2026-11-21T06:17:45Z'],
      ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00Z'],
      ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
      ['0099-06-01T00:00:00Z', '0099-06-01T00:00:00Z'],
      ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999999999Z'],
      ['9999-12-31T23:59:59-01:00', undefined],
      ['0000-01-01T00:00:00+01:00', undefined],
      ['2026-02-29T00:00:00Z', undefined],
      ['2026-02-30T00:00:00Z', undefined],
      ['2026-13-01T00:00:00Z', undefined],
      ['2026-11-21T24:00:00Z', undefined],
      ['2026-11-21T06:60:00Z', undefined],
      ['2016-12-31T23:59:60Z', undefined],
      ['2026-11-21T06:17:45+24:00', undefined],
      ['2026-11-21T06:17:45+01:60', undefined],
      ['2026-11-21T06:17:45', undefined],
      ['2026-11-21 06:17:45Z', undefined],
      ['2026-11-21T06:17:45.Z', undefined],
      ['2026-11-21T06:17:45,5Z', undefined],
      ['2026-11-21T06:17:45.1234567890Z', undefined],
      ['2026-11-21T6:17:45Z', undefined],
      ['2026-11-21T06:17Z', undefined],
      ['2026-11-21T06:17:45Z\n', undefined],
      ['+002026-11-21T06:17:45Z', undefined],
      ['', undefined],
    ];
    for (const [text, expected] of cases) {
      t.equal(parseInstant(text)?.instant, expected, JSON.stringify(text));
    }
  });

  t.test('one moment is one value at every offset', async () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -62_000_000_000_000, max: 250_000_000_000_000 }),
        fc.integer({ min: -1439, max: 1439 }),
        fc.integer({ min: 0, max: 999_999 }),
        (ms, offsetMinutes, restNs) => {
          const size = Math.abs(offsetMinutes);
          const offset = `${offsetMinutes < 0 ? '-' : '+'}${twoDigits(Math.floor(size / 60))}:${twoDigits(size % 60)}`;
          const rest = String(restNs).padStart(6, '0');
          const local = new Date(ms + offsetMinutes * 60_000).toISOString().slice(0, -1);
          const moment = parseInstant(`${local}${rest}${offset}`)!;
          const same = parseInstant(`${instantOfMs(ms).slice(0, -1)}${rest}Z`)!;
          return (
            moment.ns === BigInt(ms) * 1_000_000n + BigInt(restNs) &&
            moment.ms === ms &&
            instantMs(moment.instant) === ms &&
            moment.instant === same.instant &&
            compareInstants(moment.instant, instantOfNs(moment.ns)) === 0 &&
            instantNs(instantOfNs(moment.ns)) === moment.ns
          );
        },
      ),
      { numRuns: 300 },
    );
  });

  t.test('are compared by what they mean', async (t) => {
    const instant = (text: string): Instant => parseInstant(text)!.instant;
    const early = instant('2026-01-01T00:00:00.1Z');
    t.equal(compareInstants(early, instant('2026-01-01T00:00:00.100000000Z')), 0);
    t.equal(compareInstants(early, instant('2026-01-01T00:00:00.100000001Z')), -1);
    t.equal(compareInstants(instant('2026-01-01T00:00:01Z'), early), 1);
  });

  t.test('are rounded down to milliseconds, before 1970 too', async (t) => {
    const moment = parseInstant('1969-12-31T23:59:59.999999999Z')!;
    t.equal(moment.ms, -1);
    t.equal(moment.ns, -1n);
    t.equal(instantMs(moment.instant), -1);
    t.equal(instantOfNs(-1n), '1969-12-31T23:59:59.999999999Z');
  });

  t.test('the zero time is known in every way of writing it', async (t) => {
    for (const text of [ZERO_INSTANT, '0001-01-01T00:00:00.000Z', '0001-01-01T01:00:00+01:00']) {
      t.equal(isZeroMoment(parseInstant(text)!), true, text);
    }
    t.equal(isZeroMoment(parseInstant('0001-01-01T00:00:00.000000001Z')!), false);
  });
});

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

t.test('names', async (t) => {
  const policyId = UUID as PolicyId;
  const readOnlyId = '00000000-0000-0000-0000-000000000002';
  const cases: readonly (readonly [string, () => unknown, string])[] = [
    ['policy: usual', () => requirePolicyName('read-all_nodes-012', policyId), 'accepted'],
    ['policy: 128', () => requirePolicyName('x'.repeat(128), policyId), 'accepted'],
    [
      'policy: none',
      () => requirePolicyName('', policyId),
      'invalid: Invalid Policy: no Name is set',
    ],
    [
      'policy: 129',
      () => requirePolicyName('x'.repeat(129), policyId),
      'invalid: Invalid Policy: invalid Name. Length must be greater than 0 and less than 128',
    ],
    [
      'policy: slash first',
      () => requirePolicyName('/x', policyId),
      "invalid: Invalid Policy: invalid Name. Names cannot be prefixed with '/' or 'builtin/'",
    ],
    [
      'policy: builtin',
      () => requirePolicyName('builtin/global-read-only', policyId),
      "invalid: Invalid Policy: invalid Name. Names cannot be prefixed with '/' or 'builtin/'",
    ],
    [
      'policy: the built-in under its own name',
      () => requirePolicyName('builtin/global-read-only', readOnlyId),
      'accepted',
    ],
    [
      'policy: the built-in under another name like it',
      () => requirePolicyName('builtin/other', readOnlyId),
      "invalid: Invalid Policy: invalid Name. Names cannot be prefixed with '/' or 'builtin/'",
    ],
    [
      'policy: slash',
      () => requirePolicyName('a/b', policyId),
      "invalid: Invalid Policy: invalid Name. Only alphanumeric characters, '-' and '_' are allowed",
    ],
    [
      'policy: line break at the end',
      () => requirePolicyName('a\n', policyId),
      "invalid: Invalid Policy: invalid Name. Only alphanumeric characters, '-' and '_' are allowed",
    ],
    ['role: 256', () => requireRoleName('x'.repeat(256)), 'accepted'],
    ['role: none', () => requireRoleName(''), 'invalid: Invalid Role: no Name is set'],
    [
      'role: 257',
      () => requireRoleName('x'.repeat(257)),
      "invalid: Invalid Role: invalid Name. Only alphanumeric characters, '-' and '_' are allowed",
    ],
    ['auth method: 128', () => requireAuthMethodName('Min-i_kube'.padEnd(128, 'x')), 'accepted'],
    [
      'auth method: none',
      () => requireAuthMethodName(''),
      'invalid: Invalid Auth Method: no Name is set',
    ],
    [
      'auth method: 129',
      () => requireAuthMethodName('x'.repeat(129)),
      "invalid: Invalid Auth Method: invalid Name. Only alphanumeric characters, '-' and '_' are allowed",
    ],
    ['namespace: label', () => requireNamespaceName('team-1'), 'accepted'],
    ['namespace: 63', () => requireNamespaceName('x'.repeat(63)), 'accepted'],
    [
      'namespace: none',
      () => requireNamespaceName(''),
      'invalid: Invalid Namespace: no Name is set',
    ],
  ];
  for (const [title, work, expected] of cases) t.equal(refusalOf(work), expected, title);

  for (const name of ['*', 'Team', 'a_b', '-a', 'a-', 'a.b', 'x'.repeat(64)]) {
    t.match(
      refusalOf(() => requireNamespaceName(name)),
      /invalid: Invalid Namespace: invalid Name/,
    );
  }
  const identityNames: readonly (readonly [string, boolean])[] = [
    ['web', true],
    ['a', true],
    ['a-b_c', true],
    ['x'.repeat(256), true],
    ['x'.repeat(257), false],
    ['', false],
    ['FOO', false],
    ['-a', false],
    ['a_', false],
    ['a.b', false],
    ['a\n', false],
  ];
  for (const [name, expected] of identityNames) t.equal(isIdentityName(name), expected, name);

  t.equal(nameKey('Read-ALL_1'), 'read-all_1');
  t.not(nameKey('\u212Aey'), 'key', 'the Kelvin sign is no letter of a name');
});

t.test('links: repetitions go, the order stays', async (t) => {
  t.same(uniqueIds(['b', 'a', 'b', 'c', 'a']), ['b', 'a', 'c']);
});

t.test('content hashes', async (t) => {
  const token = {
    description: 'Bootstrap Token (Global Management)',
    local: false,
    policies: [GLOBAL_MANAGEMENT_ID],
    roles: [] as readonly RoleId[],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
  };

  t.test('a published token has its published hash', async (t) => {
    t.equal(tokenHash(token), 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=');
  });

  t.test('every part counts, in the prescribed order', async (t) => {
    const full = {
      description: 'd',
      local: true,
      policies: ['p1', 'p2'] as unknown as readonly PolicyId[],
      roles: ['r'] as unknown as readonly RoleId[],
      serviceIdentities: [{ serviceName: 's', datacenters: ['x', 'y'] }],
      nodeIdentities: [{ nodeName: 'n', datacenter: 'z' }],
      templatedPolicies: [
        { templateId: 'i', templateName: 't', variables: { name: 'v' }, datacenters: ['w'] },
      ],
    };
    // The hash knows only the joined text, so a description that says all of it has the same one.
    const joined = 'dlocalp1p2rsxynzitvw';
    t.equal(tokenHash(full), policyHashOfText(joined));
    t.equal(roleHash({ ...full, name: 'N' }), policyHashOfText('Ndp1p2sxynzitvw'));
    t.equal(
      policyHash({ name: 'n', description: 'd', rules: 'r', datacenters: ['a', 'b'] }),
      policyHashOfText('ndrab'),
    );
    t.not(tokenHash({ ...full, local: false }), tokenHash(full));
    t.not(
      tokenHash({ ...token, description: '\u00fc' }),
      tokenHash({ ...token, description: 'u' }),
    );
  });

  t.test('the order of links counts', async () => {
    const ids = fc.uniqueArray(fc.uuid(), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(ids, (uuids) => {
        const policies = uuids as unknown as readonly PolicyId[];
        const reversed = policies.toReversed();
        return tokenHash({ ...token, policies }) !== tokenHash({ ...token, policies: reversed });
      }),
      { numRuns: 50 },
    );
  });
});

function policyHashOfText(text: string): string {
  return policyHash({ name: text, description: '', rules: '', datacenters: [] });
}

t.test('texts that are cut hold no half of a character', async (t) => {
  for (const start of ['', 'x']) {
    const long = start + '😀'.repeat(2_000);
    const { message } = new AclError('invalid', long);
    t.equal(message.length, 2_048);
    t.ok(message.isWellFormed(), 'of a refusal');
    t.ok(excerpt(long).isWellFormed(), 'of what an explanation repeats');
  }
  t.equal(excerpt('😀'), '😀');
});
