// What all share waits, behind the start of a primary, until all have been heard who may have more of it.

import t from 'tap';
import { FirstHearing } from '../../src/node/first-hearing.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import { FakeClock } from '../support/fake-clock.ts';

function aServer(...others: readonly string[]) {
  const clock = new FakeClock(5_000);
  const heard = new Set<string>();
  const hearing = new FirstHearing({
    ...{ clock, datacenter: 'dc1' },
    others: () => others,
    isHeard: (each) => heard.has(each),
  });
  return { clock, heard, hearing, refusal: () => hearing.refusal() };
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
  clock.advance(2_499);
  t.not(refusal(), undefined);
  clock.advance(1);
  t.equal(refusal(), undefined, 'one that is cut off is not waited for');
  t.end();
});

t.test('first hearing: nobody waits who is alone, or came to a group that had a leader', (t) => {
  const alone = aServer();
  alone.hearing.begin();
  t.equal(alone.refusal(), undefined);
  const restarted = aServer('dc2');
  restarted.hearing.follows(true);
  restarted.clock.advance(2_500);
  restarted.hearing.follows(true);
  restarted.hearing.follows(false);
  restarted.hearing.begin();
  t.equal(restarted.refusal(), undefined, 'whoever has followed for as long as that takes');
  t.end();
});

t.test('first hearing: a leader of a moment proves nothing', (t) => {
  const { clock, hearing, refusal } = aServer('dc2');
  for (let time = 0; time < 3; time += 1) {
    hearing.follows(true);
    clock.advance(1_000);
    hearing.follows(false);
  }
  clock.advance(60_000);
  hearing.begin();
  t.not(refusal(), undefined, 'nor does a start of long ago');
  clock.advance(1_000);
  hearing.begin();
  clock.advance(2_000);
  t.not(refusal(), undefined, 'nor a reign of its own that was over before');
  clock.advance(500);
  t.equal(refusal(), undefined);
  hearing.begin();
  t.equal(refusal(), undefined, 'a reign that heard the others, or waited for them, does');
  t.end();
});
