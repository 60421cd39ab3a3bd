// Restores that are refused or come to nothing: what was there stays.

import t from 'tap';
import type { LogFields } from '../../../cluster/platform/logger.ts';
import { AclError } from '../../../src/acl/error.ts';
import { reapOnce } from '../../../src/service/duties/duties.ts';
import { RequestAges } from '../../../src/service/duties/request-ages.ts';
import { VoidTokenRounds } from '../../../src/service/duties/void-token-rounds.ts';
import { openArchives } from '../../../src/service/operators/archives.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import type { Change, ChangeOf } from '../../../src/state/commands/commands.ts';
import { decodeMeta, encodeMeta } from '../../../src/state/rows/meta.ts';
import { RESTORE_IDLE_MS } from '../../../src/state/rows/restore-progress.ts';
import { rowKey } from '../../../src/state/rows/tables.ts';
import { packedRows } from '../../../src/state/snapshot/snapshot-format.ts';
import { FakeRandom } from '../../support/fake-random.ts';
import { aCommand, FIXTURE_TIME_MS } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, replaceableMachine } from '../../support/state-and-service/machine-harness.ts';
import {
  archived,
  archivesOf,
  commandsOf,
  furnished,
  Group,
  nobodyMinds,
  openAt,
  restore,
  swept,
} from './restoring.ts';

t.test('restore: what does not belong to it is refused, by all servers alike', async (test) => {
  const server = replaceableMachine();
  await server.one(BUILTINS);
  const row = { key: rowKey('roleByName', 'default', 'x'), value: new Uint8Array(16) };
  const chunk = (id: string, number: number, rows = packedRows([row])): Promise<string> =>
    server.tell({ type: 'restore.chunk', id, number, rows });
  const commit = (id: string, chunkCount: number): Promise<string> =>
    server.tell({
      type: 'restore.commit',
      id,
      chunkCount,
      chain: new Uint8Array(32),
      metaRow: new Uint8Array(1),
    });
  const prefix = 'unavailable: the restore was refused, and nothing was changed:';
  test.equal(await chunk('a', 1), `${prefix} it was given up`);
  test.equal(await server.tell({ type: 'restore.abandon', id: 'a' }), 'ok');
  await server.one({ type: 'restore.begin', id: 'a' });
  test.equal(await chunk('b', 1), `${prefix} a later one took its place`);
  test.equal(await chunk('a', 2), `${prefix} piece 2 came behind piece 0`);
  test.match(await chunk('a', 1, packedRows([row]).subarray(0, -1)), /piece 1 is cut off/);
  test.match(await chunk('a', 1, packedRows([row, row])), /has a row that does not belong there/);
  for (const kind of ['meta', 'request', 'restore', 'staged', 'keyspaces', 'inKeyspace'] as const) {
    const foreign = packedRows([{ key: rowKey(kind, 'x'), value: new Uint8Array() }]);
    test.match(await chunk('a', 1, foreign), /has a row that does not belong there/, kind);
  }
  test.match(await chunk('a', 1, Uint8Array.of(0, 0)), /row 1 has a key of 0/);
  test.match(await chunk('a', 1, new Uint8Array(9).fill(255)), /row 1 has no length/);
  test.equal(await chunk('a', 1), 'ok');
  test.equal(await chunk('a', 1), `${prefix} piece 1 came behind piece 1`);
  test.equal(await commit('a', 2), `${prefix} 1 of 2 pieces are there`);
  test.equal(await commit('a', 1), `${prefix} its pieces are not those sent`);
  test.match(server.machine.restoreUnderWay(), { id: 'a', timeMs: FIXTURE_TIME_MS });
  const facts = [server.machine.index(), server.machine.digests(), server.machine.totals()];
  await server.one({ type: 'restore.begin', id: 'b' });
  test.equal(await chunk('a', 2), `${prefix} a later one took its place`);
  test.equal(await chunk('b', 1), 'ok');
  await server.one({ type: 'restore.abandon', id: 'a' });
  test.equal(server.machine.restoreUnderWay()?.id, 'b');
  await server.one({ type: 'restore.abandon', id: 'b' });
  test.equal(server.machine.restoreUnderWay(), undefined);
  test.same([server.machine.index(), server.machine.digests(), server.machine.totals()], facts);
  await swept(server);
  test.same(
    server.kv.dump().filter((each) => each.startsWith('65')),
    [],
    'nothing is left of what was dropped',
  );
});

t.test('restore: a state that is not what it says is refused at its end', async (test) => {
  const archive = await archived(await furnished());
  const commands = await commandsOf(archive);
  const changeOf = (type: Change['type']): Change =>
    commands.find(({ change }) => change.type === type)!.change;
  const whole = changeOf('restore.commit') as ChangeOf<'restore.commit'>;
  const foreignDigest = { ...decodeMeta(whole.metaRow), fullDigest: new Uint8Array(32) };
  for (const [metaRow, says] of [
    [Uint8Array.of(0xc1), /its meta row cannot be read/],
    [encodeMeta(foreignDigest), /its objects do not have the digest that it says/],
  ] as const) {
    const server = replaceableMachine();
    await server.one(BUILTINS);
    await server.run(...commands.filter(({ change }) => change.type !== 'restore.commit'));
    test.match(await server.tell({ ...whole, metaRow }), says);
    test.equal(server.machine.totals().tokens, 1);
    test.equal(await server.tell(whole), 'ok', 'and what is right still passes');
    test.equal(server.machine.totals().tokens, 40);
  }
});

t.test('restore: what is damaged, foreign or too late changes nothing', async (test) => {
  const archive = await archived(await furnished());
  const group = new Group();
  await group.one(BUILTINS);
  const { leader } = group;
  const refusal = async (bytes: Uint8Array, archives = group.archives): Promise<unknown> =>
    restore(archives, bytes).catch((error: AclError) => [error.code, error.message]);
  const broken = Buffer.from(archive);
  broken[broken.length - 40]! ^= 1;
  for (const bytes of [archive.subarray(0, -10), broken, Buffer.from('hello')]) {
    test.match(await refusal(bytes), ['malformed', /^nothing was changed: /]);
  }
  const elsewhere = archivesOf(leader, group.propose);
  test.match(await refusal(archive.subarray(0, 0), elsewhere), ['malformed', /cut off/]);
  const foreign = openArchives({
    ...({ machine: leader.machine, clock: leader.clock, clusterId: () => undefined } as object),
    settings: { datacenter: 'dc2' },
    reign: () => 1,
    propose: group.propose,
  } as never);
  test.match(await refusal(archive, foreign), [
    'invalid',
    /is of datacenter "dc1", this is "dc2": nothing was changed/,
  ]);
  test.equal(group.steps.length, 1, 'nothing of it was proposed');
  const { archives: ofNobody } = new Group();
  test.throws(() => ofNobody.save(), { code: 'unavailable', message: /has no state yet/ });

  const first = await group.archives.beginRestore(nobodyMinds);
  await test.rejects(
    group.archives.beginRestore(nobodyMinds),
    { code: 'unavailable' },
    'one at a time',
  );
  await first.add(archive.subarray(0, 1000));
  const intake = await leader.machine.beginInstall();
  await test.rejects(first.add(archive.subarray(1000)), { name: 'AclError', code: 'unavailable' });
  await test.rejects(first.finish(), { code: 'unavailable' });
  await test.rejects(group.archives.beginRestore(nobodyMinds), { code: 'unavailable' });
  await intake.abandon();
  await first.abandon();
  test.same([...leader.generations.stores.keys()], [0], 'no trace is left');
});

t.test('restore: an archive that the disk does not take changes nothing', async (test) => {
  const archive = await archived(await furnished());
  const group = new Group();
  await group.one(BUILTINS);
  const full = new Error('ENOSPC: no space left on device');
  const logged: unknown[] = [];
  const silent = () => undefined;
  const logger = {
    ...{ debug: silent, info: silent, warn: silent },
    error: ({ cause }: LogFields) => void logged.push(cause),
  };
  const archives = openAt(group.leader, group.propose, logger);
  const intake = await archives.beginRestore(nobodyMinds);
  const staged = [...group.leader.generations.stores.values()].at(-1)!;
  staged.write = () => Promise.reject(full);
  const refusal = {
    name: 'AclError',
    code: 'unavailable',
    message: /^nothing was changed: the leader cannot keep/,
  };
  await test.rejects(intake.add(archive), refusal);
  await test.rejects(intake.finish(), refusal);
  await intake.abandon();
  test.same(logged, [full], 'the log says why, once');
  group.leader.generations.open = () => Promise.reject(full);
  await test.rejects(archives.beginRestore(nobodyMinds), refusal, 'nor is one begun');
  test.same(logged, [full, full]);
  test.equal(group.steps.length, 1, 'nothing of it was proposed');
});

t.test('restore: a leader that is lost on the way leaves nothing behind', async (test) => {
  const archive = await archived(await furnished());
  const nothing = { code: 'unavailable', message: /^nothing was restored: the leader was lost/ };
  const unknown = new AclError('outcome-unknown', 'the leader is gone');
  for (const [lostAt, lost, refusal] of [
    ['restore.begin', unknown, nothing],
    ['restore.chunk', unknown, nothing],
    ['restore.commit', unknown, { code: 'outcome-unknown' }],
    ['restore.commit', new LeaderAway(), nothing],
  ] as const) {
    const group = new Group();
    await group.one(BUILTINS);
    const archives = archivesOf(group.leader, (command) =>
      command.change.type === lostAt ? Promise.reject(lost) : group.propose(command),
    );
    await test.rejects(restore(archives, archive), refusal, `${lostAt}: ${lost.message}`);
    test.equal(group.leader.machine.restoreUnderWay(), undefined);
    test.equal(group.leader.machine.totals().tokens, 1);
    await swept(group.leader);
  }
  const { leader, propose } = new Group();
  await propose(aCommand(BUILTINS));
  await propose(aCommand({ type: 'restore.begin', id: 'forgotten' }));
  const duties = () =>
    reapOnce(
      {
        view: leader.machine,
        clock: leader.clock,
        agreedMs: () => Promise.resolve(leader.clock.wallMs()),
        random: new FakeRandom(),
        propose,
        federation: { closedBecause: () => undefined } as never,
        metrics: { count: () => undefined },
        settings: {} as never,
      },
      { ages: new RequestAges(), rounds: new VoidTokenRounds() },
    );
  leader.clock.advance(RESTORE_IDLE_MS - 1);
  await duties();
  test.equal(leader.machine.restoreUnderWay()?.id, 'forgotten');
  leader.clock.advance(1);
  await duties();
  test.equal(leader.machine.restoreUnderWay(), undefined, 'its leader drops it after a while');
});
