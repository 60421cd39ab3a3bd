// What a candidate takes from others is what it asked for, and what its own log has then: of whoever answers
// something else it takes nothing.

import t from 'tap';
import { encodeEntryRun } from '../../../../cluster/federation/feed/feed-frames.ts';
import type { GlobalCursor, GlobalEntry } from '../../../../cluster/federation/global-log.ts';
import { RestOfLog } from '../../../../cluster/federation/promotion/candidacy/rest-of-log.ts';
import { WayBack } from '../../../../cluster/federation/promotion/candidacy/way-back.ts';
import {
  decodeRest,
  encodeEpochs,
} from '../../../../cluster/federation/promotion/promotion-frames.ts';
import type { RestBatch } from '../../../../cluster/federation/promotion/promotion-port.ts';
import { FeedWorld } from '../feed-world.ts';
import { MemoryLog, nextEntry } from '../memory-log.ts';

const LOG = new MemoryLog();
for (const number of [1, 2, 3, 4]) LOG.push(nextEntry(LOG.head, Uint8Array.of(number)));

const placeOf = (seq: number): GlobalCursor => LOG.at(seq);

/** A candidate that asks dc2, which answers so; and what its own log was given, and comes to by that. */
function candidate({
  answer,
  reached = ({ to }) => to,
  isRestore = () => false,
}: {
  readonly answer: (after: GlobalCursor, isTrial: boolean) => Uint8Array;
  readonly reached?: (batch: RestBatch) => GlobalCursor;
  readonly isRestore?: (entry: GlobalEntry) => boolean;
}) {
  const taken: number[] = [];
  const told: number[] = [];
  const rest = new RestOfLog({
    datacenter: 'dc1',
    port: {
      isRestore,
      take: async (batch) => {
        taken.push(...batch.entries.map(({ seq }) => seq));
        return reached(batch);
      },
    },
    source: LOG,
    unreadableBy: () => undefined,
    ask: async (_, __, payload) => {
      const { after, isTrial } = decodeRest(payload);
      return answer(after, isTrial);
    },
  });
  const take = (): Promise<void> => {
    const giver = { datacenter: 'dc2', cursor: placeOf(4) };
    return rest.take(giver, { epoch: 2, after: placeOf(1) }, ({ seq }) => void told.push(seq));
  };
  return { rest, take, taken, told };
}

/** One entry at a time. */
const next = (after: GlobalCursor): Uint8Array => {
  return encodeEntryRun({ after, entries: LOG.entries.slice(after.seq, after.seq + 1) });
};

t.test('untrue: what is given is taken, each piece behind the one before', async (test) => {
  const { take, taken, told } = candidate({ answer: next });
  await take();
  test.same(
    [taken, told],
    [
      [2, 3, 4],
      [2, 3, 4],
    ],
  );
});

t.test('untrue: what the own log did not take was not taken', async (test) => {
  const { take, told } = candidate({
    answer: next,
    reached: ({ from, to }) => (to.seq === 3 ? from : to),
  });
  await test.rejects(take(), /the own log is at 1\.2/);
  test.same(told, [2], 'nobody is told that it is further');
});

t.test(
  'untrue: whoever gives nothing, or what follows another place, gives nothing',
  async (test) => {
    const empty = candidate({ answer: (after) => encodeEntryRun({ after, entries: [] }) });
    await test.rejects(empty.take(), /nothing follows 1\.1/);
    const other = candidate({ answer: () => next(placeOf(2)) });
    await test.rejects(other.take(), /what follows 1\.2 came/);
    await test.rejects(other.rest.requireGiven('dc2', placeOf(1)), /what follows 1\.2 came/);
    test.same([...empty.taken, ...other.taken], []);
  },
);

t.test('untrue: a trial looks at what comes first, and takes nothing', async (test) => {
  const asked: boolean[] = [];
  const { rest, taken } = candidate({
    answer: (after, isTrial) => {
      asked.push(isTrial);
      return next(after);
    },
    isRestore: ({ seq }) => seq === 3,
  });
  await rest.requireGiven('dc2', placeOf(1));
  await test.rejects(rest.requireGiven('dc2', placeOf(2)), /^a restore follows 1\.2$/);
  test.same([...asked, ...taken], [false, false], 'a giver of any release gives the entries');
});

t.test('untrue: there is no way back by the epochs of others than was said', async (test) => {
  const start = { epoch: 2, startSeq: 2, startHash: placeOf(1).hash, primary: 'dc2' };
  const wayBack = (theirs: string | undefined, epoch: number): Promise<unknown> => {
    const back = new WayBack({
      logger: new FeedWorld(1).logger('dc1'),
      federationId: () => 'own',
      port: { forkPlace: async () => placeOf(1), goBack: async () => undefined },
      rest: { requireGiven: async () => undefined },
      ask: async () => encodeEpochs([{ ...start, epoch }], theirs),
    });
    return back.find({ datacenter: 'dc2', cursor: { ...placeOf(4), epoch: 2 } });
  };
  await test.rejects(wayBack('other', 2), /dc2 is of federation other, not of own/);
  await test.rejects(wayBack('own', 3), /dc2 tells of epoch 3, and is at 2\.4/);
  for (const theirs of ['own', undefined]) {
    test.match(await wayBack(theirs, 2), { datacenter: 'dc2', place: { seq: 1 } });
  }
});
