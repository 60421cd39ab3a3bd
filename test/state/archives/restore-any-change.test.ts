// Archives of which one row, or one word, is any other: each is refused, or gives a state that servers go on with.

import fc from 'fast-check';
import t from 'tap';
import type { KvRow } from '../../../cluster/platform/kv.ts';
import { adoptSha256 } from '../../../cluster/platform/sha256.ts';
import type { AclError } from '../../../src/acl/error.ts';
import { systemSha256 } from '../../../src/platform-node/hashes/system-sha256.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import {
  type Field,
  type Fields,
  fieldsOrNone,
  pack,
} from '../../../src/state/rows/layout/packing.ts';
import type { Meta } from '../../../src/state/rows/meta.ts';
import { isObjectRow } from '../../../src/state/rows/tables.ts';
import {
  accessorNumbered,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
} from '../../support/state-and-service/fixtures.ts';
import { BUILTINS } from '../../support/state-and-service/machine-harness.ts';
import { requireRowsFromNothing, requireSame } from '../rows-from-nothing.ts';
import { archiveWith, type Content, contentOfServer, trueTo } from './crafted-archive.ts';
import { ofEveryKind } from './foreign-archives.ts';
import { Group, namesOf, plainStore, restore } from './restoring.ts';

adoptSha256(systemSha256);

/** What may be found in a place where something else belongs. */
const ODD: readonly Field[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 53,
  7n,
  '',
  'x',
  policyIdNumbered(9),
  [],
  [[]],
  ['x'],
  new Uint8Array(16),
];

interface Draw {
  readonly row: number;
  readonly how: 'byte' | 'value' | 'field' | 'inner' | 'key' | 'lost' | 'twice' | 'meta';
  readonly place: number;
  readonly odd: Field;
}

const draw: fc.Arbitrary<Draw> = fc.record({
  row: fc.nat(),
  how: fc.constantFrom('byte', 'value', 'field', 'field', 'inner', 'key', 'lost', 'twice', 'meta'),
  place: fc.nat(),
  odd: fc.constantFrom(...ODD),
});

/** A word about the rows that is another one. */
const META_CHANGES: readonly ((meta: Meta, odd: never) => Partial<Meta>)[] = [
  (_, index) => ({ index }),
  (_, epoch) => ({ position: { epoch, seq: 1 } }),
  (_, seq) => ({ position: { epoch: 1, seq } }),
  ({ tableIndexes }, roles) => ({ tableIndexes: { ...tableIndexes, roles } }),
  (_, bootstrapIndex) => ({ bootstrapIndex }),
  (_, level) => ({ level }),
  (_, groupRecord) => ({ groupRecord }),
];

/** One row, or one word about them, as the draw says; sums are true afterwards. */
function changedBy({ row, how, place, odd }: Draw, content: Content): Content {
  const { rows, meta } = content;
  if (how === 'meta') {
    const change = META_CHANGES[place % META_CHANGES.length]!;
    return trueTo({ rows, meta: { ...meta, ...change(meta, odd as never) } });
  }
  const objects = rows.filter(({ key }) => isObjectRow(key[0]!));
  // Rows of objects are few, and matter most.
  const from = row % 2 === 0 ? objects : rows;
  const chosen = from[(row >> 1) % from.length]!;
  const instead = rowsInstead(chosen, { how, place, odd });
  return trueTo({ rows: rows.flatMap((each) => (each === chosen ? instead : [each])), meta });
}

function rowsInstead(row: KvRow, { how, place, odd }: Omit<Draw, 'row'>): readonly KvRow[] {
  const { key, value } = row;
  switch (how) {
    case 'byte':
      return [{ key, value: withByte(value, place) }];
    case 'value':
      return [{ key, value: pack([odd, odd]) }];
    case 'key':
      return [{ key: withByte(key, 1 + (place % Math.max(1, key.length - 1))), value }];
    case 'twice':
      return [row, { key: withByte(key, key.length - 1), value }];
    case 'lost':
      return [];
    default:
      return [{ key, value: withOdd(value, { how, place, odd }) }];
  }
}

function withByte(bytes: Uint8Array, place: number): Uint8Array {
  const changed = Uint8Array.from(bytes);
  if (changed.length > 0) changed[place % changed.length]! ^= 1 << (place % 8);
  return changed;
}

/** Of a record, one of its fields; or one of what is in a field. */
function withOdd(value: Uint8Array, { how, place, odd }: Omit<Draw, 'row'>): Uint8Array {
  const record = fieldsOrNone(value);
  const fields = record?.[3];
  if (record === undefined || !Array.isArray(fields)) return pack([odd]);
  const at = place % fields.length;
  const inner: unknown = fields[at];
  const isDeeper = how === 'inner' && Array.isArray(inner) && inner.length > 0;
  const field = isDeeper ? (inner as Fields).with(0, odd) : odd;
  return pack(record.with(3, (fields as Fields).with(at, field)));
}

/** Throws unless the restored state is one that servers go on with, and the one that the archive says. */
async function requireSound(group: Group, { meta }: Content): Promise<void> {
  const { leader } = group;
  const { fullDigest } = meta;
  requireSame('the digest', leader.machine.digests().all, Buffer.from(fullDigest).toString('hex'));
  requireSame('the totals', leader.machine.totals(), meta.totals);
  for (const each of goingOn()) await group.one(each);
  await namesOf(leader.machine);
  await group.catchUp();
  const plain = await plainStore(leader.machine);
  requireRowsFromNothing(plain.kv, leader.machine);
  const other = await plainStore(group.follower.machine);
  requireSame('the servers', other.kv.dump(), plain.kv.dump());
  const again = new Group();
  await again.one(BUILTINS);
  await restore(again.archives, await archiveWith(await contentOfServer(leader)));
  requireSame('a second restore', again.leader.machine.digests(), leader.machine.digests());
}

/** Each object is met: changed, used or deleted. */
function* goingOn(): Generator<Change> {
  yield BUILTINS;
  for (let number = 0; number <= 6; number += 1) {
    yield { type: 'policy.set', presence: 'update', policy: aPolicy(number) };
    yield { type: 'role.set', presence: 'update', role: aRole(number) };
    yield { type: 'token.set', presence: 'update', token: aToken(number) };
    yield { type: 'token.reap', accessorIds: [accessorNumbered(number)] };
  }
  yield { type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') };
  yield { type: 'token.set', presence: 'create', token: aToken(60) };
  yield { type: 'auth-method.delete', namespace: 'default' as never, name: 'login' };
  for (let number = 1; number <= 6; number += 1) {
    yield { type: 'token.delete', accessorId: accessorNumbered(number) };
    yield { type: 'policy.delete', id: policyIdNumbered(number) };
  }
  yield { type: 'namespace.delete', name: 'team' as never };
}

const SEED = Number(process.env.RESTORE_SEED ?? 20_261_123);
const RUNS = Number(process.env.RESTORE_RUNS ?? 200);

t.test(
  'restore: any change of what an archive says is refused, or a state to go on with',
  async (t) => {
    const again = `RESTORE_SEED=${SEED} RESTORE_RUNS=${RUNS} node dist/test/state/restore-any-change.test.js`;
    t.comment(`seed ${SEED}; again with: ${again}`);
    const content = await contentOfServer(await ofEveryKind());
    const counts = { refused: 0, restored: 0 };
    const run = async (drawn: Draw): Promise<void> => {
      const changed = changedBy(drawn, content);
      const group = new Group();
      await group.one(BUILTINS);
      const before = group.leader.machine.digests();
      const refusal = await restore(group.archives, await archiveWith(changed, content.meta)).then(
        () => undefined,
        (error: AclError) => error,
      );
      if (refusal === undefined) {
        counts.restored += 1;
        await requireSound(group, changed);
        return;
      }
      counts.refused += 1;
      if (refusal.code !== 'malformed') throw refusal;
      requireSame('what was proposed', group.steps.length, 1);
      requireSame('the state', group.leader.machine.digests(), before);
    };
    await fc.assert(fc.asyncProperty(draw, run), { numRuns: RUNS, seed: SEED });
    t.ok(counts.refused > RUNS / 10 && counts.restored > RUNS / 10, JSON.stringify(counts));
    t.comment(`seed ${SEED}; again with: ${again}`);
  },
);
