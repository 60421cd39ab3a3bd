// The client over a scripted transport, and over the real routes.

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
import { listOf, policyView, readMeta, server, WRITE_META } from '../http/support.ts';
import { failureOf, inPieces } from './answers.ts';

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
