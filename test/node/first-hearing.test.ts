// What all share waits, behind the start of a primary, until all have been heard who may have more of it.

import t from 'tap';
import { FirstHearing } from '../../src/node/federation/first-hearing.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import { FakeClock } from '../support/fake-clock.ts';

function aServer(...others: readonly string[]) {
  const clock = new FakeClock(5_000);
  const heard = new Set<string>();
  const state = { headSeq: 7, hasCaughtUp: false };
  const hearing = new FirstHearing({
    ...{ clock, datacenter: 'dc1' },
    others: () => others,
    isHeard: (each) => heard.has(each),
    headSeq: () => state.headSeq,
    hasCaughtUp: () => state.hasCaughtUp,
  });
  return { clock, heard, hearing, state, refusal: () => hearing.refusal() };
}

t.test('first hearing: nothing is written before all that are listed were heard', (t) => {
  const { clock, heard, hearing, refusal } = aServer('dc2', 'dc3');
  t.equal(refusal(), undefined, 'what a reign begins with is written');
  hearing.begin();
  heard.add('dc2');
  t.match(refusal()?.message, /dc1 has just begun, and waits a moment to hear dc3$/);
  t.ok(refusal() instanceof LeaderAway, 'it is tried again');
  heard.add('dc3');
  t.equal(refusal(), undefined);
  heard.clear();
  t.equal(refusal(), undefined, 'all have been heard');
  hearing.begin();
  clock.advance(2_499);
  t.not(refusal(), undefined);
  clock.advance(1);
  t.equal(refusal(), undefined, 'one that is cut off is not waited for');
  t.end();
});

t.test('first hearing: nobody waits who is alone, or has seen something written', (t) => {
  const alone = aServer();
  alone.hearing.begin();
  t.equal(alone.refusal(), undefined);
  const restarted = aServer('dc2');
  restarted.state.hasCaughtUp = true;
  restarted.state.headSeq = 8;
  restarted.hearing.look();
  restarted.hearing.begin();
  t.equal(restarted.refusal(), undefined, 'whoever led then had heard the others');
  const awaits = 'datacenter dc1 has just begun, and waits a moment to hear dc2';
  t.equal(restarted.hearing.awaits(), awaits, 'which says nothing of what they have begun since');
  restarted.clock.advance(2_500);
  t.equal(restarted.hearing.awaits(), undefined);
  t.end();
});

t.test('first hearing: nothing else proves that the others were heard', (t) => {
  const { clock, hearing, refusal, state } = aServer('dc2');
  state.headSeq = 8;
  hearing.look();
  hearing.begin();
  t.not(refusal(), undefined, 'not what the log had before this server caught up');
  state.hasCaughtUp = true;
  hearing.look();
  clock.advance(60_000);
  t.equal(refusal(), undefined);
  hearing.begin();
  t.not(refusal(), undefined, 'nor an earlier reign in which nothing was written');
  state.headSeq = 9;
  hearing.look();
  hearing.begin();
  t.equal(refusal(), undefined);
  t.end();
});
