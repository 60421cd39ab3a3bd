// What callers write means one thing wherever it is read: an id with its hyphens elsewhere, a name that looks like
// an id, a namespace without a name, a place in a list of another namespace. And two requests of one moment mean
// what they would mean one after the other.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { ANONYMOUS_ACCESSOR, type SecretId } from '../../src/acl/ids.ts';
import type { ReadMeta } from '../../src/service/views.ts';
import {
  allOf,
  createHarness,
  type Harness,
  newPolicy,
  newToken,
  ROOT,
  refusalOf,
} from './harness.ts';

/** 36 characters with 32 hexadecimal digits and four hyphens, as an id has them; and a DNS label. */
const LIKE_AN_ID = 'fedcba9876543210fedcba987654-3-2-1-0';

/** The same digits, each hyphen a place further. */
function shifted(id: string): string {
  const digits = id.replaceAll('-', '');
  return `-${digits.slice(0, 8)}-${digits.slice(8, 16)}-${digits.slice(16, 24)}-${digits.slice(24)}`;
}

async function mayWriteKeys(harness: Harness, secret: SecretId): Promise<boolean> {
  const items = [{ resource: 'key', access: 'write', segment: 'k', namespace: undefined }];
  const [answer] = await harness.run('authorize', { items, explain: false }, { secret });
  return answer?.allow === true;
}

/** Whether a change ends the wait behind a read before its time is over. */
async function isWokenBy(
  { clock, door }: Harness,
  { index, watch }: ReadMeta,
  change: () => Promise<unknown>,
): Promise<boolean> {
  let isWoken = false;
  const waiting = door.changesWithin(watch, index, 60_000).then(() => {
    isWoken = true;
  });
  await change();
  clock.advance(0);
  await new Promise((resolve) => setImmediate(resolve));
  const wasInTime = isWoken;
  clock.advance(60_000);
  await waiting;
  return wasInTime;
}

t.test('lists: a page of one namespace, or of another kind, begins in no other', async (t) => {
  const harness = await createHarness();
  for (const name of ['aside', 'team']) {
    const inside = { namespaceParameter: name };
    await harness.run('namespace.create', { draft: { name } });
    await newPolicy(harness, 'one', 'acl = "read"', name);
    await newPolicy(harness, 'two', '', name);
    await harness.run('role.create', { draft: { name: 'one' } }, inside);
    const draft = { name: 'one', type: 'jwt', config: {} };
    await harness.run('auth-method.create', { draft }, inside);
  }
  const { secretId: secret } = await newToken(harness, {
    namespace: 'team',
    policies: [{ name: 'one' }],
  });
  const kinds = ['policy.list', 'role.list', 'auth-method.list'] as const;
  for (const kind of kinds) {
    for (const after of ['aside/a', 'default/0', 'tean/a', '/a', 'one', LIKE_AN_ID]) {
      const input = { policy: undefined, page: { after } };
      const listed = harness.run(kind, input, { secret }).then((list) => allOf<unknown>(list));
      t.equal(
        await refusalOf(listed),
        `invalid: Invalid next: "${after}" is no place in this list`,
        kind,
      );
    }
  }
  for (const kind of kinds) {
    const input = { policy: undefined, page: { after: 'one' } };
    const listed = harness.run(kind, input, { secret: ROOT, namespaceParameter: '*' });
    t.match(
      await refusalOf(listed.then((list) => allOf<unknown>(list))),
      /Invalid next: "one"/,
      kind,
    );
  }
  const behind = async (after: string) => {
    const list = await harness.run('policy.list', { page: { after } }, { secret });
    return (await allOf(list)).map(({ policy }) => `${policy.namespace}/${policy.name}`);
  };
  t.same(await behind('team/one'), ['team/two']);
  const ofNamespaces = harness.run(
    'namespace.list',
    { page: { after: 'team/one' } },
    { secret: ROOT },
  );
  t.match(
    await refusalOf(ofNamespaces.then((list) => allOf<unknown>(list))),
    /Invalid next: "team/,
  );
});

t.test('namespaces: the defaults of one whose name looks like an id end at once', async (t) => {
  for (const name of ['plain', LIKE_AN_ID]) {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name } });
    const id = await newPolicy(harness, 'p', 'key_prefix "" { policy = "write" }', name);
    const giveDefaults = (policyDefaults: readonly { readonly id: string }[]) =>
      harness.run('namespace.update', { name, draft: { policyDefaults } });
    const { secretId } = await newToken(harness, { namespace: name });
    t.notOk(await mayWriteKeys(harness, secretId), name);
    await giveDefaults([{ id }]);
    t.ok(await mayWriteKeys(harness, secretId), name);
    await giveDefaults([]);
    t.notOk(await mayWriteKeys(harness, secretId), name);
  }
});

t.test('namespaces: whoever waits for one whose name looks like an id is woken', async (t) => {
  const harness = await createHarness();
  const name = LIKE_AN_ID;
  const read = await harness.run('namespace.read', { name });
  const create = () => harness.run('namespace.create', { draft: { name } });
  t.ok(await isWokenBy(harness, read.meta, create));
});

t.test('authorize: an empty namespace is none, and what is no name is refused', async (t) => {
  const harness = await createHarness();
  const rules = [
    'key_prefix "" { policy = "deny" }',
    'service_prefix "" { policy = "write" }',
    'namespace_prefix "" { key_prefix "" { policy = "write" } service_prefix "" { policy = "deny" } }',
  ];
  const id = await newPolicy(harness, 'p', rules.join('\n'));
  const { secretId: secret } = await newToken(harness, { policies: [{ id }] });
  const ask = (namespace: string | undefined) => {
    const items = ['key', 'service'].map((resource) => {
      return { resource, access: 'write', segment: 'k', namespace };
    });
    return harness.run('authorize', { items, explain: false }, { secret });
  };
  for (const namespace of [undefined, '', 'default']) {
    const answers = await ask(namespace);
    t.same(
      answers.map(({ allow }) => allow),
      [false, true],
      String(namespace),
    );
  }
  t.equal(await refusalOf(ask('*')), 'malformed: Only lists can be asked for all namespaces');
  t.equal(
    await refusalOf(ask('Team/x')),
    'malformed: Invalid namespace "Team/x": no namespace has such a name',
  );
});

t.test('links: a name is no id, whether the object was just read or not', async (t) => {
  const harness = await createHarness();
  await newPolicy(harness, 'p', '');
  await harness.run('role.create', { draft: { name: 'r' } });
  const policies = [{ id: 'default/p' }];
  const roles = [{ id: 'DEFAULT/R' }];
  const page = {};
  for (const what of ['not read yet', 'read by its name']) {
    t.equal(
      await refusalOf(harness.run('token.create', { draft: { policies } })),
      'invalid: No such ACL policy with ID "default/p"',
      what,
    );
    t.equal(
      await refusalOf(harness.run('token.create', { draft: { roles } })),
      'invalid: No such ACL role with ID "DEFAULT/R"',
      what,
    );
    await harness.run('policy.read-by-name', { name: 'p' });
    await harness.run('role.read-by-name', { name: 'r' });
  }
  // The built-in of that name is in `default`, and its name has a slash.
  const builtin = 'builtin/global-read-only';
  t.equal(await refusalOf(harness.run('policy.read-by-name', { name: builtin })), 'ok');
  const elsewhere = { namespaceParameter: 'default/builtin' };
  const name = 'global-read-only';
  for (const read of [
    harness.run('policy.read-by-name', { name }, elsewhere),
    harness.run('policy.list', { page }, elsewhere),
  ]) {
    t.match(await refusalOf(read), /^malformed: Invalid namespace "default\/builtin"/);
  }
});

t.test('tokens: a copy waits for a change of its source, wherever the hyphens are', async (t) => {
  for (const write of [(id: string) => id, shifted, (id: string) => shifted(id).toUpperCase()]) {
    const harness = await createHarness();
    const policies = [{ id: await newPolicy(harness, 'p', '') }];
    const { accessorId } = await newToken(harness, { policies });
    const changed = harness.run('token.update', { accessorId, draft: {} });
    const copied = harness.run('token.clone', {
      accessorId: write(accessorId),
      description: undefined,
      namespace: undefined,
    });
    await changed;
    t.same((await copied).value.token.policies, [], write(accessorId));
  }
});

t.test('tokens: whoever waits for one is woken, wherever the hyphens are', async (t) => {
  const harness = await createHarness();
  const { accessorId } = await newToken(harness);
  const read = { accessorId: shifted(accessorId), expanded: false };
  const { meta } = await harness.run('token.read', read);
  t.ok(await isWokenBy(harness, meta, () => harness.run('token.delete', { accessorId })));
});

t.test('tokens: one whose namespace is gone is neither changed nor copied', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const { accessorId } = await newToken(harness, { namespace: 'team', local: true });
  const namespace = 'team';
  const update = () =>
    harness.run('token.update', { accessorId, draft: { local: true, namespace } });
  const clone = () => harness.run('token.clone', { accessorId, description: '', namespace });
  t.equal(await refusalOf(update()), 'ok');
  t.equal(await refusalOf(clone()), 'ok');
  // As when the deletion of the namespace has come from the primary.
  harness.machine.namespaceLostUpTo = () => Number.MAX_SAFE_INTEGER;
  t.equal(await refusalOf(update()), `update-target-missing: Cannot find token "${accessorId}"`);
  t.match(await refusalOf(clone()), /^token-not-found: token does not exist/);
});

t.test('auth methods: one that is deleted in that moment is not made again', async (t) => {
  const harness = await createHarness();
  const draft = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft });
  const { type: _type, ...typeless } = draft;
  const update = () =>
    harness.run('auth-method.update', { name: 'm', draft: { ...typeless, description: 'new' } });
  t.equal(await refusalOf(update()), 'ok');
  const deleted = harness.run('auth-method.delete', { name: 'm' });
  const late = refusalOf(update());
  t.equal((await deleted).value, true);
  t.match(await late, /^invalid: Invalid Auth Method: Type should be one of/);
  t.match(await refusalOf(harness.run('auth-method.read', { name: 'm' })), /^not-found: /);
});

t.test('bootstrap: of two at once with one secret, both get the token', async (t) => {
  const harness = await createHarness({ initialManagementSecret: undefined });
  const secret = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757a';
  const boot = (given: string | undefined) =>
    harness.run('bootstrap', { secret: given }, { secret: undefined });
  const [first, stranger, second] = await Promise.allSettled([
    boot(secret),
    boot(undefined),
    boot(secret),
  ]);
  t.equal(first.status === 'fulfilled' && first.value.value.token.secretId, secret);
  t.equal(second.status === 'fulfilled' && second.value.value.token.secretId, secret);
  t.equal(second.status === 'fulfilled' && second.value.meta.replayed, true);
  t.equal(stranger.status, 'rejected');
  t.equal(
    await refusalOf(harness.run('token.read-self', {}, { secret: ROOT })),
    'token-unknown: token does not exist: ACL not found',
  );
});

t.test('bootstrap: of two at once with one secret, both get the token of a reset', async (t) => {
  const harness = await createHarness();
  const made = () => harness.machine.totals().tokens;
  const before = made();
  harness.resetIndex = harness.machine.bootstrapIndex();
  harness.resetSecret = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757a';
  const boot = (secret: string | undefined) =>
    refusalOf(harness.run('bootstrap', { secret }, { secret: undefined }));
  const { resetSecret } = harness;
  const other = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757b';
  const [first, stranger, second, third] = await Promise.all([
    boot(resetSecret),
    boot(undefined),
    boot(resetSecret),
    boot(other),
  ]);
  t.same([first, second], ['ok', 'ok']);
  const refused = `permission-denied: Permission denied: ACL bootstrap no longer allowed (reset index: ${harness.machine.bootstrapIndex()})`;
  t.same([stranger, third], [refused, refused]);
  t.equal(made(), before + 1, 'and it is made once');
});

t.test('bootstrap: what a write has to wait for does not use the reset index up', async (t) => {
  let closed: AclError | undefined;
  const harness = await createHarness({}, { closedBecause: () => closed });
  const resetIndex = harness.machine.bootstrapIndex();
  harness.resetIndex = resetIndex;
  const boot = () =>
    refusalOf(harness.run('bootstrap', { secret: undefined }, { secret: undefined }));
  closed = new AclError('unavailable', 'Nothing was written');
  t.equal(await boot(), 'unavailable: Nothing was written');
  t.equal(harness.resetIndex, resetIndex);
  closed = undefined;
  const draft = { description: 'changed in that moment' };
  const changed = harness.run('token.update', { accessorId: ANONYMOUS_ACCESSOR, draft });
  t.equal(await boot(), 'ok', 'whoever calls may be anybody, whose rights are being changed');
  t.equal((await changed).value.token.description, draft.description);
});
