// What is taken away stays away, whatever was under way.

import t from 'tap';
import { ANONYMOUS_ACCESSOR, type NamespaceName, type SecretId } from '../../../src/acl/ids.ts';
import type { Call } from '../../../src/service/call.ts';
import { Overtaken, untilNotOvertaken } from '../../../src/service/writes/under-way.ts';
import type { TableName } from '../../../src/state/view.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { createHarness, newPolicy, newToken, refusalOf, secretWith } from '../harness.ts';
import { ask, askOften } from './cases.ts';

t.test(
  'rights: what is taken away does not come back by an update that was under way',
  async (t) => {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    const admin = await newPolicy(harness, 'admin', 'acl = "write"', 'team');
    const policies = [{ id: admin }, { id: await newPolicy(harness, 'reading', 'acl = "read"') }];
    const { secretId: secret } = await newToken(harness, { namespace: 'team', policies });
    const owning = 'acl = "read" namespace "team" { policy = "write" }';
    const rulesOwner = await secretWith(harness, owning);
    const lent = [{ id: admin }, { id: '00000000-0000-0000-0000-000000000001' }];
    const { accessorId } = await newToken(harness, { namespace: 'team', policies: lent });
    const { value: made } = await harness.run('role.create', {
      draft: { name: 'lent', namespace: 'team', policies: lent },
    });
    const { id } = made.role;
    const { machine } = harness;
    const namespace = 'team';
    const asToken = (policies: readonly { readonly id: string }[]) => ({
      accessorId,
      draft: { policies, namespace },
    });
    const asRole = (policies: readonly { readonly id: string }[]) => ({
      id,
      draft: { name: 'lent', policies, namespace },
    });
    const cases = {
      token: {
        take: () => harness.run('token.update', asToken([])),
        keep: (cas: number | undefined) =>
          harness.run('token.update', asToken(lent), { secret, cas }),
        lend: () => harness.run('token.update', asToken(lent)),
        held: () => machine.token(accessorId)!,
        policies: () => machine.token(accessorId)!.policies,
      },
      role: {
        take: () => harness.run('role.update', asRole([])),
        keep: (cas: number | undefined) =>
          harness.run('role.update', asRole(lent), { secret, cas }),
        lend: () => harness.run('role.update', asRole(lent)),
        held: () => machine.role(id)!,
        policies: () => machine.role(id)!.policies,
      },
      namespace: {
        take: () =>
          harness.run('namespace.update', { name: 'team', draft: { policyDefaults: [] } }),
        keep: (cas: number | undefined) =>
          harness.run(
            'namespace.update',
            { name: 'team', draft: { policyDefaults: lent } },
            { secret: rulesOwner, cas },
          ),
        lend: () =>
          harness.run('namespace.update', { name: 'team', draft: { policyDefaults: lent } }),
        held: () => machine.namespace('team' as NamespaceName)!,
        policies: () => machine.namespace('team' as NamespaceName)!.policyDefaults,
      },
    };
    for (const [what, { take, keep, lend, held, policies: linked }] of Object.entries(cases)) {
      await lend();
      const both = await Promise.all([keep(undefined), keep(undefined)].map(refusalOf));
      t.same(both, ['ok', 'ok'], `${what}: whom nobody takes it from goes on`);
      const named = keep(held().modifyIndex);
      t.equal(await refusalOf(named), 'ok', `${what}: the client may name what it saw`);
      for (const guess of [undefined, machine.index() + 1]) {
        const taken = refusalOf(take());
        // A client may guess which index the change gets that takes the link away.
        const overtaken = await refusalOf(keep(guess));
        t.equal(await taken, 'ok');
        const says = /^permission-denied: .* 'acl:write'/;
        t.match(overtaken, says, `${what}, cas ${guess}`);
        t.same(linked(), [], `${what}: it stays away`);
        await lend();
      }
    }
  },
);

t.test(
  'rights: a namespace that is deleted does not come back with what was lent to it',
  async (t) => {
    const harness = await createHarness();
    const lent = [{ id: '00000000-0000-0000-0000-000000000001' }];
    const draft = { policyDefaults: lent };
    await harness.run('namespace.create', { draft: { name: 'team', ...draft } });
    const secret = await secretWith(harness, 'namespace "team" { policy = "write" }');
    const keep = () =>
      refusalOf(harness.run('namespace.update', { name: 'team', draft }, { secret }));
    t.equal(await keep(), 'ok');
    const deleted = refusalOf(harness.run('namespace.delete', { name: 'team' }));
    const kept = keep();
    t.equal(await deleted, 'ok');
    t.match(await kept, /^permission-denied: /);
  },
);

t.test(
  'rights: a copy that is made while its source changes has what the source has then',
  async (t) => {
    const harness = await createHarness();
    const policies = [{ id: await newPolicy(harness, 'reading', 'acl = "read"') }];
    const { accessorId } = await newToken(harness, { policies });
    const clone = { accessorId, description: undefined, namespace: undefined };
    const taken = harness.run('token.update', { accessorId, draft: {} });
    const [{ value }] = await Promise.all([harness.run('token.clone', clone), taken]);
    t.same(value.token.policies, []);
    const deleted = harness.run('token.delete', { accessorId });
    t.match(await refusalOf(harness.run('token.clone', clone)), /^token-not-found: /);
    await deleted;
  },
);

t.test('rights: an auth method that is deleted does not come back by an update', async (t) => {
  const harness = await createHarness();
  const draft = { type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: { ...draft, name: 'm' } });
  const update = harness.run('auth-method.update', { name: 'm', draft: { config: {} } });
  const deletion = harness.run('auth-method.delete', { name: 'm' });
  t.match(await refusalOf(update), /^invalid: Invalid Auth Method: Type should be one of/);
  t.equal((await deletion).value, true);
  t.equal(harness.machine.authMethod('default' as NamespaceName, 'm'), undefined);
});

t.test('rights: nobody puts back the rights that are taken from them in that moment', async (t) => {
  const admin = 'acl = "write"';
  const kinds: readonly TableName[] = ['tokens', 'roles', 'policies', 'namespaces'];
  for (const kind of kinds) {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    const id = await newPolicy(harness, 'admin', admin, 'team');
    const policies = [{ id }];
    const operator = await newPolicy(harness, 'operator', 'operator = "write"');
    const role = { name: 'r', namespace: 'team', policies };
    const { value: made } = await harness.run('role.create', { draft: role });
    const roleId = made.role.id;
    const { accessorId, secretId: secret } = await newToken(harness, {
      namespace: 'team',
      ...(kind === 'tokens' && { policies }),
      ...(kind === 'roles' && { roles: [{ id: roleId }] }),
      ...(kind === 'policies' && { policies }),
      ...(kind === 'namespaces' && { policies: [{ id: operator }] }),
    });
    const name = 'team';
    const withDefaults = (links: readonly { readonly id: string }[]) => ({
      name,
      draft: { policyDefaults: links },
    });
    if (kind === 'namespaces') await harness.run('namespace.update', withDefaults(policies));
    const write = (isGiven: boolean, call: Partial<Call>): Promise<unknown> => {
      const links = isGiven ? policies : [];
      switch (kind) {
        case 'tokens':
          return harness.run(
            'token.update',
            { accessorId, draft: { policies: links, namespace: name } },
            call,
          );
        case 'roles':
          return harness.run(
            'role.update',
            { id: roleId, draft: { name: 'r', policies: links, namespace: name } },
            call,
          );
        case 'policies': {
          const rules = isGiven ? admin : '';
          return harness.run(
            'policy.update',
            { id, draft: { name: 'admin', rules, namespace: name } },
            call,
          );
        }
        default:
          return harness.run('namespace.update', withDefaults(links), call);
      }
    };
    t.equal(
      await refusalOf(write(true, { secret })),
      'ok',
      `${kind}: it may, as long as it has them`,
    );
    const taken = refusalOf(write(false, {}));
    const givenBack = refusalOf(write(true, { secret }));
    t.equal(await taken, 'ok', kind);
    t.match(await givenBack, /^permission-denied: /, kind);
    t.match(await refusalOf(write(true, { secret })), /^permission-denied: /, kind);
  }
});

t.test('rights: whoever comes without a token keeps nothing, either', async (t) => {
  const harness = await createHarness();
  const policies = [{ id: await newPolicy(harness, 'admin', 'acl = "write"') }];
  const call = { secret: undefined };
  const accessorId = ANONYMOUS_ACCESSOR;
  const write = (isGiven: boolean, by: Partial<Call>) =>
    refusalOf(harness.run('token.update', { accessorId, draft: isGiven ? { policies } : {} }, by));
  t.equal(await write(true, {}), 'ok');
  t.equal(await write(true, call), 'ok', 'it may, as long as it has them');
  const taken = write(false, {});
  const givenBack = write(true, call);
  t.equal(await taken, 'ok');
  t.match(await givenBack, /^permission-denied: /);
});

t.test('rights: a write that is overtaken all the time gives up in time', async (t) => {
  const clock = new FakeClock();
  let count = 0;
  const run = (): Promise<never> => {
    count += 1;
    clock.advance(1_000);
    return Promise.reject(new Overtaken(Promise.resolve()));
  };
  const running = untilNotOvertaken({ clock, limitMs: 5_000 }, run);
  t.match(await refusalOf(running), /^unavailable: nothing was written: /);
  t.equal(count, 5);
});

t.test('rights: the very next request sees every change of them', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'p', 'acl = "read"');
  const role = async (name: string) =>
    (await harness.run('role.create', { draft: { name, policies: [{ id: policy }] } })).value.role
      .id;
  const may = async (secret: SecretId) => (await askOften(harness, secret)) === 'ok';
  const secretOf = async (draft: object) => (await newToken(harness, draft)).secretId;
  const reading = { name: 'p', rules: 'acl = "read"' };

  const direct = await secretOf({ policies: [{ id: policy }] });
  const roleId = await role('r');
  const viaRole = await secretOf({ roles: [{ id: roleId }] });
  t.ok((await may(direct)) && (await may(viaRole)));
  await harness.run('policy.update', { id: policy, draft: { name: 'p', rules: '' } });
  t.notOk((await may(direct)) || (await may(viaRole)), 'a policy changed');
  await harness.run('policy.update', { id: policy, draft: reading });
  t.ok((await may(direct)) && (await may(viaRole)), 'and changed back');

  await harness.run('role.update', { id: roleId, draft: { name: 'r' } });
  t.notOk(await may(viaRole), 'a role changed');
  await harness.run('role.update', {
    id: roleId,
    draft: { name: 'r', policies: [{ id: policy }] },
  });
  t.ok(await may(viaRole));
  await harness.run('role.delete', { id: roleId });
  t.notOk(await may(viaRole), 'a role deleted');

  const changing = await newToken(harness, { policies: [{ id: policy }] });
  const { accessorId } = changing;
  t.ok(await may(changing.secretId));
  await harness.run('token.update', { accessorId, draft: {} });
  t.notOk(await may(changing.secretId), 'a token changed');
  await harness.run('token.update', { accessorId, draft: { policies: [{ id: policy }] } });
  t.ok(await may(changing.secretId));
  await harness.run('token.delete', { accessorId });
  t.equal(await ask(harness, 'policy.list', changing.secretId), 'token-unknown: ACL not found');
  await newToken(harness, {
    secretId: changing.secretId,
    policies: [{ id: policy }],
  });
  t.ok(await may(changing.secretId), 'a secret is known at once, though it was unknown before');

  const ttl = { expirationTtlNs: 60_000_000_000n, policies: [{ id: policy }] };
  const expiring = await secretOf(ttl);
  t.ok(await may(expiring));
  harness.clock.advance(60_000);
  t.ok(await may(expiring), 'its last millisecond');
  harness.clock.advance(1);
  t.notOk(await may(expiring), 'a token expired');

  await harness.run('policy.delete', { id: policy });
  t.notOk(await may(direct), 'a policy deleted');
});
