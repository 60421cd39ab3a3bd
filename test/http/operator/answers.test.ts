// What the endpoints for operators answer and refuse, in both dialects, and what is logged of it.

import t from 'tap';
import type { AccessorId } from '../../../src/acl/ids.ts';
import { AUTOPILOT_DEFAULTS } from '../../../src/api/bodies/autopilot-settings.ts';
import type { Endpoint } from '../../../src/api/endpoints/endpoint.ts';
import { OPERATOR_ENDPOINTS } from '../../../src/api/endpoints/endpoints-operator.ts';
import { openApiDocument } from '../../../src/api/endpoints/openapi.ts';
import { CALL, newToken, ROOT } from '../../service/harness.ts';
import {
  type Asked,
  IDS,
  operatorServer,
  SERVERS,
  shownServer,
  tell,
  withRules,
} from '../operator-support.ts';
import {
  ASKS,
  CONFIGURATION,
  DIALECTS,
  entryOfReaped,
  entryOfToken,
  IN_VAIN,
  PEER,
  TRANSFER,
  UNKNOWN,
} from './cases.ts';

t.test('clients.md: raft/configuration shows each server with the fields they know', async (t) => {
  const server = await operatorServer();
  for (const dialect of DIALECTS) {
    const told = await tell(server, dialect, { ask: 'GET /operator/raft/configuration' });
    t.equal(told.status, 200);
    t.same(JSON.parse(told.text), {
      Servers: [
        {
          ID: IDS.one,
          Node: 'n1',
          Address: '127.0.0.1:8300',
          Leader: true,
          ProtocolVersion: '3',
          Voter: true,
          LastIndex: 1167,
        },
        {
          ID: IDS.two,
          Node: 'n2',
          Address: '127.0.0.2:8300',
          Leader: false,
          ProtocolVersion: '3',
          Voter: true,
          LastIndex: 1159,
        },
        {
          ID: IDS.new,
          Node: 'n3',
          Address: '127.0.0.3:8300',
          Leader: false,
          ProtocolVersion: '3',
          Voter: false,
          LastIndex: 0,
        },
      ],
      Index: 1170,
    });
  }
});

t.test('clients.md: raft/peer removes by id in any letter case, and by address', async (t) => {
  const server = await operatorServer();
  const { acts } = server.group;
  for (const dialect of DIALECTS) {
    const id = IDS.two.toUpperCase();
    const byId = await tell(server, dialect, { ask: `DELETE /operator/raft/peer?id=${id}` });
    t.same([byId.status, byId.text], [200, 'true']);
    const address = 'DELETE /operator/raft/peer?address=127.0.0.3:8300';
    t.same((await tell(server, dialect, { ask: address })).status, 200);
  }
  t.same(acts, [
    { remove: IDS.two },
    { remove: IDS.new },
    { remove: IDS.two },
    { remove: IDS.new },
  ]);
});

t.test('clients.md: transfer-leader, by POST and PUT, to one server or any', async (t) => {
  const server = await operatorServer();
  for (const dialect of DIALECTS) {
    for (const ask of [
      `POST /operator/raft/transfer-leader?id=${IDS.two}`,
      'POST /operator/raft/transfer-leader',
      'PUT /operator/raft/transfer-leader?id=',
    ]) {
      const { status, text } = await tell(server, dialect, { ask });
      t.same([status, text], [200, '{"Success":true}'], ask);
    }
  }
  const each = [{ transfer: IDS.two }, { transfer: undefined }, { transfer: undefined }];
  t.same(server.group.acts, [...each, ...each]);
});

interface Refused extends Asked {
  readonly consul: number;
  readonly service: number;
  readonly text: string;
}

const PARSING = 'Error parsing autopilot config: ';

const MUST_SPECIFY =
  "Must specify either ?id with the server's ID or ?address with IP:port of peer to remove";

/** A body with one field that is wrong, and what is said of it. */
const badField = (body: unknown, text: string): Refused => ({
  ask: `PUT ${CONFIGURATION}`,
  body,
  consul: 400,
  service: 400,
  text: `${PARSING}${text}`,
});

const missing = (ask: string, kind: string, given: string): Refused => ({
  ask,
  consul: 500,
  service: 404,
  text: `${kind} ${JSON.stringify(given)} was not found in the Raft configuration`,
});

const malformed = (ask: string, text: string): Refused => ({
  ask,
  consul: 400,
  service: 400,
  text,
});

const REFUSALS: readonly Refused[] = [
  missing(`${PEER}?id=${UNKNOWN}`, 'id', UNKNOWN),
  missing(`${PEER}?id=nope`, 'id', 'nope'),
  missing(`${PEER}?address=nope`, 'address', 'nope'),
  missing(`${PEER}?address=${'a'.repeat(5_000)}`, 'address', 'a'.repeat(128)),
  missing(`${TRANSFER}?id=${UNKNOWN}`, 'id', UNKNOWN),
  malformed(PEER, MUST_SPECIFY),
  malformed(`${PEER}?id=`, MUST_SPECIFY),
  malformed(`${PEER}?address`, MUST_SPECIFY),
  malformed(
    `${PEER}?id=${IDS.two}&address=127.0.0.2:8300`,
    'Must specify only one of ?id or ?address',
  ),
  malformed(`${PEER}?id=${IDS.two}&address=`, 'Must specify only one of ?id or ?address'),
  {
    ask: `${TRANSFER}?id=${IDS.new}`,
    consul: 500,
    service: 400,
    text: 'n3 has no vote yet: it cannot lead',
  },
  badField('[]', 'json: cannot unmarshal array into the body of type object'),
  badField('', 'EOF'),
  badField({ Unheard: 1 }, 'json: unknown field "Unheard"'),
  badField(
    { CleanupDeadServers: 'yes' },
    'json: cannot unmarshal string into field CleanupDeadServers of type bool',
  ),
  badField({ LastContactThreshold: '5' }, 'time: invalid duration "5" at LastContactThreshold'),
  badField({ LastContactThreshold: '0s' }, 'LastContactThreshold must be above zero'),
  badField(
    { LastContactThreshold: '-1s' },
    'LastContactThreshold must be whole milliseconds, from 0s to 24h',
  ),
  badField(
    { ServerStabilizationTime: '1500us' },
    'ServerStabilizationTime must be whole milliseconds, from 0s to 24h',
  ),
  badField(
    { ServerStabilizationTime: '24h0m1s' },
    'ServerStabilizationTime must be whole milliseconds, from 0s to 24h',
  ),
  badField(
    { MaxTrailingLogs: '250' },
    'json: cannot unmarshal string into field MaxTrailingLogs of type uint',
  ),
  badField(
    { MaxTrailingLogs: -1 },
    'json: MaxTrailingLogs must be a whole number from 0 to 2^53-1',
  ),
  badField(
    { MaxTrailingLogs: 1.5 },
    'json: MaxTrailingLogs must be a whole number from 0 to 2^53-1',
  ),
  badField({ MinQuorum: 256 }, 'MinQuorum must be at most 255'),
  badField(
    { RedundancyZoneTag: 'zone' },
    'RedundancyZoneTag must be empty: there is no such thing here',
  ),
  badField(
    { UpgradeVersionTag: 'v' },
    'UpgradeVersionTag must be empty: there is no such thing here',
  ),
  badField(
    { DisableUpgradeMigration: true },
    'DisableUpgradeMigration must be false: nothing is migrated here',
  ),
  { ...malformed(`PUT ${CONFIGURATION}?cas=x`, 'Invalid cas'), body: {} },
  { ...malformed(`PUT ${CONFIGURATION}?cas=`, 'Invalid cas'), body: {} },
  {
    ask: 'GET /operator/raft/configuration?dc=dc9',
    consul: 500,
    service: 400,
    text: 'No path to datacenter',
  },
  { ask: 'GET /snapshot?dc=dc9', consul: 500, service: 400, text: 'No path to datacenter' },
  malformed(
    'GET /operator/autopilot/health?stale&consistent',
    'Cannot specify ?stale with ?consistent, conflicting semantics.',
  ),
];

t.test(
  'bad input: is refused by name, with the status of the dialect, and does nothing',
  async (t) => {
    const server = await operatorServer();
    for (const { consul, service, text, ...asked } of REFUSALS) {
      for (const dialect of DIALECTS) {
        const told = await tell(server, dialect, asked);
        const wanted = [dialect === 'consul' ? consul : service, text];
        t.same([told.status, told.text], wanted, `${dialect}: ${asked.ask.slice(0, 100)}`);
      }
    }
    t.same([server.group.acts, server.group.index, server.archives.events], [[], 7, []]);
  },
);

t.test('an address that two servers have had names neither of them', async (t) => {
  const server = await operatorServer();
  const [, gone] = SERVERS;
  server.group.known = [...SERVERS, shownServer({ ...gone!, id: IDS.heir, name: 'n4' })];
  const byAddress = { ask: 'DELETE /operator/raft/peer?address=127.0.0.2:8300' };
  const text = `127.0.0.2:8300 is the address of n2 (${IDS.two}), n4 (${IDS.heir}): name the server by its id`;
  for (const [dialect, status] of [
    ['consul', 500],
    ['service', 400],
  ] as const) {
    const told = await tell(server, dialect, byAddress);
    t.same([told.status, told.text], [status, text]);
  }
  t.same(server.group.acts, []);
  await tell(server, 'service', { ask: `DELETE /operator/raft/peer?id=${IDS.heir}` });
  t.same(server.group.acts, [{ remove: IDS.heir }]);
});

t.test('wrong methods: 405 with what there is', async (t) => {
  const server = await operatorServer();
  const told = await tell(server, 'service', { ask: 'POST /snapshot' });
  t.same([told.status, told.headers.allow], [405, 'OPTIONS,GET,PUT']);
  const { headers } = await tell(server, 'service', { ask: 'GET /operator/raft/transfer-leader' });
  t.equal(headers.allow, 'OPTIONS,PUT,POST');
});

t.test('clients.md: autopilot/configuration is shown as they know it, and replaced', async (t) => {
  const server = await operatorServer();
  const shown = async () =>
    JSON.parse((await tell(server, 'consul', { ask: `GET ${CONFIGURATION}` })).text) as object;
  t.same(await shown(), {
    CleanupDeadServers: true,
    LastContactThreshold: '200ms',
    MaxTrailingLogs: 250,
    MinQuorum: 0,
    ServerStabilizationTime: '10s',
    CreateIndex: 1,
    ModifyIndex: 7,
  });
  const put = await tell(server, 'consul', {
    ask: `PUT ${CONFIGURATION}`,
    body: {
      CleanupDeadServers: false,
      // Their Go client sends nanoseconds in some fields and text in others; both are read.
      LastContactThreshold: 1_500_000_000,
      MaxTrailingLogs: 100,
      MinQuorum: 3,
      serverstabilizationtime: '1m30s',
      RedundancyZoneTag: '',
      DisableUpgradeMigration: false,
      UpgradeVersionTag: '',
      CreateIndex: 4,
      ModifyIndex: 4,
    },
  });
  t.same([put.status, put.text], [200, 'true']);
  t.match(await shown(), {
    CleanupDeadServers: false,
    LastContactThreshold: '1.5s',
    MaxTrailingLogs: 100,
    MinQuorum: 3,
    ServerStabilizationTime: '1m30s',
    ModifyIndex: 8,
  });
  await tell(server, 'service', { ask: `PUT ${CONFIGURATION}`, body: { MinQuorum: 1 } });
  t.same(server.group.settings, { ...AUTOPILOT_DEFAULTS, minQuorum: 1 }, 'absent: the default');
});

t.test(
  'cas: false for those who look for it, 409 for everyone else; true where it fits',
  async (t) => {
    const server = await operatorServer();
    const put = (dialect: 'consul' | 'service', cas: number) =>
      tell(server, dialect, { ask: `PUT ${CONFIGURATION}?cas=${cas}`, body: { MinQuorum: 5 } });
    const consul = await put('consul', 6);
    t.same([consul.status, consul.text], [200, 'false']);
    const service = await put('service', 8);
    const text = 'the ModifyIndex of the autopilot configuration is not 8';
    t.same([service.status, service.text], [409, text]);
    t.same([server.group.index, server.group.settings.minQuorum], [7, 0]);
    t.same((await put('service', 7)).text, 'true');
    t.same((await put('consul', 8)).text, 'true');
  },
);

t.test(
  'clients.md: autopilot/health is 429 when somebody is not healthy; state is 200',
  async (t) => {
    const server = await operatorServer();
    for (const isHealthy of [true, false]) {
      server.group.isHealthy = isHealthy;
      for (const dialect of DIALECTS) {
        const health = await tell(server, dialect, { ask: 'GET /operator/autopilot/health' });
        t.equal(health.status, isHealthy ? 200 : 429);
        t.equal(health.headers['content-type'], 'application/json');
        const shown = JSON.parse(health.text) as { Servers: object[] };
        t.match(shown, { Healthy: isHealthy, FailureTolerance: 1 });
        t.same(shown.Servers[1], {
          ID: IDS.two,
          Name: 'n2',
          Address: '127.0.0.2:8300',
          Version: '0.1.0',
          LastContact: '12ms',
          LastTerm: 3,
          LastIndex: 1159,
          Healthy: true,
          StableSince: '2026-11-21T06:00:00.000Z',
          SerfStatus: 'alive',
          Leader: false,
          Voter: true,
        });
        t.match(shown.Servers[2], {
          LastContact: null,
          SerfStatus: 'failed',
          StableSince: '0001-01-01T00:00:00Z',
        });
        const state = await tell(server, dialect, { ask: 'GET /operator/autopilot/state' });
        t.equal(state.status, 200);
        t.match(JSON.parse(state.text), {
          Healthy: isHealthy,
          OptimisticFailureTolerance: 1,
          Leader: IDS.one,
          Voters: [IDS.one, IDS.two],
          Servers: {
            [IDS.one]: {
              Status: 'leader',
              NodeStatus: 'alive',
              NodeType: 'voter',
              LastContact: '0s',
            },
            [IDS.new]: { Status: 'non-voter', NodeStatus: 'failed' },
          },
        });
      }
    }
  },
);

t.test('divergence: all is forgotten only where that is said plainly', async (t) => {
  const server = await operatorServer();
  const secret = await withRules(server, 'operator = "write"');
  for (const [query, expected] of [
    ['all', 200],
    ['all=true', 200],
    ['all=false', 400],
    ['all=1.7', 400],
    ['all&position=1.7', 400],
    ['', 400],
  ] as const) {
    const ask = `DELETE /operator/divergence?${query}`;
    const { status, text } = await tell(server, 'service', { ask, secret });
    t.equal(status, expected, `${query}: ${text}`);
  }
});

t.test('acts are logged with who did them, and no secret', async (t) => {
  const server = await operatorServer();
  for (const [ask, , body] of ASKS) await tell(server, 'service', { ask, body });
  const acts = server.log.filter(({ message }) => message === 'operator acted');
  const isActed = ([ask, right]: (typeof ASKS)[number]): boolean =>
    right !== 'operator:read' && !IN_VAIN.has(ask);
  const done = acts.filter(({ fields }) => !('failed' in fields));
  t.equal(done.length, ASKS.filter(isActed).length);
  const tried = ASKS.filter(([, right]) => right !== 'operator:read');
  t.equal(acts.length, tried.length, 'also those that came to nothing');
  for (const { fields } of acts) t.match(fields.by, /^[0-9a-f-]{36}$/);
  t.notMatch(JSON.stringify(server.log), 'root-secret');
});

t.test('acts are logged without a secret that somebody puts where an id belongs', async (t) => {
  const server = await operatorServer();
  const root = server.harness.machine.tokenBySecret(ROOT)!;
  const { secretId } = await newToken(server.harness);
  const bare = secretId.replaceAll('-', '');
  const wrong = [secretId, ` ${secretId}/x`, ROOT, `${ROOT} `];
  for (const id of [...wrong, bare, 'x'.repeat(10_000)]) {
    const query = encodeURIComponent(id);
    for (const ask of [
      `DELETE /operator/raft/peer?id=${query}`,
      `DELETE /operator/raft/peer?address=${query}`,
      `POST /operator/raft/transfer-leader?id=${query}`,
    ])
      t.ok((await tell(server, 'service', { ask })).status >= 400, ask);
    const body = JSON.stringify({ Datacenter: id });
    await tell(server, 'service', { ask: 'PUT /operator/primary', body });
  }
  const acts = server.log.filter(({ message }) => message === 'operator acted');
  t.ok(acts.length === 6 * 4 && acts.every(({ fields }) => fields.by === root.accessorId));
  const text = JSON.stringify(acts);
  for (const secret of [secretId, bare, ROOT]) t.notMatch(text, secret);
  t.match(acts[0]?.fields, { input: { server: { id: '<hidden>' } }, failed: /^id "<hidden>" was/ });
  t.ok(text.length < 20_000, `nor what is long: ${text.length} characters`);
});

t.test('acts are logged without what an entry says that is made again', async (t) => {
  const { entry, secretId } = await entryOfToken({ description: 'left behind' });
  const { operator, harness, log } = await operatorServer();
  const input = { entry, cas: undefined };
  await operator.runForDatacenter('divergence-take', input, CALL);
  t.equal(harness.machine.tokenBySecret(secretId)?.description, 'left behind');
  const { fields, message } = log.at(-1)!;
  t.same([message, fields.name], ['operator acted', 'divergence-take']);
  t.strictSame(fields.input, {});
});

t.test('divergence: tokens that are void no more are not said to be deleted anew', async (t) => {
  const ids = [1, 2, 3].map((each) => `aaaaaaaa-0000-4000-8000-00000000000${each}` as AccessorId);
  const input = { entry: await entryOfReaped(ids), cas: undefined };
  const { operator, harness } = await operatorServer();
  const take = () => operator.runForDatacenter('divergence-take', input, CALL);
  const [alive, dying] = ids;
  await newToken(harness, { accessorId: alive });
  await newToken(harness, { accessorId: dying, expirationTtlNs: 60_000_000_000n });
  await t.rejects(take(), {
    code: 'invalid',
    message: new RegExp(`cannot be made again: .* of ${alive}, ${dying}\\. Delete those`),
  });
  harness.clock.advance(60_001);
  await t.rejects(take(), { message: new RegExp(`is not so here of ${alive}\\. Delete`) });
  await harness.run('token.delete', { accessorId: alive! });
  await take();
  t.equal(harness.machine.token(dying!), undefined);
});

t.test('rate limit: what changes the group counts as a write', async (t) => {
  const requestLimits = { mode: 'enforcing', readRate: 0, writeRate: 1 } as const;
  const server = await operatorServer({ http: { requestLimits } });
  t.equal((await tell(server, 'service', { ask: TRANSFER })).status, 200);
  t.equal((await tell(server, 'service', { ask: 'PUT /snapshot', body: 'x' })).status, 429);
  t.equal((await tell(server, 'service', { ask: 'GET /snapshot' })).status, 200);
  t.same(server.archives.events, ['save', 'close']);
});

t.test('openapi: the second status of health, and archives as bytes', async (t) => {
  const { paths } = openApiDocument('1') as unknown as {
    paths: Record<string, Record<string, { responses: object; requestBody?: object }>>;
  };
  const { responses } = paths['/v1/operator/autopilot/health']?.get ?? {};
  t.match(responses, {
    200: { content: { 'application/json': { schema: { $ref: /ServersHealth/ } } } },
    429: { content: { 'application/json': { schema: { $ref: /ServersHealth/ } } } },
  });
  const { get, put } = paths['/v1/snapshot'] ?? {};
  t.match(get?.responses, { 200: { content: { 'application/x-gzip': {} } } });
  t.match(put?.requestBody, { required: true, content: { 'application/x-gzip': {} } });
});

t.test('openapi: an operator may leave out the bodies that it does not ask for', async (t) => {
  const server = await operatorServer();
  for (const { method, path, body } of Object.values<Endpoint>(OPERATOR_ENDPOINTS)) {
    if (body === undefined) continue;
    const told = await tell(server, 'service', { ask: `${method} ${path.replace('/v1', '')}` });
    const isMissed = told.status === 400 && told.text === `${body.label}: EOF`;
    t.equal(isMissed, body.required, path);
  }
});
