// Ages of remembered requests, by the clock of the server that saw them.

import t from 'tap';
import { RequestAges } from '../../src/service/request-ages.ts';

const MINUTE_MS = 60_000;

t.test('ages: nothing is due before it was seen for ten minutes', async (test) => {
  const ages = new RequestAges();
  test.equal(ages.dueBelow(0), undefined, 'nothing was seen');
  ages.note(0, 100);
  test.equal(ages.dueBelow(10 * MINUTE_MS - 1), undefined);
  test.equal(ages.dueBelow(10 * MINUTE_MS), 100);
  for (let at = 0; at <= 30 * MINUTE_MS; at += 1000) ages.note(at, 100 + at / 1000);
  const due = ages.dueBelow(30 * MINUTE_MS)!;
  test.ok(due > 100 + 19 * 60 && due <= 100 + 20 * 60, `${due}`);
});
