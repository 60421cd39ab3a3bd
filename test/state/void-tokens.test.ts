// What is void and can be deleted is found a bounded part at a time, whatever lies among it that only the primary
// deletes.

import t from 'tap';
import type { AccessorId } from '../../src/acl/ids.ts';
import type { Instant } from '../../src/acl/values/instant.ts';
import { IN_ONE_PIECE_BYTES } from '../../src/state/in-one-piece.ts';
import type {
  FoundTokens,
  OrphanPlace,
  VoidTokenSearch,
} from '../../src/state/reads/void-tokens.ts';
import {
  encodeRetiredNamespace,
  retiredNamespaceKey,
} from '../../src/state/rows/objects/retired-namespace.ts';
import { ROW } from '../../src/state/rows/tables.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  accessorNumbered,
  aNamespace,
  anAuthMethod,
  aToken,
  FIXTURE_TIME_MS,
} from '../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../support/state-and-service/machine-harness.ts';

/** A store that counts how many tokens were read. */
class CountingKv extends MemoryKv {
  tokensRead = 0;

  override get(key: Uint8Array): Uint8Array | undefined {
    if (key[0] === ROW.token) this.tokensRead += 1;
    return super.get(key);
  }
}

const EXPIRED_MS = FIXTURE_TIME_MS + 3_600_000;

/** That many expired tokens, of which those with these numbers are local. */
async function expiring(count: number, local: readonly number[], description = '') {
  const kv = new CountingKv();
  const harness = new MachineHarness(kv);
  await harness.one(BUILTINS);
  for (let number = 1; number <= count; number += 1) {
    const expirationTime = new Date(FIXTURE_TIME_MS + number).toISOString() as Instant;
    const token = aToken(number, { description, expirationTime, local: local.includes(number) });
    await harness.one({ type: 'token.set', presence: 'create', token });
  }
  kv.tokensRead = 0;
  return { kv, machine: harness.machine };
}

interface Round {
  readonly found: readonly AccessorId[];
  readonly pieces: number;
}

/** All that searches find which follow each other. */
async function roundOf<Place>(
  search: (part: VoidTokenSearch<Place>) => Promise<FoundTokens<Place>>,
  given: { readonly limit: number; readonly isLocalOnly: boolean },
): Promise<Round> {
  const found: AccessorId[] = [];
  for (let after: Place | undefined, pieces = 1; ; pieces += 1) {
    const part = await search({ ...given, after });
    if (part.looked > given.limit) throw new Error(`${part.looked} rows were looked at`);
    found.push(...part.accessorIds);
    if (part.isEnd) return { found, pieces };
    if (part.looked === 0) throw new Error('it does not go on');
    after = part.last;
  }
}

t.test('void tokens: expired ones among many of the primary are come by in parts', async (test) => {
  const { kv, machine } = await expiring(100, [3, 64, 65, 100]);
  const search = (part: VoidTokenSearch<Uint8Array>) =>
    machine.expiredTokens({ nowMs: EXPIRED_MS, ...part });
  const first = await search({ isLocalOnly: true, after: undefined, limit: 10 });
  test.match(first, { accessorIds: [accessorNumbered(3)], looked: 10, isEnd: false });
  test.equal(kv.tokensRead, 10);
  for (const limit of [1, 10, 64, 100, 101]) {
    const { found } = await roundOf(search, { limit, isLocalOnly: true });
    test.same(found, [3, 64, 65, 100].map(accessorNumbered), `${limit} at a time`);
  }
  const { found } = await roundOf(search, { limit: 7, isLocalOnly: false });
  test.equal(found.length, 100);
  const end = await search({ isLocalOnly: true, after: undefined, limit: 1000 });
  kv.tokensRead = 0;
  const behind = await search({ isLocalOnly: true, after: end.last, limit: 1000 });
  test.same(behind, { accessorIds: [], looked: 0, last: end.last, isEnd: true });
  test.equal(kv.tokensRead, 0, 'who has come by all of them comes by what is new');
});

t.test('void tokens: of long ones few are read in one piece', async (test) => {
  const description = 'x'.repeat(IN_ONE_PIECE_BYTES / 2);
  const { kv, machine } = await expiring(8, [5], description);
  const search = { nowMs: EXPIRED_MS, isLocalOnly: true, after: undefined, limit: 100 };
  const first = await machine.expiredTokens(search);
  test.match(first, { looked: 2, isEnd: false });
  test.equal(kv.tokensRead, 2);
  const { found, pieces } = await roundOf(
    (part: VoidTokenSearch<Uint8Array>) => machine.expiredTokens({ nowMs: EXPIRED_MS, ...part }),
    { limit: 100, isLocalOnly: true },
  );
  test.same([found, pieces], [[accessorNumbered(5)], 4]);
});

t.test(
  'void tokens: what is gone with methods and namespaces is come by in parts',
  async (test) => {
    const kv = new CountingKv();
    const harness = new MachineHarness(kv);
    const { machine } = harness;
    await harness.one(BUILTINS);
    const create = async (number: number, given: Parameters<typeof aToken>[1]): Promise<void> => {
      await harness.one({ type: 'token.set', presence: 'create', token: aToken(number, given) });
    };
    const method = anAuthMethod('one');
    for (const [place, name] of ['one', 'two', 'three'].entries()) {
      await harness.one({
        type: 'auth-method.set',
        presence: 'either',
        method: { ...method, name },
      });
      const { createIndex } = machine.authMethod(method.namespace, name)!;
      const authMethod = { name, namespace: method.namespace, createIndex };
      for (let each = 0; each < 9; each += 1) {
        await create(100 * (place + 1) + each, { authMethod, local: each === 4 });
      }
      await harness.one({ type: 'auth-method.delete', namespace: method.namespace, name });
    }
    const team = aNamespace('team');
    await harness.one({ type: 'namespace.set', presence: 'create', namespace: team });
    await create(400, { namespace: team.name, local: true });
    await create(401, { namespace: team.name });
    const upTo = machine.index();
    await create(402, { namespace: team.name, local: true });
    const retired = encodeRetiredNamespace({ upTo, tokens: 1 });
    await kv.write([{ type: 'put', key: retiredNamespaceKey(team.name), value: retired }]);

    const search = (part: VoidTokenSearch<OrphanPlace>) => machine.orphanedTokens(part);
    const inOrder = ({ found }: Round) => [...found].sort();
    const local = [104, 204, 304, 400].map(accessorNumbered);
    for (const limit of [1, 2, 5, 9, 10, 11, 100]) {
      const round = await roundOf(search, { limit, isLocalOnly: true });
      test.same(inOrder(round), local, `${limit} at a time`);
      const all = await roundOf(search, { limit, isLocalOnly: false });
      test.equal(all.found.length, 28, `all, ${limit} at a time`);
    }
    kv.tokensRead = 0;
    await search({ isLocalOnly: true, after: undefined, limit: 12 });
    test.ok(kv.tokensRead <= 12, `${kv.tokensRead} tokens were read`);
  },
);
