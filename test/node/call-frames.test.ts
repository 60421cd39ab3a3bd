// What servers ask each other: every value comes out as it went in, the bytes of this release stay
// readable, and what cannot be read is refused without saying what it was.

import fc from 'fast-check';
import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import type { SecretId } from '../../src/acl/ids.ts';
import {
  decodeAnswer,
  decodeQuestion,
  encodeOutput,
  encodeQuestion,
  encodeRefusal,
} from '../../src/node/calls/call-frames.ts';
import { decodePlain, encodePlain, PLAIN_DEPTH_MAX } from '../../src/node/calls/plain-codec.ts';
import { type Call, PLAIN_CALL } from '../../src/service/call.ts';
import { LeaderAway } from '../../src/service/remote.ts';

const CALL: Call = {
  ...PLAIN_CALL,
  secret: 'hush' as SecretId,
  namespaceParameter: 'team',
  minPosition: { epoch: 1, seq: 2 },
  cas: 0,
  requestId: 'r-1',
  remoteAddress: '127.0.0.1',
};

const QUESTION = {
  name: 'auth-method.create',
  input: { draft: { maxTokenTtlNs: 5n, config: { a: [null, true, 1.5], b: {} }, name: undefined } },
  call: CALL,
};

/** As this release writes it. Never edited: another release may read or write the same. */
const QUESTION_BYTES =
  '950001b2617574682d6d6574686f642e6372656174659301a564726166749701ad6d6178546f6b656e54746c4e73d30000000000000005a6636f6e6669679501a1619400c0c3cb3ff8000000000000a1629101a46e616d659103dc001701a6736563726574a468757368b26e616d657370616365506172616d65746572a47465616daf6e616d6573706163654865616465729103aa6461746163656e7465729103ab636f6e73697374656e6379a764656661756c74ab6d696e506f736974696f6e9501a565706f636801a373657102a363617300a9726571756573744964a3722d31a361636b9103ac61636b54696d656f75744d739103ad72656d6f746541646472657373a93132372e302e302e31';
/** Since a question may be for the leader of one term. */
const OF_A_TERM_BYTES = `96${QUESTION_BYTES.slice(2)}07`;
const OUTPUT_BYTES = '940001009301a76175746855726cac68747470733a2f2f6964702f';
const REFUSAL_BYTES = '95000101a96475706c6963617465b47468657265206973206f6e6520616c7265616479';
const AWAY_BYTES = '94000102b14e6f20636c7573746572206c6561646572';

/** One value of every sort. */
const PLAIN = [null, undefined, true, 1.5, -5n, 'x', '\ud800', Buffer.from([1]), [], { a: 1 }];
const PLAIN_BYTES =
  '9b00c09103c3cb3ff8000000000000d3fffffffffffffffba1789202c40200d8c4010191009301a16101';

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function errorOf(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

t.test('frames: have the bytes that they had in the first release', async (t) => {
  const refusal = new AclError('duplicate', 'there is one already');
  t.equal(hex(encodePlain(PLAIN)), PLAIN_BYTES);
  t.strictSame(decodePlain(Buffer.from(PLAIN_BYTES, 'hex')), PLAIN);
  t.equal(hex(encodeQuestion(QUESTION)), QUESTION_BYTES);
  t.equal(hex(encodeQuestion({ ...QUESTION, term: 7 })), OF_A_TERM_BYTES);
  t.strictSame(decodeQuestion(Buffer.from(QUESTION_BYTES, 'hex')), QUESTION, 'of no term');
  t.equal(hex(encodeOutput({ authUrl: 'https://idp/' })), OUTPUT_BYTES);
  t.equal(hex(encodeRefusal(refusal)), REFUSAL_BYTES);
  t.equal(hex(encodeRefusal(new LeaderAway())), AWAY_BYTES);
});

t.test('frames: come back as what was sent', async (t) => {
  t.strictSame(decodeQuestion(encodeQuestion(QUESTION)), QUESTION);
  const ofATerm = { ...QUESTION, term: 7 };
  t.strictSame(decodeQuestion(encodeQuestion(ofATerm)), ofATerm);
  t.strictSame(decodeAnswer(encodeOutput({ value: false })), { value: false });
  t.equal(decodeAnswer(encodeOutput(undefined)), undefined);
  const refused = errorOf(() => decodeAnswer(encodeRefusal(new AclError('not-found', 'no'))));
  t.match(refused, { code: 'not-found', message: 'no' });
  const away = errorOf(() => decodeAnswer(encodeRefusal(new LeaderAway())));
  t.ok(away instanceof LeaderAway, 'whether anything was done is not lost on the way');
  t.match(away, { message: 'No cluster leader' });
  const closed = new LeaderAway({ says: 'Nothing was written: dc2 has 2.7: that reign has begun' });
  const told = errorOf(() => decodeAnswer(encodeRefusal(closed)));
  t.ok(told instanceof LeaderAway);
  t.match(told, { message: closed.message }, 'nor is what keeps the leader from it');
});

t.test('frames: any plain value comes out as it went in', async (t) => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constant('\ud800x'));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(undefined, null, true, false),
      fc.double({ noNaN: true }).map((number) => number + 0),
      fc.integer(),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      text,
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      fc.array(tie('value')),
      fc.dictionary(fc.oneof(text, fc.constant('__proto__')), tie('value'), {
        noNullPrototype: true,
      }),
    ),
  }));
  fc.assert(
    fc.property(value, (sent) => {
      t.strictSame(decodePlain(encodePlain(sent)), sent);
    }),
    { numRuns: 300 },
  );
  const free = JSON.parse('{"__proto__":{"x":1},"constructor":2}') as object;
  const came = decodePlain(encodePlain(free)) as object;
  t.same(Object.keys(came), ['__proto__', 'constructor']);
  t.equal(Object.getPrototypeOf(came), Object.prototype);
});

t.test('frames: what is not plain is not sent', async (t) => {
  let deep: unknown = 1;
  for (let depth = 0; depth < PLAIN_DEPTH_MAX + 1; depth += 1) deep = [deep];
  const bad = [new Map(), new Set(), new Error('x'), () => 1, Symbol('x'), 2n ** 70n, deep];
  for (const value of bad) t.throws(() => encodePlain({ value }));
});

t.test('frames: what cannot be read is refused, and nothing of it is repeated', async (t) => {
  const whole = encodeQuestion(QUESTION);
  const garbage = [
    new Uint8Array(),
    Buffer.from('hush hush'),
    encodePlain('hush'),
    encodePlain([2, 'hush']),
    whole.subarray(0, whole.length - 3),
  ];
  for (const bytes of garbage) {
    const question = errorOf(() => decodeQuestion(bytes)) as AclError;
    t.equal(question?.code, 'unavailable', 'nothing was done');
    const answer = errorOf(() => decodeAnswer(bytes)) as AclError;
    t.equal(answer?.code, 'outcome-unknown', 'what was done is not known');
    t.notMatch(`${question.message}${answer.message}`, /hush/);
  }
  t.match(
    errorOf(() => decodeAnswer(encodePlain([2]))),
    { message: /has version 2/ },
  );
  t.match(
    errorOf(() => decodeAnswer(encodePlain([1, 9]))),
    { code: 'outcome-unknown' },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const error = errorOf(() => decodeQuestion(bytes));
      return error === undefined || error instanceof AclError;
    }),
    { numRuns: 500 },
  );
});
