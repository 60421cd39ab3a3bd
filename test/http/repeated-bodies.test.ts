// Questions that come again are decoded once, and mean the same as if they came for the first time.

import fc from 'fast-check';
import t from 'tap';
import { RepeatedBodies } from '../../src/http/serving/repeated-bodies.ts';
import { server } from './support.ts';

const SEED = 20_261_126;

/** What a body is decoded to here: its bytes, or a refusal of those that end with an exclamation mark. */
function decodedOf(bytes: Buffer): readonly number[] {
  if (bytes.at(-1) === 0x21) throw new Error(`refused: ${bytes.toString('latin1')}`);
  return [...bytes];
}

function outcomeOf(decode: () => object): unknown {
  try {
    return decode();
  } catch (error) {
    return String(error);
  }
}

t.test('whatever came before, a body is what its bytes are', async (t) => {
  const byte = fc.constantFrom(0x21, 0x41, 0x61, 0xa9, 0xc3, 0xe9);
  const body = fc.oneof(
    fc.array(byte, { maxLength: 3 }),
    fc.constantFrom(511, 512, 513).map((length) => new Array<number>(length).fill(0x61)),
  );
  t.comment(`seed ${SEED}`);
  fc.assert(
    fc.property(fc.array(body, { maxLength: 30 }), (bodies) => {
      const repeated = new RepeatedBodies();
      for (const each of bodies) {
        const bytes = Buffer.from(each);
        const given = outcomeOf(() => repeated.decoded(bytes, () => decodedOf(bytes)));
        t.same(
          given,
          outcomeOf(() => decodedOf(bytes)),
        );
      }
    }),
    { seed: SEED, numRuns: 200 },
  );
});

t.test('what is short is decoded twice; what is refused or long, each time', async (t) => {
  const times = (bytes: Buffer): number => {
    const repeated = new RepeatedBodies();
    let count = 0;
    for (let time = 0; time < 4; time += 1) {
      const decode = () => {
        count += 1;
        return decodedOf(bytes);
      };
      outcomeOf(() => repeated.decoded(bytes, decode));
    }
    return count;
  };
  t.equal(times(Buffer.alloc(512, 'a')), 2);
  t.equal(times(Buffer.alloc(513, 'a')), 4);
  t.equal(times(Buffer.from('a!')), 4);
});

t.test('the same question of two tokens is asked of each', async (t) => {
  const { app, operations } = server({
    authorize: ({ items }, { secret }) =>
      items.map((item) => ({
        ...item,
        namespace: undefined,
        allow: secret === 'one',
        explanation: undefined,
      })),
  });
  const ask = async (secret: string, payload: string): Promise<unknown> => {
    const headers = { 'x-service-token': secret };
    const url = '/v1/internal/acl/authorize';
    const answer = await app.inject({ method: 'POST', url, headers, payload });
    return answer.statusCode === 200 ? answer.json() : answer.body;
  };
  const question = (segment: string) =>
    JSON.stringify([{ Resource: 'service', Access: 'write', Segment: segment }]);
  const answered = (segment: string, allow: boolean) => [
    { Resource: 'service', Access: 'write', Segment: segment, Allow: allow },
  ];
  t.match(await ask('one', question('web')), answered('web', true));
  t.match(await ask('two', question('web')), answered('web', false));
  t.match(await ask('one', question('wed')), answered('wed', true));
  const refusal = 'Failed to decode request body: json: unknown field "X" at [0]';
  for (const secret of ['one', 'two']) t.equal(await ask(secret, '[{"X":1}]'), refusal);
  t.equal(operations.calls.length, 3);
});
