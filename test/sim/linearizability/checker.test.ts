// Small histories by hand, a comparison with trying every order, and the rules of the record.
import fc from 'fast-check';
import t from 'tap';
import { checkOperations } from './checker.ts';
import type { CallEvent, HistoryEvent, ReturnEvent } from './history.ts';
import { operationsOf, readHistory, writeHistory } from './history.ts';
import type { Model, Operation, Seen } from './model.ts';
import { unknownOutput } from './model.ts';
import type { RegisterInput, RegisterOutput, RegisterValue } from './register-model.ts';
import { registerModel } from './register-model.ts';
import type { UniqueNameInput, UniqueNameOutput } from './unique-name-model.ts';
import { uniqueNameModel } from './unique-name-model.ts';

type RegisterOperation = Operation<RegisterInput, RegisterOutput>;

function at<I, O>(
  callTime: number,
  returnTime: number,
  input: I,
  output: Seen<O>,
): Operation<I, O> {
  return { client: callTime, callTime, returnTime, input, output };
}
function read(from: number, to: number, value: RegisterValue, key = 'k'): RegisterOperation {
  return at(from, to, { kind: 'read', key }, { kind: 'value', value });
}
function write(from: number, to: number, value: string, key = 'k'): RegisterOperation {
  return at(from, to, { kind: 'write', key, value }, { kind: 'done' });
}
function cas(from: number, to: number, pair: string, kind: 'done' | 'mismatch'): RegisterOperation {
  return at(from, to, { kind: 'cas', key: 'k', expected: pair[0]!, value: pair[1]! }, { kind });
}
function lost(operation: RegisterOperation): RegisterOperation {
  return { ...operation, output: unknownOutput };
}

const registerCases: readonly (readonly [
  string,
  'legal' | 'illegal',
  readonly RegisterOperation[],
])[] = [
  ['nothing happened', 'legal', []],
  ['a read after a write sees it', 'legal', [write(0, 1, 'a'), read(2, 3, 'a')]],
  ['a stale read', 'illegal', [write(0, 1, 'a'), write(2, 3, 'b'), read(4, 5, 'a')]],
  ['a lost write', 'illegal', [write(0, 1, 'a'), read(2, 3, null)]],
  ['a read during a write sees the old value', 'legal', [write(0, 9, 'a'), read(2, 3, null)]],
  ['a read during a write sees the new value', 'legal', [write(0, 9, 'a'), read(2, 3, 'a')]],
  [
    'new, then old, during one write',
    'illegal',
    [write(0, 9, 'a'), read(1, 2, 'a'), read(3, 4, null)],
  ],
  ['an unknown write that took effect', 'legal', [lost(write(0, 1, 'a')), read(2, 3, 'a')]],
  ['an unknown write that did not', 'legal', [lost(write(0, 1, 'a')), read(2, 3, null)]],
  [
    'an unknown write that came late',
    'legal',
    [lost(write(0, 1, 'a')), read(2, 3, null), read(4, 5, 'a')],
  ],
  [
    'an unknown write undone',
    'illegal',
    [lost(write(0, 1, 'a')), read(2, 3, 'a'), read(4, 5, null)],
  ],
  ['an unknown write seen before its call', 'illegal', [read(0, 1, 'a'), lost(write(2, 3, 'a'))]],
  ['zero-length intervals at one time', 'legal', [read(5, 5, 'a'), write(5, 5, 'a')]],
  ['intervals that touch are concurrent', 'legal', [read(0, 5, 'a'), write(5, 9, 'a')]],
  ['zero-length intervals in order', 'illegal', [write(5, 5, 'a'), read(6, 6, null)]],
  [
    'a compare-and-set that matched',
    'legal',
    [write(0, 1, 'a'), cas(2, 3, 'ab', 'done'), read(4, 5, 'b')],
  ],
  [
    'two compare-and-sets won once',
    'illegal',
    [write(0, 1, 'a'), cas(2, 5, 'ab', 'done'), cas(2, 5, 'ac', 'done')],
  ],
  ['a mismatch although it matched', 'illegal', [write(0, 1, 'a'), cas(2, 3, 'ab', 'mismatch')]],
  ['keys do not mix', 'legal', [write(0, 1, 'a', 'x'), read(2, 3, null, 'y')]],
  [
    'one bad key among good ones',
    'illegal',
    [write(0, 1, 'a', 'x'), read(2, 3, 'a', 'x'), read(2, 3, 'a', 'y')],
  ],
];

for (const [name, kind, operations] of registerCases) {
  t.test(`register: ${name} is ${kind}`, (t) => {
    t.equal(checkOperations(registerModel, operations).kind, kind);
    t.equal(checkOperations(registerModel, operations.toReversed()).kind, kind);
    t.end();
  });
}

function name(
  from: number,
  to: number,
  input: UniqueNameInput,
  kind: 'done' | 'taken' | 'missing',
) {
  return at<UniqueNameInput, UniqueNameOutput>(from, to, input, { kind });
}
const createOne = { kind: 'create', id: '1', name: 'n' } as const;
const createTwo = { kind: 'create', id: '2', name: 'n' } as const;
const renameOne = { kind: 'rename', id: '1', name: 'm' } as const;
const findN = { kind: 'find', name: 'n' } as const;
const nameCases = [
  [
    'one of two creates wins',
    'legal',
    [name(0, 5, createOne, 'done'), name(0, 5, createTwo, 'taken')],
  ],
  ['two creates win', 'illegal', [name(0, 5, createOne, 'done'), name(0, 5, createTwo, 'done')]],
  ['a create is refused without cause', 'illegal', [name(0, 1, createOne, 'taken')]],
  [
    'a rename frees the name',
    'legal',
    [name(0, 1, createOne, 'done'), name(2, 3, renameOne, 'done'), name(4, 5, createTwo, 'done')],
  ],
  [
    'a removed name stays found',
    'illegal',
    [
      name(0, 1, createOne, 'done'),
      name(2, 3, { kind: 'remove', id: '1' }, 'done'),
      at(4, 5, findN, { kind: 'found', id: '1' } as const),
    ],
  ],
  [
    'a removed name is gone',
    'legal',
    [
      name(0, 1, createOne, 'done'),
      name(2, 3, { kind: 'remove', id: '1' }, 'done'),
      name(4, 5, findN, 'missing'),
    ],
  ],
] as const;

for (const [title, kind, operations] of nameCases) {
  t.test(`unique name: ${title}: ${kind}`, (t) => {
    t.equal(
      checkOperations<ReadonlyMap<string, string>, UniqueNameInput, UniqueNameOutput>(
        uniqueNameModel,
        operations,
      ).kind,
      kind,
    );
    t.end();
  });
}

t.test('checker: an illegal verdict shows the longest order and what did not fit', (t) => {
  const verdict = checkOperations(registerModel, [write(0, 1, 'a'), read(2, 3, null)]);
  t.equal(
    verdict.kind === 'illegal' && verdict.text,
    [
      'not linearizable; the longest order places 1 operations:',
      '  1. client 0 [0, 1] write k a -> done',
      '  state: a',
      'could not be placed: client 2 [2, 3] read k -> empty',
    ].join('\n'),
  );
  t.end();
});

/** Every write concurrent and a read of a value nobody wrote: all orders must be tried. */
const hard = [...'abcdefghijklmn'].map((value) => write(0, 100, value)).concat(read(0, 100, 'z'));

t.test('checker: says unknown when the steps or the memory run out', (t) => {
  const steps = checkOperations(registerModel, hard, { stepMax: 1000, sizeMaxBytes: 1e9 });
  t.match(steps, { kind: 'unknown', exhausted: 'steps', stepCount: 1000 });
  const memory = checkOperations(registerModel, hard, { stepMax: 1e7, sizeMaxBytes: 100_000 });
  t.match(memory, { kind: 'unknown', exhausted: 'memory' });
  t.end();
});

t.test('checker: finds a larger illegal partition while a smaller one is hard', (t) => {
  const chain = Array.from({ length: 20 }, (_, i) => write(2 * i, 2 * i + 1, String(i), 'y'));
  const verdict = checkOperations(registerModel, [...hard, ...chain, read(90, 91, '0', 'y')]);
  t.equal(verdict.kind, 'illegal');
  t.ok(verdict.stepCount < 30_000, `${verdict.stepCount} steps`);
  t.end();
});

t.test('checker: follows all states of a model that may go more than one way', (t) => {
  const coin: Model<number, 'flip' | 'look', number> = {
    init: () => 0,
    step: (state, input, output) => (input === 'flip' ? [0, 1] : output === state ? [state] : []),
    equal: (left, right) => left === right,
    hash: () => 7,
    partition: (operations) => [operations],
    describe: (input, output) => `${input} ${String(output)}`,
    describeState: String,
  };
  const flip = at<'flip' | 'look', number>(0, 1, 'flip', 0);
  const look = (time: number, side: number) =>
    at<'flip' | 'look', number>(time, time, 'look', side);
  t.equal(checkOperations(coin, [flip, look(2, 1), look(3, 1)]).kind, 'legal');
  t.equal(checkOperations(coin, [flip, look(2, 1), look(3, 0)]).kind, 'illegal');
  t.end();
});

function permutations<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, i) =>
    permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]),
  );
}

/** Plays an order on a table of keys; written apart from the register model on purpose. */
function plays(order: readonly RegisterOperation[]): boolean {
  const table = new Map<string, RegisterValue>();
  return order.every(({ input, output }, i) => {
    const overtakes = order
      .slice(i + 1)
      .some((later) => later.output !== unknownOutput && later.returnTime < order[i]!.callTime);
    if (overtakes) return false;
    const now = table.get(input.key) ?? null;
    const hit = input.kind === 'write' || (input.kind === 'cas' && input.expected === now);
    if (hit) table.set(input.key, input.value);
    if (output === unknownOutput) return true;
    if (input.kind === 'read') return output.kind === 'value' && output.value === now;
    return output.kind === (hit ? 'done' : 'mismatch');
  });
}

function bruteForce(operations: readonly RegisterOperation[]): boolean {
  const open = operations.filter(({ output }) => output === unknownOutput);
  const known = operations.filter(({ output }) => output !== unknownOutput);
  return Array.from({ length: 2 ** open.length }, (_, mask) =>
    known.concat(open.filter((_, i) => (mask >> i) & 1)),
  ).some((chosen) => permutations(chosen).some(plays));
}

const value = fc.constantFrom('a', 'b');
const key = fc.constantFrom('x', 'x', 'y');
const anyOperation: fc.Arbitrary<RegisterOperation> = fc
  .tuple(
    fc.nat(8),
    fc.nat(4),
    fc.nat(4),
    fc.oneof(
      fc.tuple(key, fc.option(value)).map(
        ([key, value]) =>
          [
            { kind: 'read', key },
            { kind: 'value', value },
          ] as const,
      ),
      fc
        .tuple(key, value)
        .map(([key, value]) => [{ kind: 'write', key, value }, { kind: 'done' }] as const),
      fc
        .tuple(key, value, value, fc.constantFrom('done' as const, 'mismatch' as const))
        .map(
          ([key, expected, value, kind]) =>
            [{ kind: 'cas', key, expected, value }, { kind }] as const,
        ),
    ),
  )
  .map(([from, length, fate, [input, output]]) =>
    at<RegisterInput, RegisterOutput>(
      from,
      from + length,
      input,
      fate === 0 ? unknownOutput : output,
    ),
  );

t.test('checker: agrees with trying every order of up to six operations', (t) => {
  let legal = 0;
  const numRuns = 600;
  fc.assert(
    fc.property(fc.array(anyOperation, { maxLength: 6 }), (operations) => {
      const expected = bruteForce(operations);
      if (expected) legal += 1;
      return checkOperations(registerModel, operations).kind === (expected ? 'legal' : 'illegal');
    }),
    { numRuns },
  );
  t.ok(legal > numRuns / 20 && legal < (numRuns * 19) / 20, `${legal} of ${numRuns} legal`);
  t.end();
});

function call(op: number, client: number, mono: number, more: Partial<CallEvent> = {}): CallEvent {
  return {
    ev: 'call',
    t: mono,
    mono,
    client,
    op,
    dc: 'dc1',
    node: 'a',
    f: 'read',
    key: 'k',
    ...more,
  };
}
function ret(op: number, client: number, mono: number, status: ReturnEvent['status']): ReturnEvent {
  return { ev: 'ret', t: mono, mono, client, op, status };
}

const brokenHistories: readonly (readonly [string, readonly HistoryEvent[], RegExp])[] = [
  ['two open operations', [call(1, 1, 0), call(2, 1, 1)], /op 1 is still open/],
  [
    'a call after an unknown result',
    [call(1, 1, 0), ret(1, 1, 1, 'unknown'), call(2, 1, 2)],
    /retired/,
  ],
  ['a return without a call', [ret(1, 1, 0, 'ok')], /no open call/],
  ['time running backwards', [call(1, 1, 5), ret(1, 1, 4, 'ok')], /before/],
  ['an op used twice', [call(1, 1, 0), ret(1, 1, 1, 'ok'), call(1, 2, 2)], /used before/],
];

for (const [title, events, why] of brokenHistories) {
  t.test(`history: ${title} is refused`, (t) => {
    t.throws(() => readHistory(writeHistory(events)), why);
    t.end();
  });
}

t.test('history: comes back from its lines and pairs calls with returns', (t) => {
  const events = [
    call(1, 1, 0),
    call(2, 2, 1),
    ret(1, 1, 2, 'ok'),
    call(3, 3, 3, { read: 'stale' }),
    ret(2, 2, 4, 'unknown'),
    call(4, 4, 5),
    call(5, 1, 6),
    ret(5, 1, 7, 'fail'),
  ];
  t.same(readHistory(writeHistory(events)), events);
  t.throws(() => readHistory('{"ev":"call"}'), /line 1 is not an event/);
  t.throws(() => readHistory('{'), /line 1 is not JSON/);
  const operations = operationsOf(events, (call, known) =>
    known?.status === 'fail' ? 'skip' : { input: call.op, output: 'seen' },
  );
  t.same(
    operations.map(({ input, returnTime, output }) => [
      input,
      returnTime,
      output === unknownOutput,
    ]),
    [
      [1, 2, false],
      [2, Number.POSITIVE_INFINITY, true],
      [4, Number.POSITIVE_INFINITY, true],
    ],
  );
  t.end();
});
