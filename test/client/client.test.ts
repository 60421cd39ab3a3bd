// The client over a scripted transport, over the real routes, and over real sockets.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { ARCHIVE_TYPE } from '../../src/api/bodies/schema.ts';
import { ENDPOINTS } from '../../src/api/endpoints/endpoints.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import {
  OPERATOR_ENDPOINTS,
  SNAPSHOT_ENDPOINTS,
} from '../../src/api/endpoints/endpoints-operator.ts';
import { NAMESPACE_PARAMETER, QUERY_BY_KIND } from '../../src/api/endpoints/query-parameters.ts';
import { ANSWER_BYTES_MAX } from '../../src/client/answer-text.ts';
import { SHARED_QUERY } from '../../src/client/call-types.ts';
import {
  type ClientError,
  createClient,
  type StreamRequest,
  type Transport,
  TransportError,
  type TransportRequest,
  type TransportResponse,
} from '../../src/client/entry.ts';
import { httpTransport } from '../../src/platform-node/net/http-transport.ts';
import { listOf, policyView, readMeta, server, WRITE_META } from '../http/support.ts';
import { selfSigned } from '../support/certificates.ts';
import { trustWhoever } from '../support/trust-whoever.ts';

const stream: Transport['stream'] = () => Promise.reject(new Error('not expected'));
const ADDRESS = 'http://127.0.0.1:8500';
const ID = '22222222-2222-2222-2222-222222222222';

function scripted(...answers: (Partial<TransportResponse> | TransportError)[]) {
  const requests: TransportRequest[] = [];
  const transport: Transport = {
    send: async (request) => {
      requests.push(request);
      const answer = answers[Math.min(requests.length, answers.length) - 1] ?? {};
      if (answer instanceof TransportError) throw answer;
      return { status: 200, headers: {}, text: 'true', ...answer };
    },
    stream,
  };
  return { requests, transport, client: createClient({ address: ADDRESS, transport }) };
}

/** How a call failed to get an answer. */
function failureOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'none',
    (error: unknown) => (error instanceof TransportError ? error.failure : String(error)),
  );
}

t.test('named calls: there is one for every endpoint, and nothing else', async (t) => {
  const { client } = scripted();
  const names = Object.entries(client).flatMap(([group, member]) =>
    typeof member === 'function' ? [group] : Object.keys(member).map((name) => `${group}.${name}`),
  );
  const camel = (name: string) =>
    name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const expected = Object.keys({
    ...ENDPOINTS,
    ...NODE_ENDPOINTS,
    ...OPERATOR_ENDPOINTS,
    ...SNAPSHOT_ENDPOINTS,
  }).map(camel);
  t.same(names.sort(), [...expected, 'call', 'pages'].sort());
});

t.test('shared query parameters: the service knows every one of them', async (t) => {
  const known = Object.assign({}, NAMESPACE_PARAMETER, ...Object.values(QUERY_BY_KIND)) as object;
  t.same(
    SHARED_QUERY.filter((name) => !(name in known)),
    [],
  );
});

t.test('a path parameter: is encoded, and refused when it is empty', async (t) => {
  const { client, requests } = scripted({ text: '{"TemplateName":"builtin/service"}' });
  await client.templatedPolicy.read({ path: { name: 'builtin/service' } });
  t.equal(requests[0]?.url, `${ADDRESS}/v1/acl/templated-policy/name/builtin%2Fservice`);
  // On the wire an empty id would make the update of a policy into a create.
  await t.rejects(
    client.policy.update({ path: { id: '' }, body: { Name: 'x' } }),
    /id .* is empty/,
  );
  for (const name of ['.', '..']) {
    const body = { Type: 'jwt' };
    await t.rejects(client.authMethod.update({ path: { name }, body }), /name .* is \.\.?$/);
  }
  t.equal(requests.length, 1);
});

t.test('a request says what the options and the call say, and no more', async (t) => {
  const { transport, requests } = scripted();
  const given = { namespace: 'team', datacenter: 'dc 2', consistency: 'stale' } as const;
  const client = createClient({ address: ADDRESS, transport, ...given });
  const sent = async (call: Promise<unknown>): Promise<string> => {
    await call.catch(() => undefined);
    return requests.at(-1)?.url.slice(ADDRESS.length) ?? '';
  };
  t.equal(await sent(client.policy.list()), '/v1/acl/policies?ns=team&dc=dc%202&stale');
  const query = { ns: 'a&b', stale: false, limit: 5 };
  t.equal(await sent(client.policy.list({ query })), '/v1/acl/policies?ns=a%26b&dc=dc%202&limit=5');
  const id = { id: ID };
  t.equal(await sent(client.policy.delete({ path: id })), `/v1/acl/policy/${ID}?ns=team&dc=dc%202`);
  t.equal(await sent(client.replication.status()), '/v1/acl/replication?dc=dc%202&stale');
});

t.test('an answer that is no success is a refusal, whatever it says', async (t) => {
  const type = { 'content-type': 'application/problem+json' };
  const headers = { ...type, 'retry-after': 'Fri, 27 Nov 2026 00:00:00 GMT' };
  const text = '{"detail":"no","code":7}';
  for (const status of [199, 301, 302, 307, 399, 500]) {
    const { client } = scripted({ status, text: 'true' }, { status, headers, text });
    const bare = { name: 'ClientError', status, code: undefined, message: 'true' };
    await t.rejects(client.policy.delete({ path: { id: ID } }), bare);
    const error = await client.policy.delete({ path: { id: ID } }).catch((cause) => cause);
    t.match(error, { status, code: undefined, message: 'no', retryAfterSeconds: undefined });
  }
});

t.test('a broken connection: a read is sent once more, a write is not', async (t) => {
  const broken = () => new TransportError('broken', 'socket hang up');
  const read = scripted(broken(), { text: '[]' });
  t.same((await read.client.policy.list()).value, []);
  t.equal(read.requests.length, 2);
  const write = scripted(broken(), {});
  t.equal(await failureOf(write.client.policy.delete({ path: { id: ID } })), 'broken');
  t.equal(write.requests.length, 1);
  const gone = scripted(broken(), broken(), {});
  t.equal(await failureOf(gone.client.policy.list()), 'broken');
  const refused = scripted(new TransportError('refused', 'nobody'), {});
  t.equal(await failureOf(refused.client.policy.list()), 'refused');
  t.equal(refused.requests.length, 1);
});

t.test(
  'what another program answers is no answer, and what another release does is one',
  async (t) => {
    const asked = (text: string) => scripted({ text }).client;
    const body = { Name: 'x' };
    for (const other of ['{"ok":true}', '[{"ok":true}]', 'true', 'null', '[[]]']) {
      t.equal(await failureOf(asked(other).policy.list()), 'unreadable', other);
    }
    for (const other of ['{"deleted":true}', '[]', '"true"', 'null']) {
      const deleted = asked(other).policy.delete({ path: { id: ID } });
      t.equal(await failureOf(deleted), 'unreadable', other);
    }
    for (const other of ['{"status":"created"}', '[]', 'true', 'null', '{}']) {
      t.equal(await failureOf(asked(other).policy.create({ body })), 'unreadable', other);
    }
    for (const other of ['{"ok":true}', '{"ok":{}}', '[]', 'null']) {
      t.equal(await failureOf(asked(other).templatedPolicy.list()), 'unreadable', other);
    }
    const others = [
      '{"ID":"1","Name":5}',
      '{"ID":"1","Datacenters":"dc1"}',
      '{"ID":"1","CreateIndex":"2"}',
      '{"ID":null}',
    ];
    for (const other of others) {
      t.equal(await failureOf(asked(other).policy.create({ body })), 'unreadable', other);
    }
    const left = asked('{"AccessorID":"1","ExpirationTime":null}').token.create({ body: {} });
    t.match((await left).value, { AccessorID: '1' }, 'null is what is not there');
    for (const other of ['[{"ID":"1"},{"ID":1}]', '[{"AccessorID":"1","Policies":[5]}]']) {
      t.equal(await failureOf(asked(other).token.list()), 'unreadable', other);
    }
    const removed = asked('false').operator.raftRemovePeer({ query: { id: ID } });
    t.equal(await failureOf(removed), 'unreadable', 'it is said of what was done alone');
    t.same((await asked('{}').templatedPolicy.list()).value, {});
    const less = asked('{"ID":"1","More":true}').policy.create({ body });
    t.same((await less).value, { ID: '1', More: true });
    t.same((await asked('[]').policy.list()).value, []);
  },
);

t.test('a list that goes on with the page that it gave ends', async (t) => {
  const { client, requests } = scripted({ text: '[]', headers: { 'x-service-next': 'a' } });
  const read = async () => {
    for await (const page of client.pages('policy.list')) t.same(page, []);
  };
  t.equal(await failureOf(read()), 'unreadable');
  t.equal(requests.length, 2);
});

t.test('no status is tried again', async (t) => {
  for (const status of [429, 500, 503, 504]) {
    const { client, requests } = scripted({
      status,
      text: 'later',
      headers: { 'retry-after': '3' },
    });
    await t.rejects(client.policy.list(), { status, message: 'later', retryAfterSeconds: 3 });
    t.equal(requests.length, 1);
  }
});

t.test('over the real routes: an object, a list in pages, a write, a refusal', async (t) => {
  const { app, operations } = server({
    'policy.read': () => ({ value: policyView(), meta: readMeta(6) }),
    'policy.list': ({ page }) =>
      page.after === undefined
        ? listOf([[policyView()]], { next: 'one' })
        : listOf([[policyView({ name: 'second' })]]),
    'policy.delete': () => ({ value: true, meta: WRITE_META }),
    'policy.create': () => {
      throw new AclError('duplicate', 'Invalid Policy: A Policy with Name "x" already exists');
    },
  });
  t.teardown(() => app.close());
  const transport: Transport = {
    send: async ({ method, url, headers, body }) => {
      const answer = await app.inject({
        method: method as 'GET',
        url: url.slice(ADDRESS.length),
        headers,
        ...(body === undefined ? {} : { payload: body }),
      });
      return {
        status: answer.statusCode,
        headers: answer.headers as Record<string, string>,
        text: answer.body,
      };
    },
    stream,
  };
  const client = createClient({
    address: ADDRESS,
    transport,
    token: '44444444-4444-4444-4444-444444444444',
    namespace: 'team-a',
    consistency: 'stale',
  });

  const read = await client.policy.read({ path: { id: ID } });
  t.equal(read.value.Rules, 'acl = "read"');
  t.same([read.meta.index, read.meta.position], [6, '1.6']);
  const { call } = operations.calls[0]!;
  t.same(
    [call.secret, call.namespaceParameter, call.consistency],
    ['44444444-4444-4444-4444-444444444444', 'team-a', 'stale'],
  );

  const names: string[] = [];
  for await (const page of client.pages('policy.list')) names.push(...page.map(({ Name }) => Name));
  t.same(names, ['reader', 'second']);

  const deleted = await client.policy.delete({ path: { id: ID }, query: { cas: 6 } });
  t.same([deleted.value, deleted.meta.ack], [true, 'majority']);
  t.equal(operations.calls.at(-1)?.call.cas, 6);

  const refusal = await client.policy
    .create({ body: { Name: 'x' } })
    .catch((error: unknown) => error);
  const { status, code, message, asked } = refusal as ClientError;
  t.same(
    { status, code, message, asked },
    {
      status: 409,
      code: 'duplicate',
      message: 'Invalid Policy: A Policy with Name "x" already exists',
      asked: { method: 'PUT', path: '/v1/acl/policy' },
    },
  );
});

t.test(
  'over sockets: an answer of any status comes back, over TCP and a Unix socket',
  async (t) => {
    const echo = createServer((request, response) => {
      response.setHeader('X-Service-Next', 'x');
      response.statusCode = 418;
      request.pipe(response);
    });
    const expected = { status: 418, text: 'grüße', headers: { 'x-service-next': 'x' } };
    const request = { method: 'PUT', headers: { 'x-service-token': 's' }, body: 'grüße' };
    const port = await listen(t, echo);
    const tcp = httpTransport({ timeoutMs: 60_000 });
    t.match(await tcp.send({ ...request, url: `http://127.0.0.1:${port}/v1/x` }), expected);

    // A socket's path may be 107 bytes long at most.
    const folder = mkdtempSync(join(tmpdir(), 'conclave-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const socketPath = join(folder, 'http.sock');
    const local = createServer(echo.listeners('request')[0] as () => void);
    t.teardown(() => local.close());
    await new Promise<void>((resolve) => local.listen(socketPath, resolve));
    const unix = httpTransport({ timeoutMs: 60_000, socketPath });
    t.match(await unix.send({ ...request, url: 'http://localhost/v1/x' }), expected);
  },
);

t.test('over sockets: each way to get no answer has its name', async (t) => {
  const request = { method: 'GET', headers: {}, body: undefined };
  const failure = (url: string, timeoutMs = 60_000) =>
    failureOf(httpTransport({ timeoutMs }).send({ ...request, url }));
  const silent = await listen(
    t,
    createServer(() => undefined),
  );
  t.equal(await failure(`http://127.0.0.1:${silent}/`, 100), 'timeout');
  t.equal(await failure(`https://127.0.0.1:${silent}/`), 'tls');
  const rude = createNetServer((socket) => socket.destroy());
  t.equal(await failure(`http://127.0.0.1:${await listen(t, rude)}/`), 'broken');
  const half = createServer((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('only this', () => response.destroy());
  });
  t.equal(await failure(`http://127.0.0.1:${await listen(t, half)}/`), 'broken');
  const says = (text: string) =>
    createNetServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end(text));
    });
  const upgrades = says(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
  );
  t.equal(await failure(`http://127.0.0.1:${await listen(t, upgrades)}/`), 'unreadable');
  const overflows = says(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`);
  t.equal(await failure(`http://127.0.0.1:${await listen(t, overflows)}/`), 'unreadable');
  const cut = says('HTTP/1.1 200 OK\r\nx: y');
  t.equal(await failure(`http://127.0.0.1:${await listen(t, cut)}/`), 'broken');
  const closed = createNetServer();
  const port = await listen(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  t.equal(await failure(`http://127.0.0.1:${port}/`), 'refused');
});

t.test(
  'over sockets: no variable of the environment has a token sent to whoever answers',
  async (t) => {
    const own = selfSigned();
    let asked = 0;
    const stranger = createTlsServer(own, (_, response) => {
      asked += 1;
      response.end('true');
    });
    const url = `https://127.0.0.1:${await listen(t, stranger)}/`;
    trustWhoever(t);
    const request = { method: 'GET', headers: { 'x-service-token': 's' }, body: undefined, url };
    for (const tls of [{}, { ca: own.cert }]) {
      t.equal(await failureOf(httpTransport({ timeoutMs: 60_000, tls }).send(request)), 'tls');
    }
    t.equal(asked, 0);
  },
);

t.test('over sockets: an answer without end is no answer', async (t) => {
  const request = { method: 'GET', headers: {}, body: undefined };
  let sentBytes = 0;
  const endless = createServer((_, response) => {
    const piece = Buffer.alloc(1024 * 1024, ' ');
    const writeOn = (): void => {
      do sentBytes += piece.length;
      while (response.write(piece));
    };
    response.on('drain', writeOn);
    writeOn();
  });
  const url = `http://127.0.0.1:${await listen(t, endless)}/`;
  const transport = httpTransport({ timeoutMs: 60_000 });
  t.equal(await failureOf(transport.send({ ...request, url })), 'unreadable');
  t.ok(sentBytes < 2 * ANSWER_BYTES_MAX, `${sentBytes} bytes were taken`);
  const slow = createServer((_, response) => {
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
  });
  const heads = createNetServer((socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
    socket.on('error', () => undefined).on('close', () => clearInterval(timer));
  });
  for (const server of [slow, heads]) {
    const hurried = httpTransport({ timeoutMs: 60_000, wholeMs: 300 });
    const at = `http://127.0.0.1:${await listen(t, server)}/`;
    t.equal(await failureOf(hurried.send({ ...request, url: at })), 'timeout');
  }
});

t.test('streams: what is long comes and goes in pieces', async (t) => {
  const counting = createServer((request, response) => {
    let sizeBytes = 0;
    request.on('data', (part: Buffer) => {
      sizeBytes += part.length;
    });
    request.on('end', () => {
      response.statusCode = 201;
      response.end(Buffer.alloc(sizeBytes));
    });
  });
  const url = `http://127.0.0.1:${await listen(t, counting)}/`;
  const transport = httpTransport({ timeoutMs: 60_000 });
  const body = inPieces(100, 100_000);
  const answer = await transport.stream({ method: 'PUT', url, headers: {}, body });
  t.equal(answer.status, 201);
  let sizeBytes = 0;
  for await (const chunk of answer.body) sizeBytes += chunk.length;
  t.equal(sizeBytes, 10_000_000);
});

t.test('streams: no more is taken from a body than the server reads', async (t) => {
  let resume = (): void => undefined;
  const slow = createServer((request, response) => {
    request.pause();
    resume = () => void request.resume().on('end', () => response.end());
  });
  const url = `http://127.0.0.1:${await listen(t, slow)}/`;
  const taken = { count: 0 };
  const body = inPieces(1_000, 100_000, taken);
  const transport = httpTransport({ timeoutMs: 60_000 });
  const answer = transport.stream({ method: 'PUT', url, headers: {}, body });
  let before = -1;
  while (before !== taken.count || before === 0) {
    before = taken.count;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  t.ok(taken.count < 500, `${taken.count} of 1000 pieces wait in sockets`);
  resume();
  t.equal((await answer).status, 200);
  t.equal(taken.count, 1_000);
});

t.test(
  'streams: a refusal in the middle of a body is heard, and the rest is not sent',
  async (t) => {
    const refusing = createServer((request, response) => {
      response.statusCode = 403;
      response.write('Permission ');
      request.resume();
      setTimeout(() => response.end('denied'), 200);
    });
    const url = `http://127.0.0.1:${await listen(t, refusing)}/`;
    const taken = { count: 0 };
    const body = inPieces(100_000, 100_000, taken);
    const transport = httpTransport({ timeoutMs: 60_000 });
    const answer = await transport.stream({ method: 'PUT', url, headers: {}, body });
    const before = taken.count;
    const parts: Uint8Array[] = [];
    for await (const part of answer.body) parts.push(part);
    t.same([answer.status, Buffer.concat(parts).toString()], [403, 'Permission denied']);
    t.ok(taken.count <= before + 1, `${taken.count - before} pieces were taken behind the answer`);
  },
);

t.test('over sockets: behind a refusal nobody waits for the rest of a body to go', async (t) => {
  const bytes = 32 * 1024 * 1024;
  let taken = 0;
  let readOn = (): void => undefined;
  let ended = (): void => undefined;
  const isOver = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const refusing = createNetServer((socket) => {
    socket.on('error', () => undefined).on('close', ended);
    readOn = () =>
      void socket.on('data', (piece) => {
        taken += piece.length;
        if (taken >= bytes) ended();
      });
    socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large');
  });
  const url = `http://127.0.0.1:${await listen(t, refusing)}/`;
  const transport = httpTransport({ timeoutMs: 60_000 });
  const answer = await transport.send({ method: 'PUT', url, headers: {}, body: 'a'.repeat(bytes) });
  t.equal(answer.text, 'too large');
  readOn();
  await isOver;
  t.ok(taken < bytes, `${taken} bytes were sent`);
});

t.test('streams: a body that fails is not sent as if it were whole', async (t) => {
  let isWhole: boolean | undefined;
  let begun = (): void => undefined;
  const hasBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const reading = createServer((request) => {
    begun();
    request.on('error', () => undefined);
    request.on('close', () => {
      isWhole = request.complete;
    });
    request.resume();
  });
  const url = `http://127.0.0.1:${await listen(t, reading)}/`;
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half');
    await hasBegun;
    throw new Error('the file is damaged');
  }
  const transport = httpTransport({ timeoutMs: 60_000 });
  const answer = transport.stream({ method: 'PUT', url, headers: {}, body: failing() });
  await t.rejects(answer, { message: 'the file is damaged' });
  while (isWhole === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(isWhole, false);
});

t.test('streams: an answer that breaks off, or stops, is no answer', async (t) => {
  const half = createServer((_, response) => {
    response.write('only this', () => response.destroy());
  });
  const silent = createServer((_, response) => void response.write('only this'));
  t.teardown(() => silent.closeAllConnections());
  const failure = async (listener: Server, timeoutMs: number) => {
    const transport = httpTransport({ timeoutMs });
    const url = `http://127.0.0.1:${await listen(t, listener)}/`;
    const request = { method: 'GET', url, headers: {}, body: undefined };
    const { body } = await transport.stream(request);
    const reading = async () => {
      for await (const part of body) t.equal(Buffer.from(part).toString(), 'only this');
    };
    return failureOf(reading());
  };
  t.equal(await failure(half, 60_000), 'broken');
  t.equal(await failure(silent, 2_000), 'timeout');
});

t.test('snapshots: refusals are those of every other call', async (t) => {
  const requests: StreamRequest[] = [];
  const answers = [
    {
      status: 200,
      headers: { 'x-service-index': '9', 'content-type': ARCHIVE_TYPE },
      text: 'bytes',
    },
    { status: 403, headers: {}, text: 'Permission denied' },
    { status: 200, headers: { 'content-type': 'text/html' }, text: '<html>' },
    { status: 200, headers: {}, text: '{"Index":42}' },
    { status: 200, headers: {}, text: 'no JSON' },
    { status: 200, headers: {}, text: '{}' },
    { status: 200, headers: {}, text: 'null' },
  ];
  const transport: Transport = {
    send: () => Promise.reject(new Error('not expected')),
    stream: async (request) => {
      requests.push(request);
      const { text, ...head } = answers[requests.length - 1]!;
      return { ...head, body: inPieces(1, text) };
    },
  };
  const options = { address: ADDRESS, transport, token: 'a-secret', consistency: 'stale' } as const;
  const { snapshot } = createClient(options);
  const saved = await snapshot.save();
  t.equal(saved.meta.index, 9);
  for await (const part of saved.value) t.equal(Buffer.from(part).toString(), 'bytes');
  await t.rejects(snapshot.save(), { status: 403, message: 'Permission denied' });
  t.equal(await failureOf(snapshot.save()), 'unreadable', 'of another program');
  t.same((await snapshot.restore(inPieces(1, 'x'))).value, { Index: 42 });
  for (const other of ['no JSON', 'without an index', 'nothing']) {
    t.equal(await failureOf(snapshot.restore(inPieces(1, 'x'))), 'unreadable', other);
  }
  const asked = requests.map(({ method, url }) => `${method} ${url.slice(ADDRESS.length)}`);
  t.same([...new Set(asked)], ['GET /v1/snapshot?stale', 'PUT /v1/snapshot']);
  t.equal(requests[0]?.headers['x-service-token'], 'a-secret');
});

t.test('health: 429 with the answer is an answer, 429 with a text a refusal', async (t) => {
  const headers = { 'content-type': 'application/json' };
  const text = '{"Healthy":false}';
  const sick = scripted({ status: 429, headers, text });
  t.same((await sick.client.operator.autopilotHealth()).value, { Healthy: false });
  const limited = scripted({
    status: 429,
    headers: { 'content-type': 'text/plain' },
    text: 'slow',
  });
  await t.rejects(limited.client.operator.autopilotHealth(), { status: 429, message: 'slow' });
  const other = scripted({ status: 429, headers, text });
  await t.rejects(other.client.operator.autopilotState(), { name: 'ClientError', status: 429 });
});

/** `count` pieces, of so many bytes or of this text; notes how many were taken. */
async function* inPieces(
  count: number,
  content: number | string,
  taken: { count: number } = { count: 0 },
): AsyncGenerator<Uint8Array> {
  const piece = typeof content === 'string' ? Buffer.from(content) : Buffer.alloc(content);
  for (; taken.count < count; taken.count += 1) yield piece;
}

async function listen(t: { teardown(end: () => unknown): unknown }, listener: Server | NetServer) {
  await new Promise<void>((resolve) => {
    listener.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => listener.close());
  return (listener.address() as AddressInfo).port;
}
