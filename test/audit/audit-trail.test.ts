// The audit log of a server while it runs: order, links, a disk that is full, a server that ended in the middle of a
// record, files that are put aside, refusals without end.

import { createHash } from 'node:crypto';
import t from 'tap';
import { AuditTrail } from '../../src/audit/audit-trail.ts';
import { AuditChecker } from '../../src/audit/check-audit-log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryAuditFile } from './memory-audit-file.ts';

interface World {
  readonly file: MemoryAuditFile;
  readonly clock: FakeClock;
  readonly said: string[];
  readonly trail: AuditTrail;
  /** Lets everything that waits for nothing but its turn happen. */
  settle(): Promise<void>;
}

async function open(
  given: { file?: MemoryAuditFile; isRequired?: boolean; rotateBytes?: number } = {},
): Promise<World> {
  const file = given.file ?? new MemoryAuditFile();
  const clock = new FakeClock();
  const said: string[] = [];
  const say = (_fields: object, message: string): void => void said.push(message);
  const trail = new AuditTrail({
    ...{ file, clock, logger: { debug: say, info: say, warn: say, error: say } },
    ...{ node: 'n1', datacenter: 'dc1' },
    rotateBytes: given.rotateBytes ?? 1e9,
    isRequired: given.isRequired ?? false,
  });
  await trail.open();
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { file, clock, said, trail, settle };
}

function checked(...texts: readonly string[]) {
  const checker = new AuditChecker();
  for (const text of texts) {
    checker.beginFile();
    for (const [place, line] of text.split('\n').slice(0, -1).entries())
      checker.line(line, `line ${place + 1}`);
  }
  return checker.end();
}

const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

const AT = { v: 1, time: '2026-01-01T00:01:00.000Z', node: 'n1', at: 'dc1' };
const made = (operation: string) => ({ event: 'answered', operation, outcome: 'done' }) as const;
const operations = ({ records }: MemoryAuditFile): readonly unknown[] =>
  records.map(({ event, operation }) => operation ?? event);

t.test('audit: records are written in order, each linked with the one before it', async (t) => {
  const { file, trail, settle } = await open();
  for (const operation of ['a', 'b', 'c']) trail.record(made(operation));
  await settle();
  t.same(operations(file), ['begun', 'a', 'b', 'c']);
  t.match(file.records[1], { v: 1, time: '2026-01-01T00:00:00.000Z', node: 'n1', at: 'dc1' });
  t.match(checked(file.text), { records: 4, lost: 0, torn: 0, firstPrevious: '0'.repeat(64) });
  t.equal(checked(file.text).lastLink, file.records[3]?.link);
  t.match(trail.figures, { written: 3, lost: 0, isFailing: false });
});

t.test(
  'audit: what is changed, taken out, added or turned round is told by its line',
  async (t) => {
    const { file, trail, settle } = await open();
    for (const operation of ['a', 'b', 'c', 'd']) trail.record(made(operation));
    await settle();
    const { lines } = file;
    const text = textOf;
    const changed = lines.with(2, lines[2]!.replace('"b"', '"x"'));
    t.throws(() => checked(text(changed)), { message: /^line 3: / }, 'changed');
    t.throws(() => checked(text(lines.toSpliced(2, 1))), { message: /^line 3: / }, 'taken out');
    t.throws(
      () => checked(text(lines.toSpliced(2, 0, lines[1]!))),
      { message: /^line 3: / },
      'added',
    );
    const turned = lines.with(2, lines[3]!).with(3, lines[2]!);
    t.throws(() => checked(text(turned)), { message: /^line 3: / }, 'turned round');
    t.throws(() => checked(text(lines.slice(1))), { message: /older files first/ }, 'no beginning');
    t.throws(() => checked(text(lines.with(2, '{"v":1,"ti'))), { message: /^line 3: .*whole/ });
    t.throws(() => checked(''), { message: 'there is no record' });
    t.ok(checked(text(lines.slice(0, 3))), 'what is cut off at the end is not seen');
  },
);

t.test('audit: whatever a client writes, a record is one line, for every reader', async (t) => {
  const { file, trail, settle } = await open();
  const odd = ['\u2028', '\u2029', '\u0085', '\u009b', '\v', '\f', '\r\n', '\ud800', '"', '😀'];
  const given = odd.map((char) => `a${char}{"v":1}`);
  for (const datacenter of given) trail.record({ ...made('x'), datacenter });
  await settle();
  t.match(checked(file.text), { records: 11, torn: 0 });
  t.same(
    file.records.slice(1).map(({ datacenter }) => datacenter),
    given,
  );
  const everyEnd = /\r\n|[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/;
  t.equal(file.text.split(everyEnd).length, 11 + 1);
  // So they were written before.
  const body = JSON.stringify({ v: 1, event: 'begun', datacenter: 'a\u2028b', previous: '' });
  const hash = createHash('sha256')
    .update(`\n${body.slice(0, -1)}`)
    .digest('hex');
  t.match(checked(`${body.slice(0, -1)},"link":"${hash}"}\n`), { records: 1, lastLink: hash });
});

t.test('audit: a record that is being written is told from one that is damaged', async (t) => {
  const { file, trail, settle } = await open();
  for (const operation of ['a', 'b']) trail.record(made(operation));
  await settle();
  const [last = '', ...before] = file.lines.toReversed();
  const checkedWith = (end: string, isEnded: boolean) => {
    const checker = new AuditChecker();
    for (const line of before.toReversed()) checker.line(line, 'before');
    checker.line(end, 'line 3', isEnded);
    return checker;
  };
  for (const length of [1, 8, last.length - 1]) {
    t.match(checkedWith(last.slice(0, length), false).end(), { records: 2, unfinished: 1 });
  }
  t.match(checkedWith(last, false).end(), { records: 3, unfinished: 0 });
  const behind = checkedWith('what is no record', true);
  behind.line(last.slice(0, 20), 'line 4', false);
  t.throws(() => behind.end(), { message: 'line 3: it is no whole record' }, 'the first one');
  const damaged = { message: 'line 3: it is no whole record' };
  t.throws(() => checkedWith(last.slice(0, 20), true).end(), damaged, 'it was ended');
  t.throws(() => checkedWith(last.slice(3), false).end(), damaged, 'no record begins so');
  const followed = checkedWith(last.slice(0, 20), false);
  t.throws(() => followed.line(last, 'line 1 of the next'), damaged, 'another file follows');
});

t.test('audit: a server goes on where it ended, also in the middle of a record', async (t) => {
  const first = await open();
  first.trail.record(made('a'));
  await first.trail.close();
  const { file } = first;
  const whole = file.text;
  for (const torn of ['', '{"v":1,"time":"2026', '{"v":1,"time":"2026\n']) {
    file.text = whole + torn;
    const { trail, settle } = await open({ file });
    trail.record(made('b'));
    await settle();
    t.match(checked(file.text), { records: 4, torn: torn === '' ? 0 : 1 }, JSON.stringify(torn));
  }
});

t.test('audit: a piece of a record is where the one behind it says so', async (t) => {
  const first = await open();
  first.trail.record(made('a'));
  await first.trail.close();
  const { file } = first;
  file.text += '{"v":1,"time":"2026","operation":"b"';
  for (let each = 0; each < 2; each += 1) await (await open({ file })).trail.close();
  const [begun = '', a = '', piece = '', torn = '', next = ''] = file.lines;
  const whole = { records: 4, torn: 1 };
  t.match(checked(textOf([begun, a, piece, torn, next])), whole);
  const missing = { message: 'line 3: the piece of a record that stood before it is missing' };
  t.throws(() => checked(textOf([begun, a, torn, next])), missing, 'taken out');
  t.throws(() => checked(textOf([begun, a]), textOf([torn, next])), { message: /^line 1: / });
  t.throws(() => checked(textOf([begun, a, piece]), textOf([torn])), { message: /^line 1: / });
  const added = [begun, a, piece, torn, '{"v":1,"operation":"c"}', next];
  t.throws(() => checked(textOf(added)), { message: 'line 5: it is no whole record' }, 'added');
  t.match(checked(textOf([begun, a]), textOf([piece, torn, next])), whole, 'in a file of its own');
  t.match(checked(textOf([torn, next])), { records: 2, torn: 0 }, 'what stood before is not known');
  t.match(checked(textOf([piece, torn, next])), { records: 2, torn: 1 });
  t.match(checked(textOf(['what a terminal shows', next])), { records: 1, torn: 1 });
});

t.test('audit: a piece of a record at the end of a file waits for the next record', async (t) => {
  const first = await open();
  first.trail.record(made('a'));
  await first.trail.reopen();
  first.trail.record(made('b'));
  await first.settle();
  const [begun = '', a = '', next = '', b = ''] = first.file.lines;
  const before = textOf([begun, a, '{"v":1,"x']);
  t.match(checked(before, '', textOf([next, b])), { records: 4, torn: 1 });
  const damaged = { message: 'line 3: it is no whole record' };
  t.throws(() => checked(before, ''), damaged, 'there is none');
  t.throws(() => checked(before, textOf([b])), damaged, 'it does not begin anything');
  const added = textOf(['added', next]);
  t.throws(() => checked(before, added), { message: 'line 1: it is no whole record' });
});

t.test(
  'audit: who takes records out of a file that is written to is shown by a check',
  async (t) => {
    const cases: Record<string, (world: World) => Promise<void>> = {
      'it is opened anew': ({ trail }) => trail.reopen(),
      'the disk fails for a moment': async ({ file, clock, trail, settle }) => {
        file.cutAt = 0;
        trail.record(made('x'));
        await settle();
        clock.advance(1_000);
      },
    };
    for (const [what, happens] of Object.entries(cases)) {
      const world = await open();
      const { file, said, trail, settle } = world;
      for (const operation of ['a', 'b', 'c']) trail.record(made(operation));
      await settle();
      const [begun = '', a = ''] = file.lines;
      file.text = textOf([begun, a]);
      await happens(world);
      trail.record(made('d'));
      await settle();
      t.ok(said.includes('the audit log does not end with what was written last'), what);
      t.throws(() => checked(file.text), { message: /^line 3: it, or what stood before/ }, what);
      t.ok(trail.figures.isFailing === false && file.records.at(-1)?.operation === 'd', what);
      const links = file.records.map(({ link }) => link);
      t.equal(new Set(links).size, links.length);
    }
  },
);

t.test('audit: a server goes on behind what it had put aside when it ended', async (t) => {
  const first = await open();
  first.trail.record(made('a'));
  await first.trail.close();
  const { file } = first;
  await file.rotate();
  for (const piece of ['', '{"v', '\0\0\0']) {
    file.text = piece;
    const { trail } = await open({ file });
    await trail.close();
    t.equal(checked(...file.aside, file.text).records, 3, JSON.stringify(piece));
  }
  file.endOfAside = () => Promise.reject(new Error('it is not for this server'));
  file.text = '';
  const { trail } = await open({ file });
  await trail.close();
  t.match(file.records, [{ event: 'begun', previous: '0'.repeat(64) }]);
});

t.test('audit: a file of something else is not touched', async (t) => {
  const file = new MemoryAuditFile();
  file.text = 'a list of things to buy\n';
  await t.rejects(open({ file }), { message: 'the file holds something else than an audit log' });
  t.equal(file.text, 'a list of things to buy\n');
});

t.test('audit: a file that is full is put aside, and the next one is linked with it', async (t) => {
  const { file, trail, settle } = await open({ rotateBytes: 400 });
  for (const operation of ['a', 'b']) {
    trail.record(made(operation));
    await settle();
  }
  t.equal(file.aside.length, 1);
  t.equal(file.records[0]?.event, 'continued');
  t.equal(checked(...file.aside.toReversed(), file.text).records, 4);
  t.equal(checked(file.text).firstPrevious, checked(file.aside[0]!).lastLink);
});

t.test('audit: a disk that is full does not keep a server from starting', async (t) => {
  const file = new MemoryAuditFile();
  const { append } = file;
  for (const [place, code] of ['ENOSPC', 'EDQUOT'].entries()) {
    const full = Object.assign(new Error('no room'), { code });
    file.append = () => Promise.reject(full);
    const { clock, said, trail, settle } = await open({ file });
    t.same(said, ['the audit log cannot be written'], code);
    t.equal(trail.figures.isFailing, true);
    for (let seconds = 0; seconds < 3; seconds += 1) {
      clock.advance(1_000);
      await settle();
    }
    file.append = append;
    clock.advance(1_000);
    await settle();
    t.same(operations(file), Array(place + 1).fill('begun'));
    t.equal(trail.figures.isFailing, false);
  }
  file.append = () => Promise.reject(new Error('it is not ours'));
  await t.rejects(open({ file }), { message: 'it is not ours' });
});

t.test('audit: a file that cannot be put aside grows on, and is tried again', async (t) => {
  const { file, clock, said, trail, settle } = await open({ rotateBytes: 400 });
  const { rotate } = file;
  file.rotate = () => Promise.reject(new Error('the folder is not ours'));
  for (const operation of ['a', 'b', 'c', 'd']) {
    trail.record(made(operation));
    await settle();
  }
  t.same(operations(file), ['begun', 'a', 'begun', 'b', 'c', 'd']);
  t.same(said, ['the audit log cannot be put aside, and grows on'], 'it says so once a minute');
  t.match(trail.figures, { written: 4, isFailing: false });
  file.rotate = rotate;
  clock.advance(60_000);
  trail.record(made('e'));
  await settle();
  t.same(operations(file), ['continued', 'e']);
  t.equal(checked(...file.aside, file.text).records, 8);
});

t.test(
  'audit: what cannot be written waits, is then lost and counted, and said once',
  async (t) => {
    const { file, clock, said, trail, settle } = await open();
    trail.record(made('a'));
    await settle();
    file.isFull = true;
    for (let each = 0; each < 10_050; each += 1) trail.record(made('b'));
    await settle();
    t.match(trail.figures, { written: 1, lost: 50, isFailing: true });
    t.same(said, ['the audit log cannot be written']);
    let tries = 0;
    const { open: reopen } = file;
    file.open = () => {
      tries += 1;
      return reopen.call(file);
    };
    for (let seconds = 0; seconds < 5; seconds += 1) {
      clock.advance(1_000);
      await settle();
      t.equal(tries, seconds + 1, 'once a second');
    }
    t.equal(said.length, 1, 'it tries on, and does not say so each time');
    file.isFull = false;
    clock.advance(1_000);
    for (let turn = 0; turn < 100; turn += 1) await settle();
    t.match(trail.figures, { written: 10_001, lost: 50, isFailing: false });
    t.same(said, ['the audit log cannot be written', 'the audit log is written again']);
    t.match(checked(file.text), { lost: 50, torn: 0 });
    file.isFull = true;
    tries = 0;
    for (let each = 0; each < 5; each += 1) {
      trail.record(made('c'));
      await settle();
    }
    t.equal(tries, 0, 'however many come');
    t.equal(clock.pendingCount, 1);
    clock.advance(1_000);
    await settle();
    t.equal(tries, 1);
    tries = 0;
    await trail.close();
    t.equal(tries, 1, 'what waits is written, once');
    clock.advance(60_000);
    await settle();
    t.equal(tries, 1, 'and nothing behind that');
  },
);

t.test('audit: what a disk that hung lost is told in the log when it goes on', async (t) => {
  const { file, trail, settle } = await open();
  const { append } = file;
  let goOn = (): void => undefined;
  file.append = async (text, isSynced) => {
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await append.call(file, text, isSynced);
  };
  trail.record(made('a'));
  await settle();
  for (let each = 0; each < 10_050; each += 1) trail.record(made('b'));
  t.match(trail.figures, { lost: 51 });
  file.append = append;
  goOn();
  for (let turn = 0; turn < 100; turn += 1) await settle();
  t.match(checked(file.text), { records: 10_001, lost: 51 });
  t.equal(file.records.filter(({ lost }) => lost !== undefined).length, 1, 'once');
});

t.test('audit: what was lost is told once, also where nobody knew that it was told', async (t) => {
  const { file, clock, trail, settle } = await open();
  file.isFull = true;
  for (let each = 0; each < 10_050; each += 1) trail.record(made('b'));
  await settle();
  file.isFull = false;
  const { append } = file;
  file.append = async (text, isSynced) => {
    await append.call(file, text, isSynced);
    file.append = append;
    throw new Error('it is not known whether it is on disk');
  };
  for (let seconds = 0; seconds < 100; seconds += 1) {
    clock.advance(1_000);
    await settle();
  }
  t.match(trail.figures, { written: 10_000, lost: 50, isFailing: false });
  t.match(checked(file.text), { records: 10_003, lost: 50 });
});

t.test('audit: behind half a record the whole one is written once more', async (t) => {
  const { file, clock, trail, settle } = await open();
  file.cutAt = 20;
  trail.record(made('a'));
  await settle();
  clock.advance(1_000);
  await settle();
  t.same(operations(file), ['begun', 'begun', 'a']);
  t.match(checked(file.text), { torn: 1 });
});

t.test('audit: of records that were written in part each is there once', async (t) => {
  const { file, clock, said, trail, settle } = await open();
  const before = file.text.length;
  trail.record(made('a'));
  trail.record(made('b'));
  file.cutAt = before + 60;
  await settle();
  t.same(operations(file), ['begun', 'a'], 'one, and a piece of the other');
  clock.advance(1_000);
  await settle();
  t.same(operations(file), ['begun', 'a', 'begun', 'b']);
  t.same(said, ['the audit log cannot be written', 'the audit log is written again']);
  t.match(trail.figures, { written: 2, lost: 0 });
  t.match(checked(file.text), { records: 4, torn: 1 });
});

t.test('audit: a piece at the end of a file that was moved away is no fault', async (t) => {
  const { file, clock, trail, settle } = await open();
  file.cutAt = 20;
  trail.record(made('a'));
  await settle();
  const moved = `${file.text}\n`;
  file.text = '';
  clock.advance(1_000);
  await settle();
  t.match(checked(moved, file.text), { records: 3, torn: 1 });
});

t.test('audit: a disk that hangs holds up nobody for ever, and shows', async (t) => {
  const { file, clock, trail, settle } = await open({ isRequired: true });
  const { append } = file;
  let goOn = (): void => undefined;
  file.append = async (text, isSynced) => {
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await append.call(file, text, isSynced);
  };
  const waiting = t.rejects(trail.recorded(made('a')), { message: 'the disk took more than 5 s' });
  await settle();
  t.equal(trail.figures.isFailing, false);
  clock.advance(5_001);
  await waiting;
  t.equal(trail.figures.isFailing, true);
  goOn();
  await settle();
  t.equal(trail.figures.isFailing, false);
  t.same(operations(file), ['begun', 'a'], 'it may come to be there all the same');
});

t.test('audit: a file is not closed while it is written to', async (t) => {
  const { file, trail, settle } = await open({ isRequired: true });
  let isBusy = false;
  const { append, open: reopen } = file;
  file.append = async (text, isSynced) => {
    isBusy = true;
    await settle();
    await append.call(file, text, isSynced);
    isBusy = false;
  };
  const touch = async (): Promise<string> => {
    t.notOk(isBusy, 'one call at a time');
    return reopen.call(file);
  };
  file.open = touch;
  file.close = async () => void (await touch());
  /** Another one comes some turns behind the first: with some number, when the writing of that one has just ended. */
  const inTurn = async (turns: number): Promise<void> => {
    await trail.recorded(made('first'));
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    await trail.recorded(made('second'));
  };
  for (let turns = 0; turns < 10; turns += 1) {
    await Promise.all([inTurn(turns), settle().then(() => trail.reopen())]);
    await Promise.all([inTurn(turns), settle().then(() => trail.close())]);
  }
  const last = trail.recorded(made('last'));
  await trail.close();
  await last;
  t.ok(checked(file.text));
});

t.test(
  'audit: where it is required, a record is on disk when it counts, or its writer is told',
  async (t) => {
    const { file, trail, settle } = await open({ isRequired: true });
    await trail.recorded(made('a'));
    t.same(operations(file), ['begun', 'a']);
    t.ok(file.synced.every(Boolean), 'it is on disk');
    file.isFull = true;
    const waiting = Array.from({ length: 3 }, () => trail.recorded(made('b')));
    for (const each of await Promise.allSettled(waiting))
      t.match(each, { status: 'rejected', reason: { message: 'no room' } });
    await t.rejects(trail.recorded(made('c')), { message: 'no room' }, 'it is tried at once');
    file.isFull = false;
    await trail.recorded(made('d'));
    await settle();
    t.same(
      operations(file),
      ['begun', 'a', 'begun', 'd'],
      'what was refused is not recorded later',
    );
    t.ok(checked(file.text));
  },
);

t.test('audit: it goes on in a file that somebody else has put in its place', async (t) => {
  const { file, trail, settle } = await open();
  trail.record(made('a'));
  await settle();
  const before = file.text;
  file.text = '';
  await trail.reopen();
  trail.record(made('b'));
  await settle();
  t.same(operations(file), ['begun', 'b']);
  t.equal(checked(before, file.text).records, 4);
});

t.test('audit: refusals without end are told once a minute, and counted', async (t) => {
  const { file, clock, trail, settle } = await open();
  const refused = (client: string, requestId?: string): void =>
    trail.recordRefusal(`x ${client}`, { event: 'answered', operation: 'x', client, requestId });
  for (let each = 0; each < 5; each += 1) refused('one', `${each}`);
  refused('other');
  await settle();
  t.same(operations(file), ['begun', 'x', 'x']);
  clock.advance(60_000);
  await settle();
  t.match(file.records[1], { client: 'one', requestId: '0' });
  t.match(file.records.slice(3), [{ client: 'one', requestId: '4', repeated: 4 }], 'the last one');
  refused('one');
  await settle();
  t.equal(file.records.length, 5, 'the next minute begins anew');
  for (let each = 0; each < 2_000; each += 1) refused(`host ${each}`);
  await settle();
  t.equal(file.records.length, 5 + 999, 'of very many kinds a thousand are told apart');
  await trail.close();
  t.same(
    { ...file.records.at(-1), link: '' },
    { ...AT, event: 'answered', outcome: 'refused', repeated: 1_001, link: '' },
    'and the others are counted together',
  );
});
