// What is read of rows without unpacking them, and what is unpacked once for many: both must say what the
// codec says of the same bytes.

import fc from 'fast-check';
import t from 'tap';
import { AssertionError } from '../../cluster/base/assert.ts';
import { type Field, pack } from '../../src/state/rows/layout/packing.ts';
import {
  decodeRecord,
  encodeRecord,
  TOKEN_CODEC,
} from '../../src/state/rows/layout/record-codec.ts';
import type { Stamped } from '../../src/state/rows/layout/stamp.ts';
import { isLocalTokenRow } from '../../src/state/rows/layout/token-row.ts';
import {
  aCommand,
  aNamespace,
  aNamespaceName,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
} from '../support/state-and-service/fixtures.ts';
import { startedMachine } from '../support/state-and-service/machine-harness.ts';
import { GOLDEN_RECORDS } from './golden-bytes.ts';

const INDEXES: Stamped = { createIndex: 7, modifyIndex: 300 };

/** Lengths around the places where msgpack writes a length in more bytes. */
const length = fc.constantFrom(0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536);
const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  length.map((count) => 'ä'.repeat(count)),
);
const index = fc.constantFrom(
  0,
  1,
  127,
  128,
  255,
  256,
  65_535,
  65_536,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 52,
);
const few = fc.integer({ min: 0, max: 20 });

const row = fc
  .record({
    local: fc.boolean(),
    description: text,
    namespace: text,
    policies: few,
    roles: few,
    services: few,
    nodes: few,
    templated: few,
    hasMethod: fc.boolean(),
    createIndex: index,
    modifyIndex: index,
  })
  .map((given) => ({
    local: given.local,
    value: encodeRecord(TOKEN_CODEC, {
      ...aToken(1, {
        local: given.local,
        description: given.description,
        namespace: aNamespaceName(given.namespace),
        policies: Array.from({ length: given.policies }, (_, number) => policyIdNumbered(number)),
        roles: Array.from({ length: given.roles }, (_, number) => roleIdNumbered(number)),
        serviceIdentities: Array.from({ length: given.services }, (_, number) => ({
          serviceName: `service-${number}`,
          datacenters: number % 2 === 0 ? [] : ['dc1', 'dc2'],
        })),
        nodeIdentities: Array.from({ length: given.nodes }, () => ({
          nodeName: 'node',
          datacenter: 'dc1',
        })),
        templatedPolicies: Array.from({ length: given.templated }, (_, number) => ({
          templateId: policyIdNumbered(number),
          templateName: 'builtin/service',
          variables: number % 2 === 0 ? undefined : { name: 'api' },
          datacenters: [],
        })),
        authMethod: given.hasMethod
          ? { name: 'login', namespace: aNamespaceName('default'), createIndex: given.createIndex }
          : undefined,
      }),
      createIndex: given.createIndex,
      modifyIndex: given.modifyIndex,
    }),
  }));

t.test(
  'token row: where the token lives is what the codec says, whatever else is in it',
  async () => {
    fc.assert(
      fc.property(row, ({ local, value }) => {
        return isLocalTokenRow(value) === local && decodeRecord(TOKEN_CODEC, value).local === local;
      }),
      { numRuns: 200, seed: 20_261_122 },
    );
  },
);

t.test('token row: a row that older releases wrote is read the same', async (test) => {
  const value = Buffer.from(GOLDEN_RECORDS.token, 'hex');
  test.equal(isLocalTokenRow(value), decodeRecord(TOKEN_CODEC, value).local);
});

t.test('token row: a row that is cut off says nothing wrong', async (test) => {
  for (const local of [false, true]) {
    const value = encodeRecord(TOKEN_CODEC, { ...aToken(1, { local }), ...INDEXES });
    for (let end = 0; end < value.length; end += 1) {
      let said: boolean | undefined;
      try {
        said = isLocalTokenRow(value.subarray(0, end));
      } catch {
        said = undefined;
      }
      if (said !== undefined && said !== local) test.fail(`cut at ${end} it says ${said}`);
    }
  }
  test.end();
});

t.test('token row: what is laid out in another way is left to the codec', async (test) => {
  const fields = TOKEN_CODEC.fieldsOf(aToken(1, { local: true }));
  test.throws(() => isLocalTokenRow(pack([2, 7, 7, fields])), AssertionError);
  test.equal(isLocalTokenRow(pack([1, -1, 7, fields])), true, 'a number of another kind');
  test.equal(isLocalTokenRow(pack([1, 7, 7, [...fields, null]])), true, 'a field more');
  const long: Field[] = [...fields];
  long[3] = Buffer.from('bytes where a text should be');
  test.equal(isLocalTokenRow(pack([1, 7, 7, long])), true, 'a field of another kind');
});

t.test('links: within one group, they lead to what the commands before have left', async (test) => {
  const harness = await startedMachine();
  const inTeam = { namespace: aNamespaceName('team') };
  await harness.one({ type: 'namespace.set', presence: 'create', namespace: aNamespace('team') });
  const [policy, role] = [policyIdNumbered(1), roleIdNumbered(1)];
  const link = (number: number, given: object = {}) =>
    aCommand({
      type: 'token.set',
      presence: 'create',
      token: aToken(number, { policies: [policy], roles: [role], ...given }),
    });
  const outcomes = await harness.run(
    link(1),
    aCommand({ type: 'policy.set', presence: 'create', policy: aPolicy(1, inTeam) }),
    aCommand({ type: 'role.set', presence: 'create', role: aRole(1) }),
    link(2),
    link(3, inTeam),
    link(4, inTeam),
    aCommand({ type: 'policy.delete', id: policy }),
    link(5, inTeam),
    aCommand({ type: 'policy.set', presence: 'create', policy: aPolicy(1) }),
    link(6, inTeam),
    link(7),
    aCommand({ type: 'role.delete', id: role }),
    link(8),
  );
  test.same(
    outcomes.map(({ kind }) => (kind === 'applied' ? 'ok' : 'refused')).join(' '),
    'refused ok ok refused ok ok ok refused ok ok ok ok refused',
  );
});
