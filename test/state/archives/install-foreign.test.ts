// Foreign states that come past a restore: as a snapshot of another server, and as commands in the log.

import t from 'tap';
import { adoptSha256 } from '../../../cluster/platform/sha256.ts';
import { systemSha256 } from '../../../src/platform-node/hashes/system-sha256.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { pack } from '../../../src/state/rows/layout/packing.ts';
import { encodeMeta } from '../../../src/state/rows/meta.ts';
import { isRestoredRow, ROW, rowKey } from '../../../src/state/rows/tables.ts';
import { CHAIN_ORIGIN, chained, packedRows } from '../../../src/state/snapshot/snapshot-format.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  BUILTINS,
  MachineHarness,
  replaceableMachine,
} from '../../support/state-and-service/machine-harness.ts';
import { requireSame } from '../rows-from-nothing.ts';
import { type Content, chunksWith, contentOfServer, trueTo } from './crafted-archive.ts';
import {
  type Changed,
  nothing,
  ofEveryKind,
  UNREADABLE,
  withMeta,
  withMore,
  withValue,
} from './foreign-archives.ts';

adoptSha256(systemSha256);

t.test('install: rows that cannot be read never become the state', async (t) => {
  const content = await contentOfServer(await ofEveryKind());
  const ofOther = UNREADABLE.filter(([what]) => !/^two|^a namespace that is lost/.test(what));
  const cases: readonly (readonly [string, Changed, RegExp])[] = [
    ...ofOther,
    ['counts', withValue(ROW.counts, Uint8Array.of(0xc1)), /the row counts .* does not hold/],
    ['an index row', withValue(ROW.tokenBySecret, nothing), /the row tokenBySecret does not hold/],
    ['a list', withValue(ROW.rulesOfMethod, Uint8Array.of(1)), /the row rulesOfMethod .* does not/],
    [
      'the place in the global log',
      withMore({ key: rowKey('replication'), value: Uint8Array.of(0xc1) }),
      /the row replication does not hold/,
    ],
  ];
  for (const [what, change, says] of cases) {
    const receiver = replaceableMachine();
    await receiver.one(BUILTINS);
    const before = receiver.kv.dump();
    const intake = await receiver.machine.beginInstall();
    const takeIn = async (): Promise<void> => {
      for (const chunk of chunksWith(trueTo(change(content)))) await intake.add(chunk);
      await intake.complete();
    };
    await t.rejects(takeIn(), { name: 'SnapshotDamage', message: says }, what);
    await intake.abandon();
    requireSame(what, receiver.kv.dump(), before);
  }
});

t.test('install: a state of a higher level than the program reads is not taken in', async (t) => {
  const content = await contentOfServer(await ofEveryKind());
  const source = chunksWith({ ...content, meta: { ...content.meta, level: 3 } });
  const { generations } = replaceableMachine();
  const receiver = new MachineHarness(new MemoryKv(), { generations, reads: 2 });
  const intake = await receiver.machine.beginInstall();
  await t.rejects(intake.add(source[0]!), { message: /used feature level 3, .* reads up to 2/ });
  await intake.abandon();
});

/** The commands of a restore of these rows, as a leader that looks at nothing would propose them. */
function commandsOf({ rows, meta }: Content): readonly Change[] {
  const packed = packedRows(rows.filter(({ key }) => isRestoredRow(key[0]!)));
  const chain = chained(CHAIN_ORIGIN, packed);
  return [
    { type: 'restore.begin', id: 'a' },
    { type: 'restore.chunk', id: 'a', number: 1, rows: packed },
    { type: 'restore.commit', id: 'a', chunkCount: 1, chain, metaRow: encodeMeta(meta) },
  ];
}

t.test(
  'apply: what cannot be read is refused by all servers, from the level on that says so',
  async (t) => {
    const content = await contentOfServer(await ofEveryKind());
    const broken = trueTo(withValue(ROW.policy, pack([2, 1, 1, []]))(content));
    const endless = withMeta(() => ({ index: Number.MAX_SAFE_INTEGER }))(content);
    const newer = withMeta(() => ({ level: NEWEST_LEVEL + 1 }))(content);
    const uncounted = withValue(ROW.counts, Uint8Array.of(0xc1))(content);
    const cases: readonly (readonly [string, Content, RegExp])[] = [
      ['a policy', broken, /the row policy \S+ has format 2/],
      ['counts', uncounted, /the row counts \S+ does not hold/],
      ['an index', endless, /its index is 9007199254740991/],
      ['a level', newer, /it is of feature level \d+, and 5 is used here/],
    ];
    const prefix = 'unavailable: the restore was refused, and nothing was changed: ';
    for (const [what, said, says] of cases) {
      const server = new MachineHarness(new MemoryKv());
      await server.one(BUILTINS);
      await server.one({ type: 'level.raise', level: 5 });
      const before = server.machine.digests();
      const told: string[] = [];
      for (const change of commandsOf(said)) told.push(await server.tell(change));
      const refusals = told.filter((each) => each !== 'ok');
      t.match(refusals[0], says, what);
      t.ok(refusals[0]?.startsWith(prefix), what);
      t.same(server.machine.digests(), before, what);
      t.equal(await server.tell(BUILTINS), 'ok', `${what}: and the server goes on`);

      const older = new MachineHarness(new MemoryKv());
      await older.one(BUILTINS);
      await older.one({ type: 'level.raise', level: 4 });
      for (const change of commandsOf(said)) {
        t.equal(await older.tell(change), 'ok', `${what}: as releases of before have done`);
      }
    }
  },
);
