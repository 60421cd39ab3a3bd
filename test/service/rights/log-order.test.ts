// Whatever comes at once, and in whatever order it gets into the log: what takes effect was allowed there, and kept
// rights are those that the state gives. In a datacenter alone, and in one that follows a primary.
// Another draw: CONCLAVE_SEED=<seed>; more of them: CONCLAVE_RUNS=<count>.

import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import type { NamespaceName, SecretId } from '../../../src/acl/ids.ts';
import type { Call } from '../../../src/service/call.ts';
import type { OperationInput, OperationName } from '../../../src/service/operations.ts';
import { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import { requireAcl } from '../../../src/service/rights/permissions.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { CALL, createHarness, type Harness, ROOT } from '../harness.ts';
import { type Judged, judge } from './lawful.ts';

const SEED = Number(process.env.CONCLAVE_SEED ?? 1);
const RUNS = Number(process.env.CONCLAVE_RUNS ?? 15);
const SPACES = ['default', 'a', 'b'] as const;
const RULES = [
  'acl = "write"',
  'acl = "read"',
  'acl = "deny"',
  'namespace "a" { acl = "write" }',
  'namespace_prefix "" { acl = "write" policy = "write" }',
  '',
];

type Link = { readonly id: string };

/** Draws, of one seed. */
class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    const once = Math.imul(this.#state ^ (this.#state >>> 16), 0x85ebca6b);
    const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
    return ((twice ^ (twice >>> 16)) >>> 0) % limit;
  }

  /** That often in ten. */
  often(times: number): boolean {
    return this.below(10) < times;
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

/** Objects in three namespaces, and who has which rights over them; ids stay when an object is gone. */
class World {
  readonly policies: string[] = [];
  readonly roles: string[] = [];
  readonly rules: string[] = [];
  readonly tokens: string[] = [];
  readonly secrets: SecretId[] = [];
  readonly harness: Harness;
  readonly draw: Draw;

  constructor(harness: Harness, draw: Draw) {
    this.harness = harness;
    this.draw = draw;
  }

  async fill(): Promise<void> {
    const { draw, harness } = this;
    for (const name of ['a', 'b']) await harness.run('namespace.create', { draft: { name } });
    for (const namespace of SPACES) {
      for (const name of ['p0', 'p1', 'p2']) {
        const draft = { name, namespace, rules: this.text(namespace) };
        this.policies.push((await harness.run('policy.create', { draft })).value.policy.id);
      }
      for (const name of ['r0', 'r1']) {
        const draft = { name, namespace, policies: this.links('policies', namespace) };
        this.roles.push((await harness.run('role.create', { draft })).value.role.id);
      }
      const draft = { name: 'm', type: 'jwt', config: {}, namespace };
      await harness.run('auth-method.create', { draft });
      const rule = { authMethod: 'm', namespace, ...this.binding() };
      const { value } = await harness.run('binding-rule.create', { draft: rule });
      this.rules.push(value.rule.id);
      for (let made = 0; made < 3; made += 1) {
        this.note(
          await harness.run('token.create', { draft: { namespace, ...this.both(namespace) } }),
        );
      }
    }
    // One who may very much, and from whom it is taken again and again.
    const policies = [{ id: this.policies[draw.below(3)]! }];
    this.note(await harness.run('token.create', { draft: { policies } }));
  }

  text(namespace: string | undefined): string {
    return this.draw.of(namespace === 'default' ? RULES : ['acl = "write"', '']);
  }

  binding() {
    return {
      bindType: this.draw.of(['role', 'policy']),
      bindName: this.draw.of(['r0', 'p0', 'p1']),
    };
  }

  /** Links that somebody in the namespace could have. */
  links(kind: 'policies' | 'roles', namespace: string): readonly Link[] {
    const { machine } = this.harness;
    const there = this[kind].filter((id) => {
      const found = kind === 'policies' ? machine.policy(id) : machine.role(id);
      return found !== undefined && ['default', namespace].includes(found.namespace);
    });
    const count = there.length === 0 ? 0 : this.draw.below(3);
    return Array.from({ length: count }, () => ({ id: this.draw.of(there) }));
  }

  both(namespace: string) {
    return { policies: this.links('policies', namespace), roles: this.links('roles', namespace) };
  }

  /** The links that it has, perhaps with others. */
  kept(links: { readonly policies: readonly string[]; readonly roles?: readonly string[] }) {
    const own = (ids: readonly string[] = []): readonly Link[] => ids.map((id) => ({ id }));
    const more = this.draw.often(3) ? this.links('policies', this.draw.of(SPACES)) : [];
    return { policies: [...own(links.policies), ...more], roles: own(links.roles) };
  }

  note({
    value,
  }: {
    readonly value: { readonly token: { accessorId: string; secretId: SecretId } };
  }) {
    this.tokens.push(value.token.accessorId);
    this.secrets.push(value.token.secretId);
  }
}

type Ask = <Name extends OperationName>(
  name: Name,
  input: OperationInput<Name>,
  call: Partial<Call>,
) => Promise<unknown>;

interface Asker {
  readonly ask: Ask;
  readonly secret: SecretId | undefined;
  /** Where it looks for an object that lives there; undefined: it names nothing. */
  readonly space: (home: string | undefined) => string | undefined;
}

/** A change of what all share, or of a token. */
function change(world: World, { ask, secret, space }: Asker): Promise<unknown> {
  const { draw, harness } = world;
  const { machine } = harness;
  const at = (home: string | undefined) => ({ secret, namespaceParameter: space(home) });
  const name = draw.of(['m', 'M']);
  const policy = machine.policy(draw.of(world.policies));
  const role = machine.role(draw.of(world.roles));
  const rule = machine.bindingRule(draw.of(world.rules));
  switch (draw.below(10)) {
    case 0:
    case 1: {
      if (policy === undefined) return Promise.resolve();
      const draft = { name: policy.name, rules: world.text(policy.namespace) };
      return ask('policy.update', { id: policy.id, draft }, at(policy.namespace));
    }
    case 2:
    case 3: {
      if (role === undefined) return Promise.resolve();
      const links = draw.often(6) ? world.kept(role) : world.both(role.namespace);
      const draft = { name: role.name, policies: links.policies };
      return ask('role.update', { id: role.id, draft }, at(role.namespace));
    }
    case 4: {
      if (!draw.often(2)) return Promise.resolve();
      if (draw.often(5)) return ask('role.delete', { id: role?.id ?? '' }, at(role?.namespace));
      return ask('policy.delete', { id: policy?.id ?? '' }, at(policy?.namespace));
    }
    case 5: {
      if (rule === undefined) return Promise.resolve();
      if (draw.often(2)) return ask('binding-rule.delete', { id: rule.id }, at(rule.namespace));
      const draft = world.binding();
      return ask('binding-rule.update', { id: rule.id, draft }, at(rule.namespace));
    }
    case 6: {
      const home = draw.of(SPACES);
      if (draw.often(3)) return ask('auth-method.delete', { name }, at(home));
      return ask('auth-method.update', { name, draft: { type: 'jwt', config: {} } }, at(home));
    }
    case 7: {
      const called = draw.of(['a', 'b'] as const);
      const found = machine.namespace(called as NamespaceName);
      const links = draw.often(5)
        ? world.kept({ policies: found?.policyDefaults ?? [] })
        : world.both(called);
      const draft = { policyDefaults: links.policies, roleDefaults: links.roles };
      return ask('namespace.update', { name: called, draft }, { secret });
    }
    default:
      return changeToken(world, { ask, secret, space }, { local: false });
  }
}

function changeToken(
  world: World,
  { ask, secret, space }: Asker,
  { local }: { readonly local: boolean },
): Promise<unknown> {
  const { draw, harness } = world;
  const accessorId = draw.of(world.tokens);
  const token = harness.machine.token(accessorId);
  const home = token?.namespace;
  const call = { secret, namespaceParameter: space(home) };
  const noted = (made: unknown): void => world.note(made as never);
  switch (draw.below(6)) {
    case 0: {
      const place = draw.of(SPACES);
      const draft = { local, ...world.both(place) };
      const there = { secret, namespaceParameter: space(place) };
      return ask('token.create', { draft }, there).then(noted);
    }
    case 1: {
      const input = { accessorId, description: undefined, namespace: undefined };
      return ask('token.clone', input, call).then(noted);
    }
    case 2:
      return draw.often(3) ? ask('token.delete', { accessorId }, call) : Promise.resolve();
    case 3: {
      const namespace = space(draw.of(SPACES));
      const input = { authMethod: 'm', bearerToken: '{"name":"x"}', meta: {}, namespace };
      return ask('login', input, { secret: undefined }).then(noted);
    }
    default: {
      const links =
        token !== undefined && draw.often(6) ? world.kept(token) : world.both(home ?? '');
      const draft = { local: token?.local ?? false, ...links };
      return ask('token.update', { accessorId, draft }, call);
    }
  }
}

/** What is refused is refused; anything else is a fault. */
async function refusable(asked: Promise<unknown>): Promise<void> {
  try {
    await asked;
  } catch (error) {
    if (!(error instanceof AclError) || error.code === 'internal') throw error;
  }
}

/** Whose kept rights are not those that the state gives now. */
async function staleIn({ harness: { deps, door }, secrets }: World): Promise<readonly string[]> {
  const stale: string[] = [];
  const callers = new CallerResolver(deps);
  for (const secret of new Set(secrets)) {
    for (const namespace of SPACES) {
      const call = { ...CALL, secret, namespaceParameter: namespace };
      const input = { policy: undefined, page: {} };
      const kept = await codeOf(() => door.runForOther({ name: 'role.list', input, call }));
      const fresh = await codeOf(async () => {
        requireAcl(callers.resolve(secret), 'read', namespace as NamespaceName);
      });
      if (kept !== fresh) stale.push(`${namespace}: ${kept}, not ${fresh}`);
    }
  }
  return stale;
}

async function codeOf(run: () => Promise<unknown>): Promise<string> {
  try {
    await run();
    return 'ok';
  } catch (error) {
    if (error instanceof AclError) return error.code;
    throw error;
  }
}

/** Many at once; some come when others are in the log already. */
async function atOnce(draw: Draw, asks: readonly (() => Promise<unknown>)[]): Promise<void> {
  const running: Promise<void>[] = [];
  for (const ask of asks) {
    running.push(refusable(ask()));
    if (draw.often(1)) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(running);
}

/** One datacenter. Gives what was judged, and what is stale. */
async function alone(seed: number): Promise<Judged> {
  const draw = new Draw(seed);
  const harness = await createHarness();
  const world = new World(harness, draw);
  await world.fill();
  const judged = judge(harness);
  const isOff = draw.often(3);
  Object.assign(harness.deps.settings, { namespacesEnabled: !isOff });
  const space = (home: string | undefined): string | undefined => {
    if (isOff || draw.often(2)) return undefined;
    return draw.often(8) ? home : draw.of(SPACES);
  };
  const one = () => {
    const secret = draw.often(4) ? ROOT : draw.of(world.secrets);
    return change(world, { ask: (...asked) => harness.run(...asked), secret, space });
  };
  for (let round = 0; round < 10; round += 1) {
    await atOnce(
      draw,
      Array.from({ length: 3 + draw.below(14) }, () => one),
    );
    if (!isOff) judged.unlawful.push(...(await staleIn(world)));
  }
  return judged;
}

/** What the primary has more than the other one. */
async function batchFor(primary: Harness, follower: Harness): Promise<Change | undefined> {
  const [from, to] = [follower.machine.cursor()!, primary.machine.cursor()!];
  const entries = (await primary.machine.globalEntries(from.seq, 1 << 24)) ?? [];
  const { epoch } = to;
  return entries.length === 0 ? undefined : { type: 'global-log.apply', epoch, from, entries, to };
}

/** A datacenter that follows, where tokens of its own are written while revocations come in. */
async function following(seed: number): Promise<Judged> {
  const draw = new Draw(seed);
  const [primary, follower] = [await createHarness(), await createHarness()];
  const propose = async ({ deps }: Harness, change: Change): Promise<void> => {
    const command = { change, timeMs: deps.clock.wallMs(), cas: undefined, request: undefined };
    t.equal((await deps.propose(command)).kind, 'applied', change.type);
  };
  const begin = { type: 'global-log.begin', primary: 'dc1', isWitness: false } as const;
  await propose(primary, { ...begin, datacenter: 'dc1' });
  await propose(follower, { ...begin, datacenter: 'dc2' });
  // What is made here has other ids than what is made there.
  for (let drawn = 0; drawn < 5_000; drawn += 1) follower.deps.random.uuid();
  const shared = new World(primary, draw);
  await shared.fill();
  const world = Object.assign(new World(follower, draw), { ...shared, harness: follower });
  const tokens = [...shared.tokens];
  Object.assign(world, { tokens, secrets: [...shared.secrets] });
  await propose(follower, (await batchFor(primary, follower))!);
  const judged = judge(follower);
  const ask: Ask = (name, input, call) =>
    follower.door.runForOther({ name, input, call: { ...CALL, ...call } });
  const space = (home: string | undefined) => (draw.often(8) ? home : draw.of(SPACES));
  const local = () => {
    const asker = { ask, secret: draw.of(world.secrets), space };
    return changeToken(world, asker, { local: true });
  };
  const byRoot: Asker = {
    ask: (name, input, call) => primary.run(name, input, call),
    secret: ROOT,
    space: (home) => home,
  };
  for (let round = 0; round < 10; round += 1) {
    for (let more = draw.below(5); more >= 0; more -= 1) {
      await refusable(change(shared, byRoot));
    }
    const batch = await batchFor(primary, follower);
    const come = batch === undefined ? [] : [() => propose(follower, batch)];
    const before = Array.from({ length: draw.below(5) }, () => local);
    const behind = Array.from({ length: 2 + draw.below(8) }, () => local);
    await atOnce(draw, [...before, ...come, ...behind]);
    judged.unlawful.push(...(await staleIn(world)));
  }
  t.same(follower.machine.digests().global, primary.machine.digests().global);
  return judged;
}

const WORLDS = { alone, following };

for (const [where, run] of Object.entries(WORLDS)) {
  t.test(
    `the log, ${where}: what takes effect is allowed there, whatever comes at once`,
    async (t) => {
      const effects = new Map<string, number>();
      for (let seed = SEED; seed < SEED + RUNS; seed += 1) {
        const judged = await run(seed);
        const again = `CONCLAVE_SEED=${seed} CONCLAVE_RUNS=1 node ${process.argv[1]}`;
        t.same(judged.unlawful, [], again);
        for (const [type, count] of judged.effects) {
          effects.set(type, (effects.get(type) ?? 0) + count);
        }
      }
      t.comment(JSON.stringify(Object.fromEntries(effects)));
      const needed = where === 'alone' ? 8 : 3;
      t.ok(RUNS < 15 || effects.size >= needed, 'changes of all kinds took effect');
    },
  );
}
