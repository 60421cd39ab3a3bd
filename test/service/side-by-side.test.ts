// Two writes at the same time, of an administrator and of somebody with fewer rights: one is sent before the other
// is answered. What comes of it must be what comes of one after the other: so nobody acts by rights that were
// taken away before. The second may also be refused for what came in between.

import t from 'tap';
import type { SecretId } from '../../src/acl/ids.ts';
import { PLAIN_CALL } from '../../src/service/call.ts';
import type { OperationInput, OperationName } from '../../src/service/operations.ts';
import {
  allOf,
  createHarness,
  type Harness,
  newPolicy,
  newToken,
  ROOT,
  refusalOf,
} from './harness.ts';

const MANAGEMENT = { id: '00000000-0000-0000-0000-000000000001' };
const page = {};
const ADMIN = 'acl = "write"';

interface Scene {
  readonly harness: Harness;
  readonly ids: {
    readonly admin: string;
    readonly plain: string;
    readonly ruled: string;
    readonly lending: string;
    readonly rule: string;
  };
  readonly tokens: {
    readonly weak: string;
    readonly lent: string;
    readonly plain: string;
  };
  readonly secrets: {
    readonly weak: SecretId;
    readonly ruled: SecretId;
    readonly logged: SecretId;
  };
}

interface Ask {
  readonly name: OperationName;
  readonly input: unknown;
}

type Act = (scene: Scene) => Ask;

function ask<Name extends OperationName>(name: Name, input: OperationInput<Name>): Ask {
  return { name, input };
}

/** The same each time: ids are counted. */
async function scene(): Promise<Scene> {
  const harness = await createHarness();
  const inTeam = { namespaceParameter: 'team' };
  const namespace = 'team';
  await harness.run('namespace.create', { draft: { name: namespace } });
  const admin = await newPolicy(harness, 'admin', ADMIN, namespace);
  const plain = await newPolicy(harness, 'plain', 'key "k" { policy = "read" }', namespace);
  const role = async (name: string, policies: readonly { readonly id: string }[]) =>
    (await harness.run('role.create', { draft: { name, namespace, policies } })).value.role.id;
  const ruled = await role('ruled', [{ id: admin }]);
  const lending = await role('lending', [MANAGEMENT]);
  const method = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: method }, inTeam);
  const bound = { authMethod: 'm', bindType: 'policy', bindName: 'plain' };
  const { value: made } = await harness.run('binding-rule.create', { draft: bound }, inTeam);
  const token = (description: string, given: object) =>
    newToken(harness, { namespace, description, ...given });
  const weak = await token('weak', { policies: [{ id: admin }] });
  const byRole = await token('by-role', { roles: [{ id: ruled }] });
  const lent = await token('lent', { policies: [MANAGEMENT] });
  const other = await token('other', { policies: [{ id: plain }] });
  const { value: logged } = await harness.run('login', LOGIN);
  return {
    harness,
    ids: { admin, plain, ruled, lending, rule: made.rule.id },
    tokens: { weak: weak.accessorId, lent: lent.accessorId, plain: other.accessorId },
    secrets: { weak: weak.secretId, ruled: byRole.secretId, logged: logged.token.secretId },
  };
}

const LOGIN = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: 'team' };

const ACTS: Readonly<Record<string, Act>> = {
  'strip weak': (s) =>
    ask('token.update', { accessorId: s.tokens.weak, draft: { description: 'weak' } }),
  'equip weak': (s) =>
    ask('token.update', {
      accessorId: s.tokens.weak,
      draft: { description: 'weak again', policies: [{ id: s.ids.admin }] },
    }),
  'delete weak': (s) => ask('token.delete', { accessorId: s.tokens.weak }),
  'empty admin': (s) =>
    ask('policy.update', { id: s.ids.admin, draft: { name: 'admin', rules: '' } }),
  'fill admin': (s) =>
    ask('policy.update', {
      id: s.ids.admin,
      draft: { name: 'admin', rules: `${ADMIN} operator = "read"` },
    }),
  'delete admin': (s) => ask('policy.delete', { id: s.ids.admin }),
  'empty ruled': (s) => ask('role.update', { id: s.ids.ruled, draft: { name: 'ruled' } }),
  'fill ruled': (s) =>
    ask('role.update', {
      id: s.ids.ruled,
      draft: { name: 'ruled', description: 'full', policies: [{ id: s.ids.admin }] },
    }),
  'delete ruled': (s) => ask('role.delete', { id: s.ids.ruled }),
  'take what is lent': (s) =>
    ask('token.update', { accessorId: s.tokens.lent, draft: { description: 'lent' } }),
  'keep what is lent': (s) =>
    ask('token.update', {
      accessorId: s.tokens.lent,
      draft: { description: 'kept', policies: [MANAGEMENT] },
    }),
  'copy what is lent': (s) =>
    ask('token.clone', {
      accessorId: s.tokens.lent,
      description: 'copy of lent',
      namespace: undefined,
    }),
  'empty lending': (s) => ask('role.update', { id: s.ids.lending, draft: { name: 'lending' } }),
  'keep lending': (s) =>
    ask('role.update', {
      id: s.ids.lending,
      draft: { name: 'lending', description: 'kept', policies: [MANAGEMENT] },
    }),
  'give all to other': (s) =>
    ask('token.update', {
      accessorId: s.tokens.plain,
      draft: { description: 'given', policies: [MANAGEMENT] },
    }),
  'write other': (s) =>
    ask('token.update', {
      accessorId: s.tokens.plain,
      draft: { description: 'written', policies: [{ id: s.ids.plain }] },
    }),
  'copy other': (s) =>
    ask('token.clone', {
      accessorId: s.tokens.plain,
      description: 'copy of other',
      namespace: undefined,
    }),
  'delete other': (s) => ask('token.delete', { accessorId: s.tokens.plain }),
  'make a token': (s) =>
    ask('token.create', {
      draft: { description: 'made', policies: [{ id: s.ids.plain }], roles: [{ id: s.ids.ruled }] },
    }),
  'make a policy': () => ask('policy.create', { draft: { name: 'made', rules: ADMIN } }),
  'write plain': (s) =>
    ask('policy.update', { id: s.ids.plain, draft: { name: 'plain', rules: ADMIN } }),
  'delete plain': (s) => ask('policy.delete', { id: s.ids.plain }),
  'write the method': () =>
    ask('auth-method.update', {
      name: 'm',
      draft: { type: 'jwt', config: {}, description: 'written' },
    }),
  'delete the method': () => ask('auth-method.delete', { name: 'm' }),
  'write the rule': (s) =>
    ask('binding-rule.update', {
      id: s.ids.rule,
      draft: { bindType: 'policy', bindName: 'admin' },
    }),
  'delete the rule': (s) => ask('binding-rule.delete', { id: s.ids.rule }),
  'delete the namespace': () => ask('namespace.delete', { name: 'team' }),
  'give defaults': (s) =>
    ask('namespace.update', { name: 'team', draft: { policyDefaults: [{ id: s.ids.plain }] } }),
  login: () => ask('login', LOGIN),
  logout: () => ask('logout', {}),
};

function secretFor(scene: Scene, { name }: Ask, who: Who): SecretId | undefined {
  if (name === 'login') return undefined;
  if (name === 'logout') return scene.secrets.logged;
  return who === 'root' ? ROOT : scene.secrets[who];
}

type Who = 'root' | 'weak' | 'ruled';

interface Deed {
  readonly act: string;
  readonly who: Who;
}

async function done(scene: Scene, { act, who }: Deed): Promise<string> {
  const asked = ACTS[act]!(scene);
  const { name, input } = asked;
  const secret = secretFor(scene, asked, who);
  const call = { ...PLAIN_CALL, secret, namespaceParameter: 'team' };
  const running = scene.harness.run(name, input as never, call);
  // In which words somebody is refused may differ: of what came first, each sees another part.
  return (await refusalOf(running)) === 'ok' ? 'done' : 'refused';
}

/** What is there, by what people call it. */
async function standing({ harness }: Scene): Promise<string> {
  const all = { ...PLAIN_CALL, secret: ROOT, namespaceParameter: '*' };
  const tokens = await allOf(await harness.run('token.list', TOKENS, all));
  const roles = await allOf(await harness.run('role.list', { policy: undefined, page }, all));
  const policies = await allOf(await harness.run('policy.list', { page }, all));
  const namespaces = await allOf(await harness.run('namespace.list', { page }, all));
  const methods = await allOf(await harness.run('auth-method.list', { page }, all));
  const rules = await allOf(
    await harness.run('binding-rule.list', { authMethod: undefined, page }, all),
  );
  const names = (links: readonly { readonly name: string }[]) => links.map(({ name }) => name);
  return JSON.stringify([
    tokens.map(({ token, policies: own, roles: given }) => [
      ...[token.description, token.namespace, token.authMethod?.name],
      ...[names(own), names(given)],
    ]),
    roles.map(({ role, policies: own }) => [role.name, role.description, names(own)]),
    policies.map(({ policy }) => [policy.name, policy.namespace === 'team' ? policy.rules : '']),
    namespaces.map(({ namespace }) => [namespace.name, namespace.policyDefaults]),
    methods.map(({ method }) => [method.name, method.namespace, method.description]),
    rules.map(({ rule }) => [rule.authMethod, rule.bindType, rule.bindName]),
  ]);
}

const TOKENS = {
  policy: undefined,
  role: undefined,
  serviceName: undefined,
  authMethod: undefined,
  authMethodNamespace: undefined,
  page,
};

/** What came of two deeds that began one after the other; the second waits for the first, or does not. */
async function outcome(first: Deed, second: Deed, isTogether: boolean): Promise<string> {
  const at = await scene();
  const one = done(at, first);
  if (!isTogether) await one;
  const two = done(at, second);
  return text([first, await one], [second, await two], at);
}

async function withoutSecond(first: Deed, second: Deed): Promise<string> {
  const at = await scene();
  return text([first, await done(at, first)], [second, 'refused'], at);
}

async function text(...[one, two, at]: readonly [Came, Came, Scene]): Promise<string> {
  const ofRoot = one[0].who === 'root' ? [one, two] : [two, one];
  const lines = ofRoot.map(([{ act, who }, came]) => `${who} ${act}: ${came}`);
  return `${lines.join(', ')}; ${await standing(at)}`;
}

type Came = readonly [Deed, string];

/** What an administrator does to others: it takes rights away, or gives what was not there. */
const OF_ROOT = [
  ...['strip weak', 'delete weak', 'empty admin', 'delete admin', 'empty ruled', 'delete ruled'],
  ...['take what is lent', 'empty lending', 'give all to other', 'delete other', 'delete plain'],
  ...['write the method', 'delete the method', 'delete the rule', 'write the rule'],
  ...['delete the namespace', 'give defaults'],
];

/** What is sent meanwhile may come first. */
const ASK_OUTSIDE = ['write the method', 'login'];

for (const who of ['weak', 'ruled'] as const) {
  t.test(`side by side: writes of root and of ${who} are as one after the other`, async (t) => {
    for (const one of OF_ROOT) {
      for (const two of Object.keys(ACTS)) {
        const root = { act: one, who: 'root' } as const;
        const other = { act: two, who };
        for (const [first, second] of [
          [root, other],
          [other, root],
        ] as const) {
          const came = await outcome(first, second, true);
          const inOrder = [await outcome(first, second, false)];
          if (ASK_OUTSIDE.includes(first.act)) inOrder.push(await outcome(second, first, false));
          if (inOrder.includes(came) || came === (await withoutSecond(first, second))) continue;
          t.same(came, inOrder, `root: ${one}, ${who}: ${two}, ${first.who} first`);
        }
      }
    }
  });
}
