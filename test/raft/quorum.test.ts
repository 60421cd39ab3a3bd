// Majorities, against the published cases and against a second way to count.

import { basename } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { ReadQueue } from '../../cluster/raft/leading/read-queue.ts';
import {
  majorityIndex,
  majorityVote,
  quorumIndex,
  quorumVote,
} from '../../cluster/raft/membership/quorum.ts';
import { firstDifference, runCases } from './support/datadriven.ts';
import { majorityIndexByTrying, runQuorumCase } from './support/quorum-chart.ts';
import { suiteFiles } from './support/vectors.ts';

const RUNS = { numRuns: 2_000 };

const group = fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { maxLength: 7 });
const acked = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 6 })))
  .map((pairs) => new Map(pairs));
const votes = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.boolean()))
  .map((pairs) => new Map(pairs));

const suite = suiteFiles('quorum', 'testdata');
if ('skip' in suite) {
  t.test('published quorum cases', { skip: suite.skip }, () => undefined);
} else {
  t.test('published quorum cases', (t) => {
    let count = 0;
    for (const path of suite) {
      const outcomes = runCases(path, runQuorumCase);
      count += outcomes.length;
      t.equal(firstDifference(outcomes), undefined, basename(path, '.txt'));
    }
    t.equal(count, 127, 'all of them were read');
    t.end();
  });
}

t.test('quorum: an index is reached exactly when more than half have it', (t) => {
  fc.assert(
    fc.property(group, acked, (voters, indexes) => {
      const expected = majorityIndexByTrying(voters, indexes);
      return majorityIndex(voters, (voter) => indexes.get(voter)) === expected;
    }),
    RUNS,
  );
  t.end();
});

t.test('quorum: a joint group reaches what both halves reach, in either order', (t) => {
  fc.assert(
    fc.property(group, group, acked, (voters, votersOutgoing, indexes) => {
      const ackedOf = (voter: number) => indexes.get(voter);
      const joint = quorumIndex({ voters, votersOutgoing }, ackedOf);
      const swapped = quorumIndex({ voters: votersOutgoing, votersOutgoing: voters }, ackedOf);
      const halves = [voters, votersOutgoing].map((half) => majorityIndexByTrying(half, indexes));
      return joint === Math.min(...halves) && joint === swapped;
    }),
    RUNS,
  );
  t.end();
});

t.test('quorum: a vote is won or lost exactly when no further votes can change it', (t) => {
  fc.assert(
    fc.property(group, group, votes, (voters, votersOutgoing, given) => {
      const result = quorumVote({ voters, votersOutgoing }, given);
      const atWorst = completed(voters, votersOutgoing, given, false);
      const atBest = completed(voters, votersOutgoing, given, true);
      if (result === 'won') return atWorst === 'won';
      if (result === 'lost') return atBest === 'lost';
      return atWorst === 'lost' && atBest === 'won';
    }),
    RUNS,
  );
  t.end();
});

t.test('quorum: strangers neither vote nor acknowledge', (t) => {
  t.equal(
    majorityIndex([1, 2, 3], (id) => (id > 1 ? undefined : 7)),
    0,
  );
  const strangers = new Map([
    [8, true],
    [9, true],
  ]);
  t.equal(majorityVote([1, 2, 3], strangers), 'pending');
  t.end();
});

/** The result once everybody who has not voted votes `rest`. */
function completed(
  voters: readonly number[],
  votersOutgoing: readonly number[],
  given: ReadonlyMap<number, boolean>,
  rest: boolean,
): string {
  const all = new Map([...voters, ...votersOutgoing].map((id) => [id, given.get(id) ?? rest]));
  return quorumVote({ voters, votersOutgoing }, all);
}

t.test('reads: so many wait for the first commit of a term, the newest', async (test) => {
  const queue = new ReadQueue();
  for (let read = 1; read <= 300; read += 1) queue.park({ from: 1, context: String(read) });
  const parked = queue.releaseParked();
  test.same([parked.length, parked[0]?.context, parked.at(-1)?.context], [256, '45', '300']);
  test.same(queue.releaseParked(), []);
});
