// Long answers: at the pace of the reader, compressed, broken off where they cannot be finished.

import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { bytesOf, get, listening, manyTokens } from './connection-cases.ts';
import { listOf, policyView, readMeta, server } from './support.ts';

t.test('gzip: for those who accept it, from 1400 bytes on', async (t) => {
  const script = (rules: string) => ({
    'policy.read': () => ({ value: policyView({ rules }), meta: readMeta(2) }),
  });
  const long = server(script('x'.repeat(1400)));
  const cases: [string | undefined, boolean][] = [
    [undefined, false],
    ['gzip', true],
    ['deflate, GZIP;q=0.5', true],
    ['gzip;q=0', false],
    ['gzip;q=0.0, br', false],
    ['gzip;level=9;q=0', false],
    ['br, gzip ; q=1', true],
    ['notgzip', false],
  ];
  for (const [accepted, expected] of cases) {
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
    const answer = await long.app.inject({ url: '/v1/acl/policy/x', headers });
    t.equal(answer.headers['content-encoding'] === 'gzip', expected, String(accepted));
    t.equal(answer.headers.vary, 'Accept-Encoding');
    t.equal(answer.headers['cache-control'], 'no-store');
    const body = expected ? gunzipSync(answer.rawPayload).toString() : answer.body;
    t.match(JSON.parse(body), { Name: 'reader' }, String(accepted));
  }
  const short = await server(script('x')).app.inject({
    url: '/v1/acl/policy/x',
    headers: { 'accept-encoding': 'gzip' },
  });
  t.equal(short.headers['content-encoding'], undefined);
});

t.test('streaming: a long list arrives whole, plain, compressed and indented', async (t) => {
  const made = server({ 'token.list': () => manyTokens(20).list() });
  const port = await listening(t, made);
  for (const [path, headers] of [
    ['/v1/acl/tokens', {}],
    ['/v1/acl/tokens', { 'Accept-Encoding': 'gzip' }],
    ['/v1/acl/tokens?pretty', {}],
  ] as [string, Record<string, string>][]) {
    const message = await get(port, path, headers);
    t.equal(message.headers['transfer-encoding'], 'chunked');
    t.equal(message.headers['x-consul-index'], '10');
    const bytes = await bytesOf(message);
    const isGzip = message.headers['content-encoding'] === 'gzip';
    const text = (isGzip ? gunzipSync(bytes) : bytes).toString();
    const tokens = JSON.parse(text) as unknown[];
    t.equal(tokens.length, 2000);
    if (path.endsWith('pretty'))
      t.equal(
        text,
        `${JSON.stringify(tokens, null, 4).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)}\n`,
      );
  }
});

t.test('streaming: others have their turn between the slices of a list', async (t) => {
  let turns = 0;
  async function* slices() {
    const count = (): void => {
      turns += 1;
      ticking = setImmediate(count);
    };
    let ticking = setImmediate(count);
    for (let place = 0; place < 50; place += 1) {
      made.clock.nowMs += sliceMs;
      yield [policyView({ description: 'd' })];
    }
    clearImmediate(ticking);
  }
  const made = server({ 'policy.list': () => ({ ...listOf([]), slices: slices() }) });
  let sliceMs = 10;
  const ask = async (): Promise<number> => {
    turns = 0;
    const answer = await made.app.inject('/v1/acl/policies');
    t.equal(answer.json<unknown[]>().length, 50);
    return turns;
  };
  t.ok((await ask()) >= 45, 'one behind each long slice');
  sliceMs = 1;
  const fewer = await ask();
  t.ok(fewer >= 4 && fewer < 20, `no more than are needed behind short ones: ${fewer}`);
});

t.test('streaming: the list is read no faster than the client reads', async (t) => {
  const many = manyTokens(20_000);
  const made = server({ 'token.list': () => many.list() });
  const port = await listening(t, made);
  const message = await get(port, '/v1/acl/tokens');
  message.pause();
  let before = -1;
  while (before !== many.seen.asked) {
    before = many.seen.asked;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  t.ok(many.seen.asked < 2_000, `read ${many.seen.asked} of 20000 slices`);
  message.destroy();
  while (!many.seen.returned) await new Promise((resolve) => setImmediate(resolve));
  t.pass('and the list is let go when the client goes');
});

t.test('streaming: a reader that stops reading is cut off', async (t) => {
  for (const headers of [{}, { 'Accept-Encoding': 'gzip' }] as Record<string, string>[]) {
    const many = manyTokens(200_000);
    const made = server({ 'token.list': () => many.list() });
    const port = await listening(t, made);
    const message = await get(port, '/v1/acl/tokens', headers);
    message.on('error', () => undefined);
    message.pause();
    const { pending } = made.clock;
    let before = -1;
    while (pending.size === 0 || before !== many.seen.asked) {
      before = many.seen.asked;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    for (const comesDue of pending) comesDue();
    while (!many.seen.returned) await new Promise((resolve) => setImmediate(resolve));
    t.equal(pending.size, 0, 'the list is let go, and no timer is left');
    message.destroy();
  }
});

t.test('streaming: a failure in the middle breaks the connection off', async (t) => {
  for (const headers of [{}, { 'Accept-Encoding': 'gzip' }] as Record<string, string>[]) {
    const made = server({ 'token.list': () => manyTokens(20, 10).list() });
    const port = await listening(t, made);
    const message = await get(port, '/v1/acl/tokens', headers);
    t.equal(message.statusCode, 200);
    await t.rejects(bytesOf(message), { code: 'ECONNRESET' });
    t.match(made.logger.lines, [{ message: 'list broken off', fields: { cause: /disk is gone/ } }]);
  }
  const early = server({ 'token.list': () => manyTokens(20, 0).list() });
  t.equal(
    (await early.app.inject('/v1/acl/tokens')).statusCode,
    500,
    'before the head it is a 500',
  );
});
