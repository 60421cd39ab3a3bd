// What is kept decoded of the state: until it is forgotten, within bounds, and not at the cost of what is read
// again and again.

import t from 'tap';
import { AskedBefore } from '../../src/state/reads/asked-before.ts';
import { type KeptWhenFull, ObjectCache } from '../../src/state/reads/object-cache.ts';

/** A cache of texts by key, and how often each was loaded. */
function counted(keptWhenFull: KeptWhenFull) {
  const cache = new ObjectCache<{ text: string }>(keptWhenFull);
  const stored = new Map<string, { text: string }>();
  const loads: string[] = [];
  const get = (key: string): string | undefined => {
    const load = () => {
      loads.push(key);
      return stored.get(key);
    };
    return cache.get(key, load)?.text;
  };
  return { cache, stored, loads, get };
}

/** Reads so many others that there is no room any more. */
function fill({ stored, loads, get }: ReturnType<typeof counted>): void {
  for (let number = 0; number < 20_000; number += 1) {
    stored.set(`other ${number}`, { text: 'other' });
    get(`other ${number}`);
  }
  loads.length = 0;
}

t.test('kept objects: from a read on until they are forgotten', (t) => {
  for (const [keptWhenFull, isFull, loadCount] of [
    ['each-read', false, 1],
    ['each-read', true, 1],
    ['second-reads', false, 1],
    ['second-reads', true, 2],
  ] as const) {
    const made = counted(keptWhenFull);
    const { cache, stored, loads, get } = made;
    if (isFull) fill(made);
    stored.set('a', { text: 'old' });
    for (let time = 0; time < 5; time += 1) t.equal(get('a'), 'old');
    t.equal(loads.length, loadCount, `${keptWhenFull}, ${isFull ? 'full' : 'with room'}`);
    stored.set('a', { text: 'new' });
    cache.forget(['a']);
    t.equal(get('a'), 'new');
    stored.delete('a');
    cache.clear();
    loads.length = 0;
    for (let time = 0; time < 3; time += 1) t.equal(get('a'), undefined);
    t.equal(loads.length, 3, 'nothing missing is kept');
  }
  t.end();
});

t.test('kept objects: what is read once puts nothing out', (t) => {
  const { stored, loads, get } = counted('second-reads');
  stored.set('often', { text: 'often' });
  for (let time = 0; time < 3; time += 1) get('often');
  for (let number = 0; number < 100_000; number += 1) {
    const key = `once ${number}`;
    stored.set(key, { text: key });
    get(key);
  }
  loads.length = 0;
  t.equal(get('often'), 'often');
  t.same(loads, []);
  t.end();
});

t.test('kept objects: what is read in turn again and again is soon kept whole', (t) => {
  const made = counted('second-reads');
  const { stored, loads, get } = made;
  fill(made);
  const readAll = (): number => {
    loads.length = 0;
    for (let number = 0; number < 10_000; number += 1) get(`${number}`);
    return loads.length;
  };
  for (let number = 0; number < 10_000; number += 1) stored.set(`${number}`, { text: 'x' });
  for (let time = 0; time < 4; time += 1) readAll();
  const loaded = readAll();
  t.ok(loaded < 500, `${loaded} of 10,000 were loaded once more`);
  t.end();
});

t.test('kept objects: as many as may be, by their number and by their text', (t) => {
  const { stored, loads, get } = counted('each-read');
  const readTwice = (count: number, size: number): number => {
    for (let number = 0; number < count; number += 1) {
      stored.set(`${size} ${number}`, { text: 'x'.repeat(size) });
      get(`${size} ${number}`);
    }
    loads.length = 0;
    for (let number = count - 1; number >= 0; number -= 1) get(`${size} ${number}`);
    return count - loads.length;
  };
  t.equal(readTwice(25_000, 1), 20_000);
  const kept = readTwice(40, 1024 * 1024);
  t.ok(kept >= 15 && kept <= 16, `${kept} of a Mi characters each`);
  t.end();
});

t.test('asked before: remembers what was asked lately, and not for long', (t) => {
  const asked = new AskedBefore(20_000);
  t.equal(asked.note('a'), false);
  t.equal(asked.note('a'), true);
  t.equal(asked.note('b'), false);
  let wrong = 0;
  for (let number = 0; number < 50_000; number += 1) if (asked.note(`${number}`)) wrong += 1;
  t.ok(wrong < 50, `${wrong} of 50,000 were taken for others`);
  let still = 0;
  for (let number = 0; number < 20_000; number += 1) if (asked.note(`${number}`)) still += 1;
  t.ok(still < 10_000, 'older ones have made room');
  t.end();
});
