// What all share waits, behind the start of a primary, until all have been heard who may have more of it.

import t from 'tap';
import { FirstHearing } from '../../../src/node/federation/gate/first-hearing.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function aServer(...listed: readonly string[]) {
  const others = [...listed];
  const seeds: (() => void)[] = [];
  const clock = new FakeClock(5_000);
  const heard = new Set<string>();
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const state = { headSeq: 7, hasCaughtUp: false, hasSeeds: false };
  const hearing = new FirstHearing({
    ...{ clock, datacenter: 'dc1' },
    others: () => others,
    find: () => (state.hasSeeds ? new Promise((resolve) => seeds.push(resolve)) : undefined),
    isHeard: (each) => heard.has(each),
    ask: (each, limitMs) => {
      asked.push(`${each} within ${limitMs} ms`);
      return new Promise((resolve) => answers.push(resolve));
    },
    headSeq: () => state.headSeq,
    hasCaughtUp: () => state.hasCaughtUp,
  });
  const refusal = () => hearing.refusal();
  return { asked, answers, clock, heard, hearing, others, refusal, seeds, state };
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

t.test('first hearing: all are asked at once, and again who has not answered', async (t) => {
  const { asked, answers, clock, heard, hearing } = aServer('dc2', 'dc3');
  hearing.begin();
  t.strictSame(asked, ['dc2 within 2500 ms', 'dc3 within 2500 ms']);
  clock.advance(250);
  t.equal(asked.length, 2, 'not while the answer is on its way');
  heard.add('dc2');
  for (const answer of answers) answer();
  await Promise.resolve();
  clock.advance(250);
  t.strictSame(asked.slice(2), ['dc3 within 2000 ms'], 'not who was heard');
  hearing.begin();
  t.strictSame(asked.slice(3), ['dc3 within 2500 ms'], 'in the next reign, too');
  clock.advance(2_500);
  answers.at(-1)?.();
  await Promise.resolve();
  clock.advance(250);
  t.equal(asked.length, 4, 'nobody is asked for ever');
});

t.test(
  'first hearing: who came since the day of the log is heard of, and waited for',
  async (t) => {
    const { asked, clock, heard, hearing, others, refusal, seeds, state } = aServer();
    state.hasSeeds = true;
    hearing.begin();
    t.match(
      refusal()?.message,
      /dc1 has just begun, and waits a moment to hear who else is there$/,
    );
    t.ok(refusal() instanceof LeaderAway);
    clock.advance(250);
    others.push('dc2');
    seeds[0]?.();
    await Promise.resolve();
    t.strictSame(asked, ['dc2 within 2250 ms'], 'at once');
    t.match(refusal()?.message, /to hear dc2$/);
    heard.add('dc2');
    t.equal(refusal(), undefined);
    hearing.begin();
    clock.advance(100);
    hearing.begin();
    seeds[1]?.();
    await Promise.resolve();
    t.match(refusal()?.message, /who else is there$/, 'what an earlier reign has asked is not it');
    seeds[2]?.();
    await Promise.resolve();
    t.equal(refusal(), undefined, 'nobody else is');
    others.pop();
    hearing.begin();
    clock.advance(2_499);
    t.not(refusal(), undefined);
    clock.advance(1);
    t.equal(refusal(), undefined, 'who does not answer is not waited for');
  },
);
