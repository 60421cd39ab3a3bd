// Blocks that LevelDB packed, unpacked: bytes that are laid out by hand, as the format says, and such as do not fit.

import t from 'tap';
import { readVarint, unpackSnappy } from '../../src/platform-node/disk/snappy.ts';

const text = (value: string): readonly number[] => [...Buffer.from(value)];

/** A literal of up to 60 bytes. */
const literal = (value: string): readonly number[] => [(value.length - 1) << 2, ...text(value)];

/** A copy of 4 to 11 bytes from up to 2047 back. */
const nearCopy = (size: number, back: number): readonly number[] => [
  1 | ((size - 4) << 2) | ((back >> 8) << 5),
  back & 0xff,
];

function unpacked(length: readonly number[], ...pieces: readonly (readonly number[])[]) {
  const bytes = unpackSnappy(Uint8Array.from([...length, ...pieces.flat()]));
  return bytes && Buffer.from(bytes).toString();
}

t.test('snappy: each kind of piece is unpacked', (test) => {
  const long = 'x'.repeat(300);
  const cases: Readonly<Record<string, readonly [string | undefined, string]>> = {
    nothing: [unpacked([0]), ''],
    'a literal': [unpacked([5], literal('hello')), 'hello'],
    'two of them': [unpacked([6], literal('hel'), literal('lo!')), 'hello!'],
    'one whose length is in a byte of its own': [
      unpacked([100], [60 << 2, 99], text(long.slice(0, 100))),
      long.slice(0, 100),
    ],
    'one whose length takes two': [
      unpacked([0xac, 0x02], [61 << 2, 299 & 0xff, 299 >> 8], text(long)),
      long,
    ],
    'a copy': [unpacked([11], literal('abcd-'), nearCopy(4, 5), literal('ef')), 'abcd-abcdef'],
    'one that reaches into what it writes': [
      unpacked([9], literal('ab'), nearCopy(7, 2)),
      'ababababa',
    ],
    'one whose way back takes two bytes': [
      unpacked([6], literal('abc'), [2 | (2 << 2), 3, 0]),
      'abcabc',
    ],
    'one whose way back takes four': [
      unpacked([5], literal('abc'), [3 | (1 << 2), 3, 0, 0, 0]),
      'abcab',
    ],
    'one from far behind': [
      unpacked([0xb0, 0x02], [61 << 2, 299 & 0xff, 299 >> 8], text(`abcd${'x'.repeat(296)}`), [
        ...nearCopy(4, 300),
      ]),
      `abcd${'x'.repeat(296)}abcd`,
    ],
  };
  for (const [what, [found, wanted]] of Object.entries(cases)) test.equal(found, wanted, what);
  test.end();
});

t.test('snappy: what does not fit is refused', (test) => {
  const wrong = {
    'no length': unpacked([]),
    'a length beyond any block': unpacked([...Array.from({ length: 6 }, () => 0xff), 0x7f]),
    'less than it says': unpacked([6], literal('hello')),
    'more than it says': unpacked([4], literal('hello')),
    'a copy of more than it says': unpacked([5], literal('ab'), nearCopy(4, 2)),
    'a literal that is cut off': unpacked([5], literal('hello').slice(0, -1)),
    'a tag that is cut off': unpacked([5], literal('h'), [1]),
    'a copy from nowhere': unpacked([6], literal('ab'), nearCopy(4, 0)),
    'a copy from before the beginning': unpacked([6], literal('ab'), nearCopy(4, 3)),
  };
  for (const [what, found] of Object.entries(wrong)) test.equal(found, undefined, what);
  test.end();
});

t.test('varints: seven bits a byte, the low ones first, and no more than seven bytes', (test) => {
  const read = (...bytes: readonly number[]) => readVarint(Uint8Array.from(bytes), 0);
  test.same(read(0x7f), { value: 127, next: 1 });
  test.same(read(0xac, 0x02, 9), { value: 300, next: 2 });
  test.same(readVarint(Uint8Array.of(1, 0x80, 0x01), 1), { value: 128, next: 3 });
  test.same(read(0x80), undefined, 'it does not end');
  const six = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80];
  test.same(read(...six, 1), { value: 2 ** 42, next: 7 });
  test.same(read(...six, 0x80, 1), undefined, 'nor here');
  test.end();
});
