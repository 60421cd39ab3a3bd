// A snapshot that comes in while its node stops, in each of its steps, and two that begin at once.

import t from 'tap';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type { SnapshotMessage } from '../../../cluster/raft/message.ts';
import { EMPTY_GROUP, encodeGroupRecord } from '../../../cluster/replica/group-record.ts';
import {
  type MachineIntake,
  ReplicaError,
  type TakenState,
} from '../../../cluster/replica/replica.ts';
import {
  SnapshotTaker,
  type TakenSnapshot,
} from '../../../cluster/replica/snapshots/snapshot-taker.ts';
import { watched } from '../../support/simulated/group-actions.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

const CLOSED = new ReplicaError('closed', 'the log is closing');
const HASH = new Uint8Array(32);

/** Of group and log nothing but where it ends. */
const messageAt = (index: number): SnapshotMessage => ({
  ...{ type: 'snapshot', from: 2, to: 1, term: 1 },
  snapshot: { index, term: 1, membership: NO_MEMBERS, data: new Uint8Array() },
});

/** Each step of the machine waits for `goOn` where `isSlow` names it; `log` has all that happened. */
function aTaker(isSlow: 'begin' | 'complete' | 'none' = 'none', told: Partial<TakenState> = {}) {
  const log: string[] = [];
  let goOn: () => void = () => undefined;
  const step = (name: string): Promise<void> => {
    log.push(name);
    return name === isSlow ? new Promise((resolve) => (goOn = resolve)) : Promise.resolve();
  };
  let index = 0;
  const intake = (own: number): MachineIntake => ({
    add: () => step(`add ${own}`),
    complete: async () => {
      await step('complete');
      const appliedEntry = { index: own, term: 1, hash: HASH };
      const groupRecord = encodeGroupRecord(EMPTY_GROUP);
      return { appliedEntry, groupRecord, generation: 1, ...told };
    },
    adopt: () => step('adopt'),
    abandon: () => step(`abandon ${own}`),
  });
  const asked: TakenSnapshot[] = [];
  const taker = new SnapshotTaker({
    machine: {
      beginInstall: async () => {
        await step('begin');
        index += 1;
        return intake(index);
      },
    },
    onTaken: (taken) => void asked.push(taken),
  });
  return { taker, log, asked, goOn: () => goOn() };
}

t.test('taker: a state that is not the one that was announced is given up', async (test) => {
  const members = { ...NO_MEMBERS, voters: [1, 2, 3] };
  const wrong: readonly (readonly [Partial<TakenState>, RegExp])[] = [
    [
      { appliedEntry: { index: 2, term: 1, hash: HASH } },
      /stands at entry 2 of term 1, not at entry 1/,
    ],
    [
      { appliedEntry: { index: 1, term: 2, hash: HASH } },
      /stands at entry 1 of term 2, not at entry 1/,
    ],
    [{ groupRecord: undefined }, /it has no group record/],
    [
      { groupRecord: encodeGroupRecord({ ...EMPTY_GROUP, membership: members }) },
      /its members are not those that its sender named/,
    ],
  ];
  for (const [told, message] of wrong) {
    const { taker, log, asked } = aTaker('none', told);
    const incoming = (await taker.begin(messageAt(1)))!;
    await test.rejects(incoming.finish(), { name: 'SnapshotDamage', message });
    test.same([log, asked], [['begin', 'complete', 'abandon 1'], []], String(message));
  }
});

t.test('taker: of two that begin at once the later one comes in', async (test) => {
  const { taker, log } = aTaker();
  const [first, second] = await Promise.all([taker.begin(messageAt(1)), taker.begin(messageAt(2))]);
  await test.rejects(first!.add(HASH), /a newer snapshot took its place/);
  await second!.add(HASH);
  test.same(log, ['begin', 'abandon 1', 'begin', 'add 2']);
});

t.test('taker: what begins while its node stops is given up', async (test) => {
  const { taker, log, goOn } = aTaker('begin');
  const beginning = taker.begin(messageAt(1));
  const behind = taker.begin(messageAt(2));
  await settled();
  taker.stop(CLOSED);
  goOn();
  await test.rejects((await beginning).add(HASH), CLOSED);
  await test.rejects(behind, CLOSED);
  test.same(log, ['begin', 'abandon 1']);
});

t.test('taker: whoever waits for its end is told that the node stops', async (test) => {
  for (const isSlow of ['complete', 'none'] as const) {
    const { taker, log, asked, goOn } = aTaker(isSlow);
    const finished = watched((await taker.begin(messageAt(1))).finish());
    await settled();
    taker.stop(CLOSED);
    goOn();
    await settled();
    test.equal(finished.result, CLOSED.message, isSlow);
    test.equal(asked.length, isSlow === 'none' ? 1 : 0, 'raft is not asked any more');
    test.same(log, ['begin', 'complete', 'abandon 1']);
  }
});

t.test('taker: what raft has taken is installed though its node stops', async (test) => {
  const { taker, log, asked } = aTaker();
  const message = messageAt(1);
  const finished = watched((await taker.begin(message)).finish());
  await settled();
  asked[0]!.accepted();
  await test.rejects(taker.begin(messageAt(2)), /another snapshot is just being installed/);
  let goOn: () => void = () => undefined;
  const installing = taker.install(
    message.snapshot,
    () => new Promise((resolve) => (goOn = resolve)),
  );
  await settled();
  taker.stop(CLOSED);
  await settled();
  test.equal(finished.result, CLOSED.message);
  test.same(log, ['begin', 'complete'], 'the log switches to it');
  goOn();
  await installing;
  test.same(log, ['begin', 'complete', 'adopt']);
});
