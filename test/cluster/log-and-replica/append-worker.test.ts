// What the append worker has on disk when it answers, and in which order; and what of it the log shows.

import t from 'tap';
import { DurableLog } from '../../../cluster/log/durable-log.ts';
import { ENTRY_OVERHEAD_BYTES, type Entry } from '../../../cluster/raft/log/entry.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type {
  Message,
  StorageAppendMessage,
  StorageAppendReply,
} from '../../../cluster/raft/message.ts';
import { DEFAULT_GROUP_LIMITS } from '../../../cluster/replica/group-limits.ts';
import { AppendWorker } from '../../../cluster/replica/workers/append-worker.ts';
import { StoredLog } from '../../../cluster/replica/workers/stored-log.ts';
import { MemoryKv } from '../../support/memory-kv.ts';

const SNAPSHOT = { index: 20, term: 4, membership: NO_MEMBERS, data: new Uint8Array() };

/** A worker on an empty log; `done` has what it answered, batch by batch. */
async function aWorker() {
  const log = await DurableLog.open(new MemoryKv(), undefined);
  const limits = DEFAULT_GROUP_LIMITS;
  const noSnapshot = () => undefined;
  const options = { log, membership: NO_MEMBERS, appliedIndex: 0, snapshot: noSnapshot, limits };
  const shown = new StoredLog(options);
  const done: (readonly Message[])[] = [];
  const installs: string[] = [];
  const worker = new AppendWorker({
    log,
    stored: shown,
    limits,
    spare: () => ({ onDiskThrough: 0, inMemoryThrough: 0 }),
    install: async ({ index, term }, { term: own, vote }) => {
      installs.push(`${index} of ${term} in ${own}, behind ${log.lastIndex}`);
      const start = { index, term, hash: new Uint8Array(32) };
      await log.reset({ start, hardState: { term: own, vote, commit: index }, generation: 1 });
      shown.wasReset();
    },
    onDone: (replies) => done.push(replies),
    onFailed: (error) => {
      throw error;
    },
  });
  /** Until it has nothing more to do. */
  const run = async (): Promise<void> => {
    for (;;) {
      const replies = worker.start();
      if (replies !== undefined) done.push(replies);
      const { length } = done;
      await worker.idle();
      if (replies === undefined && done.length === length) return;
    }
  };
  return { worker, log, done, installs, run };
}

const work = (given: Partial<StorageAppendMessage>): StorageAppendMessage => {
  return { type: 'storage-append', from: 1, to: -1, term: 0, entries: [], replies: [], ...given };
};

const entry = (index: number, term: number): Entry => {
  return { index, term, type: 'normal', data: Buffer.from(`${term}/${index}`) };
};

const taken = (index: number, term = 5): Message => {
  return { type: 'append-reply', from: 1, to: 2, term, index };
};

const stored = (index: number, term: number): StorageAppendReply => {
  return { type: 'storage-append-reply', from: -1, to: 1, term, lastStable: { term, index } };
};

t.test(
  'append worker: a snapshot goes in behind what came before, and is answered with what is behind it',
  async (test) => {
    const { worker, log, done, installs, run } = await aWorker();
    const installed: Message = { ...stored(21, 5), snapshot: SNAPSHOT };
    const hardState = { term: 5, vote: 3, commitIndex: 20 };
    worker.push(work({ entries: [entry(1, 1)], hardState: { term: 1, vote: 2, commitIndex: 0 } }));
    worker.push(work({ entries: [entry(2, 1)], replies: [taken(2, 1)] }));
    const second = { hardState, snapshot: SNAPSHOT, entries: [entry(21, 5)] };
    worker.push(work({ ...second, replies: [taken(21), installed] }));
    worker.push(work({ entries: [entry(22, 5)], replies: [taken(22), stored(22, 5)] }));
    await run();
    test.same(installs, ['20 of 4 in 5, behind 2'], 'in the term of its own message');
    test.same(done, [[taken(2, 1)], [], [taken(21), installed, taken(22), stored(22, 5)]]);
    test.same([log.firstIndex, log.lastIndex], [21, 22]);
    test.same(log.hardState, { term: 5, vote: 3, commit: 20 });
  },
);

t.test(
  'append worker: of one batch what came later holds, and its word for what is on disk',
  async (test) => {
    const { worker, log, done, run } = await aWorker();
    const first = [entry(1, 1), entry(2, 1), entry(3, 1)];
    worker.push(work({ entries: first, replies: [taken(3, 1), stored(3, 1)] }));
    worker.push(work({ hardState: { term: 2, vote: 0, commitIndex: 0 } }));
    worker.push(work({ entries: [entry(2, 2)], replies: [taken(2, 2), stored(2, 2)] }));
    worker.push(work({ entries: [entry(3, 2)], replies: [taken(3, 2), stored(3, 2)] }));
    await run();
    test.same(done, [[taken(3, 1), stored(3, 1), taken(2, 2), taken(3, 2), stored(3, 2)]]);
    const terms = [1, 2, 3].map((index) => log.entry(index).term);
    test.same([log.lastIndex, terms], [3, [1, 2, 2]]);
  },
);

t.test(
  'append worker: a promise is written before it is answered, a commit index waits',
  async (test) => {
    const { worker, log, done, run } = await aWorker();
    worker.push(work({ hardState: { term: 2, vote: 3, commitIndex: 0 }, replies: [taken(0, 2)] }));
    test.equal(worker.start(), undefined);
    test.same(done, [], 'it is being written');
    await run();
    test.same([done, log.hardState], [[[taken(0, 2)]], { term: 2, vote: 3, commit: 0 }]);
    worker.push(work({ entries: [entry(1, 2)] }));
    await run();
    worker.push(work({ hardState: { term: 2, vote: 3, commitIndex: 1 }, replies: [taken(1, 2)] }));
    test.same(worker.start(), [taken(1, 2)], 'at once');
    test.equal(log.hardState.commit, 0);
    worker.push(work({ entries: [entry(2, 2)] }));
    await run();
    test.equal(log.hardState.commit, 1);
    worker.push(work({ hardState: { term: 2, vote: 0, commitIndex: 1 } }));
    test.equal(worker.start(), undefined, 'another vote alone is written, too');
    await run();
    test.equal(log.hardState.vote, 0);
  },
);

t.test(
  'stored log: shows what is on disk, wherever it is kept, in pieces that fit',
  async (test) => {
    const log = await DurableLog.open(new MemoryKv(), undefined);
    const limits = { tailCountMax: 700, tailBytesMax: 1_000_000 };
    const noSnapshot = () => undefined;
    const options = { log, membership: NO_MEMBERS, appliedIndex: 0, snapshot: noSnapshot, limits };
    const shown = new StoredLog(options);
    const terms: number[] = [0];
    const put = async (fromIndex: number, count: number, term: number): Promise<void> => {
      const entries = Array.from({ length: count }, (_, place) => entry(fromIndex + place, term));
      const chained = shown.chained(entries);
      await log.write({ entries: chained, hardState: { term, vote: 0, commit: 0 } });
      shown.written(chained);
      terms.splice(fromIndex, Number.POSITIVE_INFINITY, ...entries.map(() => term));
    };
    const requireAll = (says: string): void => {
      test.same([shown.firstIndex(), shown.lastIndex()], [1, terms.length - 1], says);
      const all = shown.entries(1, terms.length, Number.POSITIVE_INFINITY);
      const expected = terms.slice(1).map((term, place) => entry(place + 1, term));
      if (typeof all === 'string') return void test.fail(all);
      test.same(
        all.map(({ index, term, type, data }) => ({ index, term, type, data })),
        expected,
        says,
      );
    };
    await put(1, 600, 1);
    requireAll('in memory');
    shown.forgetThrough(500);
    requireAll('the older ones on disk');
    await put(590, 20, 2);
    requireAll('the end replaced');
    await put(300, 5, 3);
    requireAll('replaced from one on that is on disk alone');
    await put(305, 800, 3);
    requireAll('more than there is room for in memory');
    for (const fromIndex of [1, 1000]) {
      const { data } = entry(fromIndex, 3);
      const ofOne = ENTRY_OVERHEAD_BYTES + data.length;
      const counts = [1, ofOne, 2 * ofOne, 3 * ofOne - 1].map(
        (bytes) => shown.entries(fromIndex, fromIndex + 50, bytes).length,
      );
      test.same(counts, [1, 1, 2, 2], 'one at least');
    }
  },
);
