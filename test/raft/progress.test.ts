// The leader's books on one follower: the window of unacknowledged appends, and the three states.

import fc from 'fast-check';
import t from 'tap';
import { Inflights } from '../../cluster/raft/leading/inflights.ts';
import { Progress } from '../../cluster/raft/leading/progress.ts';

const NO_LIMIT = Number.POSITIVE_INFINITY;

function progressAt(matchIndex: number, nextIndex: number, maxMessages = 3): Progress {
  return new Progress({
    matchIndex,
    nextIndex,
    isLearner: false,
    recentlyActive: true,
    inflightLimits: { maxMessages, maxBytes: NO_LIMIT },
  });
}

function replicatingAt(matchIndex: number, maxMessages = 3): Progress {
  const progress = progressAt(matchIndex, matchIndex + 1, maxMessages);
  progress.becomeReplicate();
  return progress;
}

t.test(
  'inflights: the window is full by number or by bytes, and the crossing message passes',
  (t) => {
    const byCount = new Inflights({ maxMessages: 2, maxBytes: NO_LIMIT });
    byCount.add(1, 0);
    t.notOk(byCount.full);
    byCount.add(2, 0);
    t.ok(byCount.full);
    t.throws(() => byCount.add(3, 0), /full window/);
    const byBytes = new Inflights({ maxMessages: 9, maxBytes: 10 });
    byBytes.add(1, 9);
    t.notOk(byBytes.full);
    byBytes.add(2, 50);
    t.ok(byBytes.full);
    byBytes.freeThrough(1);
    t.ok(byBytes.full, 'the big one is still on its way');
    byBytes.freeThrough(2);
    t.same([byBytes.full, byBytes.bytes, byBytes.count], [false, 0, 0]);
    t.end();
  },
);

t.test('inflights: messages leave the window in order, whatever is acknowledged', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), fc.nat({ max: 30 })), { maxLength: 60 }),
      (steps) => {
        const inflights = new Inflights({ maxMessages: 5, maxBytes: 100 });
        let model: [number, number][] = [];
        let lastIndex = 0;
        for (const [sends, value] of steps) {
          if (sends && !inflights.full) {
            lastIndex += 1;
            inflights.add(lastIndex, value);
            model.push([lastIndex, value]);
          } else {
            inflights.freeThrough(value);
            model = model.filter(([index]) => index > value);
          }
          const bytes = model.reduce((sum, [, size]) => sum + size, 0);
          const full = model.length >= 5 || bytes >= 100;
          if (inflights.count !== model.length || inflights.bytes !== bytes) return false;
          if (inflights.full !== full) return false;
        }
        return true;
      },
    ),
    { numRuns: 500 },
  );
  t.end();
});

t.test('progress: a probe sends one append and then waits', (t) => {
  const progress = progressAt(0, 5);
  progress.sentEntries(0, 0);
  t.notOk(progress.isPaused, 'an empty append does not count');
  progress.sentEntries(2, 10);
  t.ok(progress.isPaused);
  t.equal(progress.nextIndex, 5, 'a probe is not sent ahead');
  t.end();
});

t.test('progress: replication sends ahead until the window is full', (t) => {
  const progress = replicatingAt(4, 2);
  progress.sentEntries(3, 10);
  t.same([progress.nextIndex, progress.isPaused], [8, false]);
  progress.sentEntries(1, 10);
  t.same([progress.nextIndex, progress.isPaused], [9, true]);
  t.ok(progress.acknowledge(7));
  t.notOk(progress.isPaused);
  t.notOk(progress.acknowledge(7), 'old news');
  t.end();
});

t.test('progress: a refusal that was overtaken by an acknowledgement changes nothing', (t) => {
  const replicating = replicatingAt(5);
  t.notOk(replicating.reject(5, 2));
  t.notOk(replicating.reject(4, 2));
  t.ok(replicating.reject(6, 2));
  t.equal(replicating.nextIndex, 6, 'what was acknowledged stays acknowledged');
  const probing = progressAt(0, 10);
  t.notOk(probing.reject(8, 3), 'not the append that was sent');
  t.ok(probing.reject(9, 3));
  t.equal(probing.nextIndex, 4);
  t.end();
});

t.test('progress: a probe never goes below what is acknowledged', (t) => {
  const progress = progressAt(4, 10);
  t.ok(progress.reject(9, 1));
  t.equal(progress.nextIndex, 5);
  t.end();
});

t.test('progress: after a snapshot the search starts behind it', (t) => {
  const delivered = replicatingAt(2);
  delivered.becomeSnapshot(9);
  t.same([delivered.isPaused, delivered.nextIndex], [true, 10]);
  t.throws(() => delivered.sentEntries(1, 1), /snapshot is pending/);
  delivered.becomeProbe();
  t.same([delivered.state, delivered.nextIndex, delivered.isPaused], ['probe', 10, false]);
  const failed = replicatingAt(2);
  failed.becomeSnapshot(9);
  failed.pendingSnapshotIndex = 0;
  failed.becomeProbe();
  t.equal(failed.nextIndex, 3);
  t.end();
});

t.test('progress: a commit index is sent again only if it can teach something', (t) => {
  const progress = replicatingAt(4);
  t.ok(progress.canBumpCommit(5));
  progress.sentCommit(4);
  t.notOk(progress.canBumpCommit(5), 'the follower has nothing more to commit');
  progress.sentEntries(2, 0);
  t.ok(progress.canBumpCommit(5));
  t.notOk(progress.canBumpCommit(4), 'already sent');
  progress.sentCommit(6);
  progress.becomeProbe();
  t.notOk(progress.canBumpCommit(6), 'known to reach 4 only');
  progress.becomeReplicate();
  progress.acknowledge(6);
  t.ok(progress.canBumpCommit(6), 'what told it of 6 was lost');
  t.end();
});
