// Random commands that mostly have something to do: few ids and names, so that they meet, and an opening
// that makes what tokens and rules need.

import fc from 'fast-check';
import { DEFAULT_NAMESPACE } from '../../src/acl/ids.ts';
import type { Instant } from '../../src/acl/values/instant.ts';
import type { Change, Command } from '../../src/state/commands/commands.ts';
import {
  aBindingRule,
  accessorNumbered,
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  FIXTURE_TIME_MS,
  policyIdNumbered,
  roleIdNumbered,
  ruleIdNumbered,
  secretNumbered,
} from '../support/state-and-service/fixtures.ts';

export const NAMESPACE_NAMES = ['default', 'team', 'other'].map(aNamespaceName);
const MINUTE_MS = 60_000;

/** Undefined but for one time in so many. */
function rarely<T>(arbitrary: fc.Arbitrary<T>, times = 4): fc.Arbitrary<T | undefined> {
  return fc.oneof(
    { weight: times - 1, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary },
  );
}

const number = fc.integer({ min: 1, max: 5 });
const namespaceName = fc.oneof(
  { weight: 3, arbitrary: fc.constant(DEFAULT_NAMESPACE) },
  { weight: 1, arbitrary: fc.constantFrom(...NAMESPACE_NAMES) },
);
const policyIds = fc
  .uniqueArray(number, { maxLength: 2 })
  .map((all) => all.map((each) => policyIdNumbered(each)));
const roleIds = fc
  .uniqueArray(number, { maxLength: 1 })
  .map((all) => all.map((each) => roleIdNumbered(each)));
const presence = fc.constantFrom('create', 'create', 'update');
const methodName = fc.constantFrom('login', 'Login', 'other');
const minute = fc.integer({ min: 0, max: 30 });
const momentOf = (minutes: number): Instant =>
  new Date(FIXTURE_TIME_MS + minutes * MINUTE_MS).toISOString() as Instant;

const token = fc
  .record({
    number,
    secret: number,
    secretIsAccessor: fc.boolean(),
    namespace: namespaceName,
    policies: policyIds,
    roles: roleIds,
    local: rarely(fc.constant(true)).map((each) => each ?? false),
    expiry: rarely(minute),
    service: rarely(fc.constantFrom('web', 'api')),
    template: rarely(fc.constantFrom('builtin/service', 'builtin/node')),
    method: rarely(fc.record({ name: methodName, createIndex: fc.integer({ min: 6, max: 9 }) })),
  })
  .map((given) =>
    aToken(given.number, {
      secretId: (given.secretIsAccessor && given.secret === 5
        ? accessorNumbered(given.secret)
        : secretNumbered(given.secret)) as never,
      namespace: given.namespace,
      policies: given.policies,
      roles: given.roles,
      local: given.local,
      expirationTime: given.expiry === undefined ? undefined : momentOf(given.expiry),
      serviceIdentities:
        given.service === undefined ? [] : [{ serviceName: given.service, datacenters: [] }],
      templatedPolicies:
        given.template === undefined
          ? []
          : [
              {
                templateId: 'x',
                templateName: given.template,
                variables: { name: 'Web' },
                datacenters: [],
              },
            ],
      authMethod:
        given.method === undefined ? undefined : { ...given.method, namespace: DEFAULT_NAMESPACE },
    }),
  );

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constant('token.set' as const), presence, token }),
  },
  number.map((each) => ({ type: 'token.delete', accessorId: accessorNumbered(each) }) as const),
  fc.constant({ type: 'token.reap', accessorIds: [1, 2, 3, 4, 5].map(accessorNumbered) } as const),
  {
    weight: 3,
    arbitrary: fc
      .record({ presence, number, name: number, namespace: namespaceName })
      .map(({ name, ...rest }) => ({
        type: 'policy.set' as const,
        presence: rest.presence,
        policy: aPolicy(rest.number, { name: `Policy-${name}`, namespace: rest.namespace }),
      })),
  },
  number.map((each) => ({ type: 'policy.delete', id: policyIdNumbered(each) }) as const),
  {
    weight: 2,
    arbitrary: fc
      .record({ presence, number, name: number, namespace: namespaceName, policies: policyIds })
      .map(({ name, ...rest }) => ({
        type: 'role.set' as const,
        presence: rest.presence,
        role: aRole(rest.number, {
          name: `role-${name}`,
          namespace: rest.namespace,
          policies: rest.policies,
        }),
      })),
  },
  number.map((each) => ({ type: 'role.delete', id: roleIdNumbered(each) }) as const),
  {
    weight: 2,
    arbitrary: fc
      .record({ name: methodName, namespace: namespaceName, isOidc: fc.boolean() })
      .map(({ name, namespace, isOidc }) => ({
        type: 'auth-method.set' as const,
        presence: 'either' as const,
        method: anAuthMethod(name, { namespace, type: isOidc ? 'oidc' : 'jwt' }),
      })),
  },
  fc
    .record({ name: methodName, namespace: namespaceName })
    .map((address) => ({ type: 'auth-method.delete' as const, ...address })),
  {
    weight: 2,
    arbitrary: fc
      .record({ presence, number, authMethod: methodName, namespace: namespaceName })
      .map(({ presence: on, number: each, ...rest }) => ({
        type: 'binding-rule.set' as const,
        presence: on,
        rule: aBindingRule(each, rest),
      })),
  },
  number.map((each) => ({ type: 'binding-rule.delete', id: ruleIdNumbered(each) }) as const),
  {
    weight: 2,
    arbitrary: fc
      .record({
        presence: fc.constantFrom('create', 'update', 'either'),
        name: fc.constantFrom(...NAMESPACE_NAMES),
        policyDefaults: policyIds,
      })
      .map(({ presence: on, name, policyDefaults }) => ({
        type: 'namespace.set' as const,
        presence: on,
        namespace: aNamespace(name, { policyDefaults }),
      })),
  },
  fc.constantFrom(...NAMESPACE_NAMES).map((name) => ({ type: 'namespace.delete', name }) as const),
) as fc.Arbitrary<Change>;

export const command: fc.Arbitrary<Command> = fc.record({
  change,
  timeMs: minute.map((each) => FIXTURE_TIME_MS + each * MINUTE_MS),
  cas: rarely(fc.integer({ min: 0, max: 12 }), 8),
  request: fc.constant(undefined),
});

/** Every run begins with what tokens and rules need, so that most commands have something to do. */
const OPENING: readonly Command[] = [
  { type: 'namespace.set', presence: 'either', namespace: aNamespace('default') } as const,
  { type: 'namespace.set', presence: 'either', namespace: aNamespace('team') } as const,
  { type: 'policy.set', presence: 'create', policy: aPolicy(1, { name: 'First' }) } as const,
  { type: 'policy.set', presence: 'create', policy: aPolicy(2, { name: 'Second' }) } as const,
  { type: 'role.set', presence: 'create', role: aRole(1, { name: 'first' }) } as const,
  { type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') } as const,
].map((each) => ({ change: each, timeMs: FIXTURE_TIME_MS, cas: undefined, request: undefined }));

/** A run of commands, its opening first. */
export const history = fc
  .array(command, { minLength: 20, maxLength: 80, size: 'max' })
  .map((commands) => [...OPENING, ...commands]);
