// A primary and two datacenters that follow it, on real state machines, over random histories: whatever arrives how and
// when, a token that was deleted, void or expired never acts again, what one may do is what was said of it last, and
// nothing that is kept in memory of it is of the past. What each token may do, and who may log in to what, is told
// from the history alone.

import fc from 'fast-check';
import t from 'tap';
import { beginnings, histories } from './history-steps.ts';
import { HistoryWorld } from './history-world.ts';

const { NEVER_AGAIN_SEED, NEVER_AGAIN_PATH: path, NEVER_AGAIN_RUNS = '60' } = process.env;

t.test('random histories: what a token lost it never gets back', async (test) => {
  const seed = Number(NEVER_AGAIN_SEED ?? Math.floor(Math.random() * 2 ** 31));
  test.comment(`NEVER_AGAIN_SEED=${seed} node dist/test/state/never-again.test.js`);
  const reached = new Map<string, number>();
  const property = fc.asyncProperty(histories, beginnings, async (steps, beginning) => {
    const world = new HistoryWorld(reached);
    await world.open(beginning);
    for (const each of steps) await world.take(each);
    await world.close();
  });
  const numRuns = Number(NEVER_AGAIN_RUNS);
  const endOnFailure = path === undefined;
  await fc.assert(property, { seed, numRuns, endOnFailure, ...(path !== undefined && { path }) });
  if (path !== undefined) return;
  for (const what of [
    'global-log.apply applied',
    'global-snapshot.commit applied',
    'epoch.fence applied',
    'raised from 2',
    'shared: role',
    'shared: no role',
    'shared: defaults',
    'login: made',
    'logout: done',
    'void: the method is gone',
    'void: the namespace is gone',
  ]) {
    test.ok(reached.has(what), `${what}: ${reached.get(what)}`);
  }
});
