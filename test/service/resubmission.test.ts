// Entries that were left behind on a fork, made anew where the primary is now: what each kind of them becomes, and
// over what it is put.

import t from 'tap';
import type { AccessorId, NamespaceName } from '../../src/acl/ids.ts';
import type { Call } from '../../src/service/call.ts';
import type { OperationInput, OperationName } from '../../src/service/operations.ts';
import { changeOfEntry } from '../../src/service/operators/resubmission.ts';
import { type EntryObject, objectsOf } from '../../src/state/global-log/entry-objects.ts';
import { decodeEntry, type GlobalEntry } from '../../src/state/global-log/global-entry.ts';
import { anotherSystem, lastEntry } from '../http/operator/cases.ts';
import { operatorServer } from '../http/operator-support.ts';
import { CALL, type Harness, newPolicy, refusalOf } from './harness.ts';

type Run = <Name extends OperationName>(
  name: Name,
  input: OperationInput<Name>,
  call?: Partial<Call>,
) => Promise<Uint8Array>;

/** Runs an operation in a system that was left behind, and gives the entry that it made. */
async function elsewhere() {
  const harness = await anotherSystem();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  let lastId = '';
  const run: Run = async (name, input, call) => {
    await harness.run(name, input, call);
    const entry = await lastEntry(harness);
    lastId = objectsOf(decodeEntry(entry))[0]?.id ?? '';
    return entry;
  };
  return { harness, run, idOf: () => lastId };
}

/** The primary, where nothing is of what was left behind. */
async function primary() {
  const { operator, harness } = await operatorServer();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const take = (entry: Uint8Array, cas?: number) =>
    refusalOf(operator.runForDatacenter('divergence-take', { entry, cas }, CALL));
  const indexIn = (refusal: string): number => Number(/ModifyIndex (\d+): look/.exec(refusal)?.[1]);
  return { harness, take, indexIn };
}

interface Life {
  readonly made: Uint8Array;
  readonly changed: Uint8Array;
  readonly deleted: Uint8Array;
}

const DESCRIBED = 'as it was left behind';
const TEAM = { namespaceParameter: 'team' };
const METHOD = { name: 'm', type: 'jwt', config: {} };

/** What becomes of one object, there. */
const LIVES: Readonly<Record<string, (run: Run, idOf: () => string) => Promise<Life>>> = {
  token: async (run, idOf) => ({
    made: await run('token.create', { draft: {} }),
    changed: await run('token.update', {
      accessorId: idOf(),
      draft: { description: DESCRIBED },
    }),
    deleted: await run('token.delete', { accessorId: idOf() }),
  }),
  policy: async (run, idOf) => ({
    made: await run('policy.create', { draft: { name: 'p' } }),
    changed: await run('policy.update', {
      id: idOf(),
      draft: { name: 'p', description: DESCRIBED },
    }),
    deleted: await run('policy.delete', { id: idOf() }),
  }),
  role: async (run, idOf) => ({
    made: await run('role.create', { draft: { name: 'r' } }),
    changed: await run('role.update', { id: idOf(), draft: { name: 'r', description: DESCRIBED } }),
    deleted: await run('role.delete', { id: idOf() }),
  }),
  'binding-rule': async (run, idOf) => {
    await run('auth-method.create', { draft: METHOD }, TEAM);
    const draft = { authMethod: 'm', bindType: 'service', bindName: 's' };
    return {
      made: await run('binding-rule.create', { draft }, TEAM),
      changed: await run(
        'binding-rule.update',
        { id: idOf(), draft: { ...draft, description: DESCRIBED } },
        TEAM,
      ),
      deleted: await run('binding-rule.delete', { id: idOf() }, TEAM),
    };
  },
  'auth-method': async (run) => {
    const made = await run('auth-method.create', { draft: METHOD }, TEAM);
    const draft = { ...METHOD, description: DESCRIBED };
    const changed = await run('auth-method.update', { name: 'm', draft }, TEAM);
    // It goes with its rules, by one entry.
    const rule = { authMethod: 'm', bindType: 'service', bindName: 's' };
    await run('binding-rule.create', { draft: rule }, TEAM);
    return { made, changed, deleted: await run('auth-method.delete', { name: 'm' }, TEAM) };
  },
  namespace: async (run) => ({
    made: await run('namespace.create', { draft: { name: 'n' } }),
    changed: await run('namespace.update', { name: 'n', draft: { description: DESCRIBED } }),
    deleted: await run('namespace.delete', { name: 'n' }),
  }),
};

/** By such a change clients make one, too. */
const UPSERTED = ['auth-method', 'namespace'];

for (const [kind, live] of Object.entries(LIVES)) {
  t.test(`divergence: a ${kind} is put over, or deleted, as it was looked at`, async (t) => {
    const { run, idOf } = await elsewhere();
    const { made, changed, deleted } = await live(run, idOf);
    const { harness, take, indexIn } = await primary();
    if (kind === 'binding-rule') await harness.run('auth-method.create', { draft: METHOD }, TEAM);
    const [{ id }] = objectsOf(decodeEntry(changed)) as [EntryObject];
    const shown = () => objectHere(harness, kind, id)?.description;
    if (UPSERTED.includes(kind)) {
      const gone = 'the object was changed by the entry, and has been deleted since';
      t.equal(await take(changed), `cas-mismatch: ${gone}: name cas=0 to make it anew`);
      t.equal(shown(), undefined, 'nobody is to find again what was deleted');
      t.equal(await take(changed, 0), 'ok');
      t.equal(shown(), DESCRIBED);
      t.match(await take(made), /^cas-mismatch: the object is there/);
    } else {
      for (const cas of [undefined, 0]) {
        t.match(await take(changed, cas), /^(?!ok|cas-mismatch)/, 'what is gone is not changed');
      }
      t.equal(await take(made), 'ok');
      t.equal(shown(), '');
      const blind = await take(changed);
      t.match(blind, /^cas-mismatch: the object is there/);
      t.equal(shown(), '');
      t.equal(await take(changed, indexIn(blind)), 'ok');
      t.equal(shown(), DESCRIBED);
    }
    const index = indexIn(await take(deleted));
    t.equal(shown(), DESCRIBED);
    t.equal(await take(deleted, index), 'ok');
    t.equal(shown(), undefined);
  });
}

t.test('divergence: what a client has asked for again meanwhile is not made twice', async (t) => {
  const { run } = await elsewhere();
  const draft = { name: 'asked-again' };
  const entry = await run('policy.create', { draft }, { requestId: 'one' });
  const { harness, take } = await primary();
  await newPolicy(harness, 'another', '');
  await harness.run('policy.create', { draft }, { requestId: 'one' });
  const { policies } = harness.machine.totals();
  t.equal(await take(entry), 'ok');
  t.equal(harness.machine.totals().policies, policies);
});

t.test('divergence: an entry that no single change makes is to be discarded', async (t) => {
  const { run } = await elsewhere();
  const method = decodeEntry(await run('auth-method.create', { draft: METHOD }, TEAM));
  const policy = decodeEntry(await run('policy.create', { draft: { name: 'p' } }));
  const effects = [method, policy].flatMap(({ body }) =>
    body.kind === 'effects' ? body.effects : [],
  );
  const both: GlobalEntry = { ...policy, body: { kind: 'effects', effects } };
  t.throws(() => changeOfEntry(both), /it changed many objects at once/);
  t.throws(() => changeOfEntry({ ...policy, body: { kind: 'reset' } }), /it changed no object/);
});

function objectHere(
  { machine }: Harness,
  kind: string,
  id: string,
): { readonly description: string } | undefined {
  switch (kind) {
    case 'token':
      return machine.token(id as AccessorId);
    case 'policy':
      return machine.policy(id);
    case 'role':
      return machine.role(id);
    case 'binding-rule':
      return machine.bindingRule(id);
    case 'auth-method':
      return machine.authMethod('team' as NamespaceName, id);
    default:
      return machine.namespace(id);
  }
}
