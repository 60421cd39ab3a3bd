// Ages of remembered requests, by the clock of the server that saw them.

import t from 'tap';
import { REAP_BATCH_MAX } from '../../src/service/duties/duties.ts';
import { RequestAges } from '../../src/service/duties/request-ages.ts';

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

t.test('ages: however many come, what is due is found within seconds', async (test) => {
  const ages = new RequestAges();
  const requests = new Requests();
  const perSecond = 2 * REAP_BATCH_MAX;
  for (let second = 0; second < 20 * 60; second += 1) {
    requests.come(perSecond);
    // Looks follow each other for as long as each finds as many as it may.
    while (requests.look(ages, second * 1000) === REAP_BATCH_MAX);
  }
  const minutes = requests.count / (60 * perSecond);
  test.ok(minutes < 10.5, `those of ${minutes} minutes are remembered`);
});

/** Remembered requests, each by the index of its answer, in the order in which they came. */
class Requests {
  readonly #isThere = [false];
  #first = 1;
  count = 0;

  come(count: number): void {
    for (let each = 0; each < count; each += 1) this.#isThere.push(true);
    this.count += count;
  }

  /** As the duties look; gives how many were found, which are gone then. */
  look(ages: RequestAges, nowMs: number): number {
    ages.note(nowMs, this.#isThere.length);
    const below = ages.dueBelow(nowMs);
    if (below === undefined) return 0;
    const looked = this.#next(ages.after === undefined ? this.#first : indexIn(ages.after) + 1);
    const due = looked.filter((index) => index < below);
    for (const index of due) this.#isThere[index] = false;
    this.count -= due.length;
    while (this.#isThere[this.#first] === false) this.#first += 1;
    ages.looked(looked.length < REAP_BATCH_MAX ? undefined : keyOf(looked.at(-1)!));
    return due.length;
  }

  #next(from: number): readonly number[] {
    const found: number[] = [];
    for (let index = from; index < this.#isThere.length; index += 1) {
      if (found.length === REAP_BATCH_MAX) break;
      if (this.#isThere[index] === true) found.push(index);
    }
    return found;
  }
}

function keyOf(index: number): Uint8Array {
  return Buffer.from(String(index));
}

function indexIn(key: Uint8Array): number {
  return Number(Buffer.from(key).toString());
}
