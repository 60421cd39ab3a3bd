// Lists of another datacenter, page by page.

import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import {
  type ListPage,
  listOfPages,
  pageOf,
} from '../../../src/service/datacenters/remote-list.ts';
import type { ListResult, PolicyView } from '../../../src/service/views.ts';
import { allOf, CALL, createHarness, newPolicy, newToken, ROOT, secretWith } from '../harness.ts';
import { noFilter, PAGE, settled, twoDatacenters } from './cases.ts';

t.test('datacenters: a list of another one comes page by page', async (t) => {
  const two = await twoDatacenters();
  for (let number = 0; number < 7; number += 1) await newToken(two.primary);
  const wanted = (await allOf(await two.primary.run('token.list', noFilter()))).length;
  const there = { datacenter: 'dc1' };
  const all = await allOf(await settled(two, two.secondary.run('token.list', noFilter(), there)));
  t.equal(all.length, wanted);
  const page = { ...noFilter(), page: { limit: 3 } };
  const first: ListResult<unknown> = await settled(
    two,
    two.secondary.run('token.list', page, there),
  );
  t.equal((await allOf(first)).length, 3);
  const rest = { ...noFilter(), page: { after: first.next() } };
  t.equal(
    (await allOf(await settled(two, two.secondary.run('token.list', rest, there)))).length,
    wanted - 3,
  );
});

t.test('datacenters: no other one is sent a secret that its reader is not shown', async (t) => {
  const harness = await createHarness();
  const reader = await secretWith(harness, 'acl = "read"');
  const shared = await newToken(harness);
  const local = await newToken(harness, { local: true });
  for (const secret of [ROOT, reader]) {
    const call = { ...CALL, secret };
    const list = { name: 'token.list', input: noFilter(), call } as const;
    const reads = [shared, local].map(({ accessorId }) => {
      return { name: 'token.read', input: { accessorId, expanded: false }, call } as const;
    });
    for (const asked of [list, ...reads]) {
      const sent = JSON.stringify(await harness.door.runForDatacenter(asked, 'dc2'));
      const isAbout = sent.includes(shared.accessorId);
      t.equal(sent.includes(shared.secretId), isAbout && secret === ROOT, asked.name);
      t.notOk(sent.includes(local.secretId), `${asked.name}: nor that of a local token`);
    }
  }
});

t.test('list pages: one of long objects ends early, and says where to go on', async (t) => {
  const harness = await createHarness();
  const rules = `# ${'x'.repeat(300_000)}`;
  for (let place = 0; place < 12; place += 1) await newPolicy(harness, `p${place + 10}`, rules);
  const asked: number[] = [];
  const list = await listOfPages<PolicyView>({}, async (page) => {
    const got = await pageOf(await harness.run('policy.list', { page }));
    asked.push(got.items.length);
    return got;
  });
  const names = (await allOf(list)).map(({ policy }) => policy.name);
  t.same(names.filter((name) => name.startsWith('p')).length, 12, 'all of them');
  t.equal(new Set(names).size, names.length, 'each once');
  t.ok(asked.length > 2 && Math.max(...asked) < 8, `in pages of ${asked.join(', ')}`);
});

t.test('list pages: one that is too large is asked for again with fewer objects', async (t) => {
  const limits: (number | undefined)[] = [];
  const meta = (await (await createHarness()).run('policy.list', PAGE)).meta;
  const list = await listOfPages<number>({}, async ({ after, limit = 0 }) => {
    limits.push(limit);
    if (limit > 20) throw new AclError('body-too-large', 'too large');
    const start = Number(after ?? 0);
    const items = Array.from({ length: Math.min(limit, 30 - start) }, (_, at) => start + at);
    const end = start + items.length;
    const page: ListPage<number> = { items, next: end < 30 ? String(end) : undefined, meta };
    return page;
  });
  t.same(
    await allOf(list),
    Array.from({ length: 30 }, (_, at) => at),
  );
  t.same(limits, [200, 50, 13, 13, 13]);
  t.equal(list.next(), undefined);
});
