// Archives and restores: what comes back is what was saved, on every server alike, and until the last
// command nothing of it is seen. What is not whole, or not meant for here, changes nothing.

import fc from 'fast-check';
import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import {
  ANONYMOUS_ACCESSOR,
  DEFAULT_NAMESPACE,
  GLOBAL_MANAGEMENT_ID,
} from '../../../src/acl/ids.ts';
import { Overtaken } from '../../../src/service/writes/under-way.ts';
import { inspectArchive } from '../../../src/state/archive/archive-reader.ts';
import type { Change, Command } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { SWEEP_PAUSE_MS } from '../../../src/state/rows/store/keyspace-sweeper.ts';
import { createHarness, refusalOf } from '../../service/harness.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import {
  aCommand,
  accessorNumbered,
  aNamespace,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
  secretNumbered,
} from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  MachineHarness,
  MemoryGenerations,
  replaceableMachine,
} from '../../support/state-and-service/machine-harness.ts';
import { GOLDEN_ARCHIVE, GOLDEN_ARCHIVE_2 } from '../golden-bytes.ts';
import { history } from '../histories.ts';
import { requireRowsFromNothing, requireSame } from '../rows-from-nothing.ts';
import {
  archived,
  commandsOf,
  furnished,
  Group,
  namesOf,
  openAt,
  plainStore,
  restore,
  restoredRows,
  swept,
  turn,
} from './restoring.ts';

t.test('archive: says what is in it, and is read as it was written', async (test) => {
  const server = await furnished();
  const archive = await archived(server);
  const info = await inspectArchive(piecesOf(archive, 1000));
  test.same(info, {
    release: '1.2.3',
    datacenter: 'dc1',
    cluster: 'a-cluster',
    createdMs: server.clock.wallMs(),
    index: server.machine.index(),
    position: `1.${server.machine.position().seq}`,
    logIndex: server.machine.appliedIndex(),
    logTerm: 1,
    totals: server.machine.totals(),
  });
  for (const sizeBytes of [1, 7, archive.length]) {
    test.same(await inspectArchive(piecesOf(archive, sizeBytes)), info, `in ${sizeBytes} bytes`);
  }
  for (const golden of [GOLDEN_ARCHIVE, GOLDEN_ARCHIVE_2]) {
    const old = Buffer.from(golden, 'hex');
    for (const sizeBytes of [1, 100, old.length]) {
      const said = await inspectArchive(piecesOf(old, sizeBytes));
      test.match(said, { release: '1.2.3', index: 5 });
    }
    const group = new Group();
    await group.one(BUILTINS);
    await restore(group.archives, old);
    const { machine } = group.leader;
    test.match(machine.totals(), { tokens: 3, localTokens: 1, authMethods: 1, roles: 1 });
    test.equal(machine.tokenBySecret(secretNumbered(2))?.local, true);
  }
});

async function* piecesOf(bytes: Uint8Array, sizeBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += sizeBytes) yield bytes.subarray(at, at + sizeBytes);
}

/** What a reader says of an archive that is not the one that was written. */
async function wordsAbout(bytes: Uint8Array): Promise<string> {
  const error = await inspectArchive(piecesOf(bytes, 4096)).catch((cause: Error) => cause);
  if (!(error instanceof Error)) return 'none';
  const isExpected = ['ArchiveDamage', 'SnapshotDamage'].includes(error.name);
  return isExpected ? error.message : `another error: ${error.stack}`;
}

t.test('archive: no changed byte and no lost end passes', async (test) => {
  const archive = await archived(await furnished());
  let unseen = 0;
  for (let at = 0; at < archive.length; at += 3) {
    const changed = Uint8Array.from(archive);
    changed[at]! ^= 1 << (at % 8);
    if (!/archive|snapshot/.test(await wordsAbout(changed))) unseen += 1;
    if (
      at % 5 === 0 &&
      !/is cut off: it ends at byte/.test(await wordsAbout(archive.subarray(0, at)))
    ) {
      unseen += 1;
    }
  }
  test.equal(unseen, 0);
  test.match(
    await wordsAbout(Buffer.concat([archive, Buffer.of(0)])),
    /more follows behind its end/,
  );
  test.equal(await wordsAbout(Buffer.from('{"json": true}')), 'this is no archive of a state');
  test.equal(await wordsAbout(Buffer.from('\x1f{}')), 'this is no archive of a state');
});

t.test('restore: all servers have what was saved, and nothing that was under way', async (test) => {
  const source = await furnished();
  const archive = await archived(source);
  const group = new Group();
  const { leader, follower } = group;
  await group.one(BUILTINS);
  await group.group(Buffer.from('the group of now'));
  for (let number = 100; number < 160; number += 1) {
    await group.one({ type: 'token.set', presence: 'create', token: aToken(number) });
  }
  await group.one({
    type: 'policy.set',
    presence: 'create',
    policy: aPolicy(1, { name: 'other' }),
  });
  test.equal(leader.machine.policy(policyIdNumbered(1))?.name, 'other', 'kept decoded');
  for (const what of ['read', 'kept decoded']) {
    test.ok(leader.machine.token(accessorNumbered(100)), what);
  }
  const before = { index: leader.machine.index(), position: leader.machine.position() };
  const heard: string[] = [];
  leader.machine.watch.onApplied(({ kind }) => heard.push(kind));

  const index = await restore(group.archives, archive);
  test.equal(heard.filter((kind) => kind === 'replaced').length, 1);
  const { machine } = leader;
  test.equal(machine.index(), index);
  test.equal(index, Math.max(before.index, source.machine.index()) + 1);
  test.same(machine.position(), { epoch: 1, seq: before.position.seq + 1 });
  for (const table of ['tokens', 'policies', 'namespaces'] as const) {
    test.equal(machine.tableIndex(table), index, `${table} are news`);
  }
  test.same(machine.digests(), source.machine.digests());
  test.same(machine.totals(), source.machine.totals());
  test.equal(machine.bootstrapIndex(), index, 'no reset of the past works again');
  test.equal(Buffer.from(machine.groupRecord!).toString(), 'the group of now');
  test.equal(machine.policy(policyIdNumbered(1))?.name, 'policy-1');
  test.equal(machine.token(accessorNumbered(100)), undefined);
  test.equal(machine.tokenBySecret(secretNumbered(2))?.accessorId, accessorNumbered(2));
  test.equal(machine.request(new Uint8Array(32).fill(1)), undefined);
  test.equal(machine.pendingLogin('state'), undefined);
  test.equal(machine.restoreUnderWay(), undefined);

  await group.catchUp();
  test.same(follower.machine.digests(), machine.digests());
  await group.one({ type: 'token.set', presence: 'create', token: aToken(200) });
  await group.one({ type: 'auth-method.delete', namespace: DEFAULT_NAMESPACE, name: 'login' });
  await group.catchUp();
  const plain = await plainStore(machine);
  requireRowsFromNothing(plain.kv, machine);
  requireSame('the servers', (await plainStore(follower.machine)).kv.dump(), plain.kv.dump());
  await swept(leader);
  await swept(follower);
  requireSame('the stores', follower.kv.dump(), leader.kv.dump());
  test.ok(leader.kv.dump().length <= plain.kv.dump().length + 1, 'the old rows are gone');
  const again = new MachineHarness(leader.kv.reopened());
  test.same(again.machine.digests(), machine.digests(), 'it is there after a restart');
  test.equal(again.machine.token(accessorNumbered(200))?.description, 'token 200');
});

t.test('restore: an archive of a later epoch begins no reign', async (test) => {
  const begin = { datacenter: 'dc1', primary: 'dc1', isWitness: false };
  const source = await furnished();
  await source.one({ type: 'global-log.begin', ...begin });
  const start = { promises: [], isForced: true, isFromFork: false };
  await source.one({ type: 'epoch.start', epoch: 7, ...start });
  const archive = await archived(source);
  const group = new Group();
  const { machine } = group.leader;
  await group.one(BUILTINS);
  await group.one({ type: 'global-log.begin', ...begin });
  for (let number = 100; number < 200; number += 1) {
    await group.one({ type: 'token.set', presence: 'create', token: aToken(number) });
  }
  const before = machine.replication()!;
  await restore(group.archives, archive);
  const { cursor, epochs, maxEpochPromised, votedFor } = machine.replication()!;
  test.same(machine.digests().global, source.machine.digests().global, 'it is restored');
  test.equal(cursor.epoch, 1);
  test.equal(cursor.seq, before.cursor.seq + 1, 'no place of before comes again');
  test.same([epochs, maxEpochPromised, votedFor], [before.epochs, 1, 'dc1']);
  test.same(machine.position(), { epoch: 1, seq: cursor.seq });

  const fresh = new Group();
  await fresh.one(BUILTINS);
  await fresh.one({ type: 'global-log.begin', ...begin });
  await restore(fresh.archives, archive);
  const { seq } = source.machine.position();
  test.same(fresh.leader.machine.position(), { epoch: 1, seq: seq + 1 }, 'behind both');
  const alone = new Group();
  await alone.one(BUILTINS);
  await restore(alone.archives, archive);
  test.equal(alone.leader.machine.position().epoch, 7, 'without a global log there is no reign');
});

t.test(
  'restore: what the restored state lacks and a leader takes for granted is made',
  async (test) => {
    const source = replaceableMachine();
    await source.group(Uint8Array.of(1));
    await source.one({ type: 'namespace.set', presence: 'either', namespace: aNamespace('team') });
    const group = new Group();
    await group.one(BUILTINS);
    await restore(openAt(group.leader, group.propose), await archived(source));
    const { machine } = group.leader;
    test.ok(machine.policy(GLOBAL_MANAGEMENT_ID));
    test.ok(machine.namespace('default'));
    test.ok(machine.namespace('team'));
    test.ok(machine.token(ANONYMOUS_ACCESSOR));
    test.equal(machine.bootstrapIndex(), undefined, 'neither state was ever bootstrapped');
  },
);

t.test('restore: any state comes back whole in the place of any other', async () => {
  await fc.assert(
    fc.asyncProperty(history, history, history, async (saved, present, later) => {
      const source = replaceableMachine();
      await source.run(...saved);
      const archive = await archived(source);
      const group = new Group();
      for (const each of present) await group.propose(each);
      await restore(group.archives, archive);
      const { leader } = group;
      requireSame(
        'the restored rows',
        restoredRows((await plainStore(leader.machine)).kv),
        restoredRows(source.kv),
      );
      for (const each of later) await group.propose(each);
      await group.catchUp();
      const plain = await plainStore(leader.machine);
      requireRowsFromNothing(plain.kv, leader.machine);
      requireSame('lists', await namesOf(plain.machine), await namesOf(leader.machine));
      const other = await plainStore(group.follower.machine);
      requireSame('the servers', other.kv.dump(), plain.kv.dump());
      await restore(group.archives, archive);
      await swept(leader);
      requireSame(
        'the rows of a second restore',
        restoredRows((await plainStore(leader.machine)).kv),
        restoredRows(source.kv),
      );
    }),
    { numRuns: 25 },
  );
});

t.test(
  'restore: goes on at a server that takes in a snapshot in the middle of it',
  async (test) => {
    const archive = await archived(await furnished());
    const commands = await commandsOf(archive);
    test.ok(commands.length >= 4, 'begin, some rows, commit, what is missing');
    for (let cut = 1; cut < commands.length; cut += 1) {
      const whole = replaceableMachine();
      await whole.one(BUILTINS);
      await whole.run(...commands.slice(0, cut));
      const late = await plainStore(whole.machine);
      const joined = new MachineHarness(late.kv.reopened());
      for (const server of [whole, joined]) await server.run(...commands.slice(cut));
      test.same(joined.machine.digests(), whole.machine.digests());
      test.equal(joined.machine.index(), whole.machine.index());
      requireSame(
        `after command ${cut}`,
        (await plainStore(joined.machine)).kv.dump(),
        (await plainStore(whole.machine)).kv.dump(),
      );
    }
  },
);

t.test(
  'restore: whichever write is the last one, starting again comes to the same',
  async (test) => {
    const archive = await archived(await furnished());
    const group = new Group();
    for (const each of (await commandsOf(archive)).toSpliced(0, 0, aCommand(BUILTINS))) {
      await group.propose(each);
    }
    const expected = (await plainStore(group.leader.machine)).kv.dump();
    const commands = group.steps as Command[];
    for (let applied = 0; applied <= commands.length; applied += 1) {
      for (const sweeps of [0, 1, 2]) {
        const first = replaceableMachine();
        await first.run(...commands.slice(0, applied));
        for (let each = 0; each < sweeps; each += 1) {
          first.clock.advance(SWEEP_PAUSE_MS);
          await turn();
        }
        const second = new MachineHarness(first.kv.reopened());
        await second.run(...commands.slice(applied));
        requireSame('the state', (await plainStore(second.machine)).kv.dump(), expected);
        await swept(Object.assign(second, { generations: new MemoryGenerations(second.kv) }));
        const current = second.kv.dump().filter((row) => row.startsWith('65'));
        const others = second.kv.dump().filter((row) => /^(?!01|64|65)/.test(row));
        test.same(others, [], 'the old rows are gone');
        test.ok(current.length > 100);
      }
    }
  },
);

t.test(
  'restore: what is applied in one group with it finds the state that it left',
  async (test) => {
    const restoring = await commandsOf(await archived(await furnished()));
    const policy = aPolicy(2, { name: 'renamed', rules: '' });
    const commands = [
      aCommand(BUILTINS),
      aCommand({ type: 'role.set', presence: 'create', role: aRole(7) }),
      ...restoring,
      aCommand({ type: 'policy.set', presence: 'update', policy }),
      aCommand({ type: 'token.delete', accessorId: accessorNumbered(5) }),
      aCommand({ type: 'role.set', presence: 'update', role: aRole(7, { name: 'other' }) }),
    ];
    const [atOnce, oneByOne] = [replaceableMachine(), replaceableMachine()];
    const outcomes = await atOnce.run(...commands);
    const others: Outcome[] = [];
    for (const command of commands) others.push(...(await oneByOne.run(command)));
    test.same(outcomes, others);
    test.match(outcomes.slice(-3), [{ kind: 'applied' }, { kind: 'applied' }, { kind: 'refused' }]);
    test.equal(atOnce.machine.policy(policyIdNumbered(2))?.name, 'renamed');
    test.equal(atOnce.machine.token(accessorNumbered(5)), undefined);
    test.equal(atOnce.machine.role(roleIdNumbered(7)), undefined, 'it is gone with its state');
    await swept(atOnce);
    await swept(oneByOne);
    test.same(atOnce.kv.dump(), oneByOne.kv.dump());
  },
);

t.test('restore: waits for the end of what is decided about its operator', async (test) => {
  const archive = await archived(await furnished());
  for (const refusal of [undefined, new AclError('permission-denied', 'the right is gone')]) {
    const group = new Group();
    await group.one(BUILTINS);
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let isOver = false;
    const asked: boolean[] = [];
    const restored = restore(group.archives, archive, () => {
      asked.push(isOver);
      setImmediate(() => {
        isOver = true;
        end();
      });
      if (!isOver) throw new Overtaken(ended);
      if (refusal !== undefined) throw refusal;
    });
    if (refusal === undefined) await restored;
    else await test.rejects(restored, { message: 'the right is gone' });
    test.same(asked, [false, true], 'it is asked once more');
    test.equal(group.leader.machine.restoreUnderWay(), undefined);
    await swept(group.leader);
  }
});

t.test('restore: nobody is answered by rights or names of the state before', async (test) => {
  const secret = secretNumbered(7);
  const token = aToken(7, { policies: [policyIdNumbered(1)] });
  const made = (server: { one(change: Change): Promise<unknown> }, name: string, rules: string) =>
    server
      .one({ type: 'policy.set', presence: 'create', policy: aPolicy(1, { name, rules }) })
      .then(() => server.one({ type: 'role.set', presence: 'create', role: aRole(1, { name }) }))
      .then(() => server.one({ type: 'token.set', presence: 'create', token }));
  const source = replaceableMachine();
  await source.one(BUILTINS);
  await made(source, 'reader', 'acl = "read"');
  const commands = await commandsOf(await archived(source));

  const { deps, run, operations } = await createHarness({ initialManagementSecret: undefined });
  const one = async (change: Change): Promise<Outcome> => deps.propose(aCommand(change));
  await made({ one }, 'writer', 'acl = "write"');
  await one({ type: 'token.set', presence: 'create', token: aToken(8) });
  const call = { secret };
  const draft = { name: 'p' };
  const nameOf = async (): Promise<unknown> => {
    const { value } = await run('token.read-self', {}, call);
    return value?.policies[0]?.name;
  };
  test.equal(await refusalOf(run('policy.create', { draft }, call)), 'ok');
  test.equal(await nameOf(), 'writer');
  const roleName = async (): Promise<unknown> =>
    (await run('role.read', { id: roleIdNumbered(1) }, { ...call, consistency: 'stale' })).value
      ?.role.name;
  test.equal(await roleName(), 'writer');
  test.equal(await refusalOf(run('token.read-self', {}, { secret: secretNumbered(8) })), 'ok');
  const before = (await run('policy.list', { page: {} }, call)).meta;
  let isWoken = false;
  const waiting = operations
    .waitForChange(before.watch, before.index, 60_000, new AbortController().signal)
    .then(() => (isWoken = true));

  for (const command of commands) await deps.propose(command);
  test.match(await refusalOf(run('policy.create', { draft }, call)), /^permission-denied/);
  test.equal(await nameOf(), 'reader');
  test.equal(await roleName(), 'reader');
  const gone = run('token.read-self', {}, { secret: secretNumbered(8) });
  test.match(await refusalOf(gone), /^token-unknown/);
  (deps.clock as FakeClock).advance(0);
  await waiting;
  test.ok(isWoken, 'whoever waited for a change hears of it');
});
