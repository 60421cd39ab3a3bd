// What operators ask over HTTP: the rows of clients.md about raft, autopilot and snapshots by name, in
// both dialects; who may ask; what is refused; where it is answered. The group only remembers.

import t from 'tap';
import type { TokenDraft } from '../../src/acl/drafts.ts';
import { AclError } from '../../src/acl/error.ts';
import { type SecretId, secretIdOf } from '../../src/acl/ids.ts';
import { AUTOPILOT_DEFAULTS } from '../../src/api/autopilot-settings.ts';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { OPERATOR_ENDPOINTS, SNAPSHOT_ENDPOINTS } from '../../src/api/endpoints-operator.ts';
import { openApiDocument } from '../../src/api/openapi.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import type { Change } from '../../src/state/commands.ts';
import { CALL, newPolicy, newToken, refusalOf } from '../service/harness.ts';
import { uuidNumbered } from '../support/fake-random.ts';
import {
  type Asked,
  IDS,
  type OperatorServer,
  operatorServer,
  type OperatorServerOptions,
  SERVERS,
  shownServer,
  tell,
  withRules,
} from './operator-support.ts';

const DIALECTS = ['consul', 'service'] as const;
const ALL: readonly Endpoint[] = Object.values<Endpoint>({
  ...OPERATOR_ENDPOINTS,
  ...SNAPSHOT_ENDPOINTS,
});
const CONFIGURATION = '/operator/autopilot/configuration';
const UNKNOWN = '99999999-9999-4999-8999-999999999999';

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

const PEER = 'DELETE /operator/raft/peer';
const TRANSFER = 'POST /operator/raft/transfer-leader';
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

/** A request for each endpoint that goes through where the caller may ask it. */
const ASKS: readonly (readonly [ask: string, right: string, body?: string])[] = [
  ['GET /operator/raft/configuration', 'operator:read'],
  [`${PEER}?id=${IDS.two}`, 'operator:write'],
  [TRANSFER, 'operator:write'],
  ['PUT /operator/raft/transfer-leader', 'operator:write'],
  [`GET ${CONFIGURATION}`, 'operator:read'],
  [`PUT ${CONFIGURATION}`, 'operator:write', '{}'],
  ['GET /operator/autopilot/health', 'operator:read'],
  ['GET /operator/autopilot/state', 'operator:read'],
  ['GET /operator/primary', 'operator:read'],
  ['PUT /operator/primary', 'operator:write', '{}'],
  ['GET /operator/divergence', 'operator:read'],
  ['PUT /operator/divergence?position=1.7', 'operator:write'],
  ['DELETE /operator/divergence?all', 'operator:write'],
  ['GET /snapshot', 'acl:write'],
  ['PUT /snapshot', 'acl:write', 'bytes'],
];

/** What some of them need besides. */
const ALSO = new Map([['PUT /operator/divergence?position=1.7', 'acl:write']]);
/** Where there is one datacenter, nothing can be moved, and nothing was left behind. */
const IN_VAIN = new Map([
  ['PUT /operator/primary', 400],
  ['PUT /operator/divergence?position=1.7', 404],
]);

const RULES: readonly (readonly [rules: string, rights: readonly string[]])[] = [
  ['operator = "read"', ['operator:read']],
  ['operator = "write"', ['operator:read', 'operator:write']],
  ['acl = "read"', []],
  ['acl = "write"', ['acl:write']],
  ['acl = "write" operator = "write"', ['acl:write', 'operator:read', 'operator:write']],
  ['operator = "deny"', []],
];

t.test('rights: each endpoint asks for its own, snapshots for acl:write', async (t) => {
  t.equal(ASKS.length, ALL.length);
  const server = await operatorServer();
  for (const [rules, rights] of RULES) {
    const secret = await withRules(server, rules);
    for (const [ask, right, body] of ASKS) {
      const { status, text } = await tell(server, 'service', { ask, secret, body });
      const missing = [right, ALSO.get(ask) ?? right].find((each) => !rights.includes(each));
      const allowed = IN_VAIN.get(ask) ?? 200;
      t.equal(status, missing === undefined ? allowed : 403, `${rules}: ${ask} ${text}`);
      if (missing !== undefined) t.match(text, `lacks permission '${missing}'`);
    }
  }
});

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

t.test('clients.md: without a token everything is 403, in the words they compare', async (t) => {
  for (const defaultPolicy of ['deny', 'allow'] as const) {
    const server = await operatorServer({ service: { defaultPolicy } });
    for (const [ask, right, body] of ASKS) {
      if (defaultPolicy === 'allow' && right !== 'acl:write') continue;
      for (const dialect of DIALECTS) {
        const told = await tell(server, dialect, { ask, secret: '', body });
        const text = `Permission denied: anonymous token lacks permission '${right}'. The anonymous token is used implicitly when a request does not specify a token.`;
        t.same([told.status, told.text], [403, text], `${defaultPolicy} ${ask}`);
      }
    }
    t.same(server.archives.events, [], 'not a byte of an archive was taken or given');
  }
});

t.test('rights: an unknown secret is refused, and the refusal is counted', async (t) => {
  const server = await operatorServer();
  const secret = UNKNOWN as never;
  const told = await tell(server, 'service', { ask: 'GET /snapshot', secret });
  t.same([told.status, told.text], [403, 'ACL not found']);
  const reader = await withRules(server, 'acl = "read"');
  await tell(server, 'service', { ask: 'GET /snapshot', secret: reader });
  t.equal(server.harness.counts.get('acl.denied permission-denied'), 1);
});

t.test('rights: are looked at anew for each request', async (t) => {
  const server = await operatorServer();
  const secret = await withRules(server, 'operator = "read"');
  const ask = 'GET /operator/raft/configuration';
  t.equal((await tell(server, 'service', { ask, secret })).status, 200);
  const { harness } = server;
  const self = await harness.run('token.read-self', {}, { secret });
  await harness.run('token.delete', { accessorId: self.value?.token.accessorId ?? '' });
  t.equal((await tell(server, 'service', { ask, secret })).status, 403);
});

t.test('while ACLs are off everybody is an operator', async (t) => {
  const server = await operatorServer({
    service: { aclEnabled: false },
    http: { aclEnabled: false },
  });
  for (const [ask, , body] of ASKS) {
    const { status } = await tell(server, 'service', { ask, secret: '', body });
    t.equal(status, IN_VAIN.get(ask) ?? 200, ask);
  }
});

t.test('a follower: asks the leader everything but what is stale and known to it', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  server.leaderSays = () => server.group.autopilotState();
  const secret = await withRules(server, 'operator = "read"');
  await tell(server, 'service', { ask: 'GET /operator/autopilot/health?stale', secret });
  t.same(server.forwarded, [{ name: 'autopilot-state', input: {}, secret }]);
  server.readBarrier = () => Promise.reject(new LeaderAway());
  for (const ask of [
    'GET /operator/raft/configuration?stale',
    `GET ${CONFIGURATION}?max_stale=1s`,
    'GET /snapshot?stale',
  ]) {
    t.equal((await tell(server, 'service', { ask })).status, 200, ask);
  }
  const denied = await tell(server, 'service', { ask: `GET ${CONFIGURATION}?stale`, secret: '' });
  t.equal(denied.status, 403, 'stale or not, rights are asked');
  t.equal(server.forwarded.length, 1);
});

t.test('a follower: a restore ends when it has what was restored, or soon after', async (t) => {
  const server = await operatorServer();
  const { harness } = server;
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  let finishedCount = 0;
  const intakeTo = (index: number) => () => ({
    add: async () => undefined,
    finish: async () => {
      finishedCount += 1;
      return { index };
    },
    abandon: async () => undefined,
  });
  /** The leader is done, and this server waits for its own state. */
  const waiting = async (count: number) => {
    while (finishedCount < count || harness.clock.pendingCount === 0) {
      await new Promise(setImmediate);
    }
  };
  const index = harness.machine.index() + 1;
  server.leaderSays = intakeTo(index);
  const ask = { ask: 'PUT /snapshot', body: 'x' };
  // The clock stands: it is waited for the state, or for ever.
  const inTime = tell(server, 'service', ask);
  await waiting(1);
  await harness.run('token.create', { draft: {} });
  t.equal((await inTime).text, `{"Index":${index}}`);

  server.leaderSays = intakeTo(index + 10);
  const late = tell(server, 'service', ask);
  await waiting(2);
  harness.clock.advance(1_000);
  t.equal((await late).text, `{"Index":${index + 10}}`);
});

t.test('a follower: carries nothing to a leader that it does not allow itself', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  // As one whose ACLs are off, or whose default policy allows.
  server.leaderSays = () => server.group.autopilotState();
  const weak = await withRules(server, 'key "a" { policy = "read" }');
  for (const [ask, right, body] of ASKS) {
    for (const secret of ['', weak] as const) {
      const { status, text } = await tell(server, 'service', { ask, secret, body });
      t.equal(status, 403, ask);
      t.match(text, right, ask);
    }
  }
  t.same(server.forwarded, []);
});

t.test(
  'a follower: a right that goes while an archive comes is asked for again at its end',
  async (t) => {
    const server = await operatorServer();
    const { harness } = server;
    server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
    const secret = await withRules(server, 'acl = "write"');
    const { accessorId } = harness.machine.tokenBySecret(secret as SecretId)!;
    const events: string[] = [];
    server.leaderSays = () => ({
      add: async () => {
        events.push('add');
        await harness.run('token.delete', { accessorId });
      },
      finish: async () => {
        events.push('finish');
        return { index: 1 };
      },
      abandon: async () => void events.push('abandon'),
    });
    const { status } = await tell(server, 'service', { ask: 'PUT /snapshot', body: 'x', secret });
    t.equal(status, 403);
    t.same(events, ['add', 'abandon']);
  },
);

t.test('a follower: what the leader refuses is refused in the same words', async (t) => {
  const server = await operatorServer();
  server.contact = { isLeader: false, knownLeader: true, lastContactMs: 5 };
  server.leaderSays = () => {
    throw new AclError('update-target-missing', 'id "x" was not found in the Raft configuration');
  };
  const told = await tell(server, 'consul', { ask: `${PEER}?id=x` });
  t.same([told.status, told.text], [500, 'id "x" was not found in the Raft configuration']);
  t.same(server.forwarded, [
    { name: 'raft-remove-peer', input: { server: { id: 'x' } }, secret: 'root-secret' },
  ]);
});

t.test(
  'without a leader: it is tried again for a while, then 503, and nothing was done',
  async (t) => {
    const server = await operatorServer();
    server.contact = { isLeader: false, knownLeader: false, lastContactMs: 5 };
    for (const [ask, , body] of ASKS.filter(([each]) => each !== 'GET /snapshot')) {
      const before = server.forwarded.length;
      const { status, text, headers } = await tell(server, 'service', { ask, body });
      t.same([status, text, headers['retry-after']], [503, 'No cluster leader', '1'], ask);
      t.ok(server.forwarded.length - before > 10, 'it was tried');
    }
    let tries = 0;
    server.leaderSays = () => {
      tries += 1;
      if (tries < 3) throw new LeaderAway();
      return server.group.servers();
    };
    t.equal(
      (await tell(server, 'service', { ask: 'GET /operator/raft/configuration' })).status,
      200,
    );
  },
);

t.test('a server that is not open: says why, also where a request is stale', async (t) => {
  const server = await operatorServer();
  server.closedReason = 'this server was removed from its cluster';
  for (const [ask, , body] of [...ASKS, ['GET /operator/raft/configuration?stale', '']]) {
    const { status, text } = await tell(server, 'service', { ask: ask ?? '', body });
    t.same([status, text], [503, 'this server was removed from its cluster'], ask);
  }
  t.same([server.forwarded, server.group.acts, server.archives.events], [[], [], []]);
});

t.test('a change: needs the barrier even where the request is stale', async (t) => {
  const server = await operatorServer();
  server.readBarrier = () => Promise.reject(new AclError('unavailable', 'no quorum'));
  const { status } = await tell(server, 'service', { ask: `${PEER}?id=${IDS.two}&stale` });
  t.equal(status, 503);
  t.same(server.group.acts, []);
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

/** An entry of the global log of another system, which made this token. */
async function entryOfToken(draft: TokenDraft): Promise<{ entry: Uint8Array; secretId: SecretId }> {
  const elsewhere = (await operatorServer()).harness;
  const begin: Change = {
    type: 'global-log.begin',
    datacenter: 'dc1',
    primary: 'dc1',
    isWitness: false,
  };
  await elsewhere.deps.propose({ change: begin, timeMs: 0, cas: undefined, request: undefined });
  const { secretId } = await newToken(elsewhere, draft);
  const { seq } = elsewhere.machine.replication()!.cursor;
  const [entry] = (await elsewhere.machine.globalEntries(seq - 1, 1 << 20))!;
  return { entry: entry!, secretId };
}

t.test('divergence: is not made anew by whoever loses the right in that moment', async (t) => {
  const { entry } = await entryOfToken({
    ...{ accessorId: uuidNumbered(901), secretId: uuidNumbered(902) },
    policies: [{ name: 'global-management' }],
  });
  const admin = 'acl = "write" operator = "write"';
  for (const [rules, lacks] of [
    ['', 'operator:write'],
    ['operator = "write"', 'acl:write'],
  ] as const) {
    const { operator, harness } = await operatorServer();
    const id = await newPolicy(harness, 'admin', admin);
    const { secretId: secret } = await newToken(harness, { policies: [{ id }] });
    const { proposals } = harness;
    const taken = harness.run('policy.update', { id, draft: { name: 'admin', rules } });
    while (harness.proposals === proposals) await Promise.resolve();
    const call = { ...CALL, secret };
    const made = operator.runForDatacenter('divergence-take', { entry, cas: undefined }, call);
    t.match(
      await refusalOf(made),
      new RegExp(`^permission-denied: .* lacks permission '${lacks}'`),
    );
    await taken;
    t.equal(harness.machine.totals().tokens, 3, 'the anonymous one, the first one, and the admin');
  }
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

t.test('restore: waits for what is taken from its caller in that moment', async (t) => {
  const { operator, archives, harness } = await operatorServer();
  const policies = [{ id: await newPolicy(harness, 'admin', 'acl = "write"') }];
  const { accessorId, secretId: secret } = await newToken(harness, { policies });
  await operator.beginRestore({ ...CALL, secret });
  t.doesNotThrow(() => archives.requireAllowed());
  const { proposals } = harness;
  const taken = harness.run('token.update', { accessorId, draft: {} });
  while (harness.proposals === proposals) await Promise.resolve();
  t.throws(() => archives.requireAllowed(), {
    code: 'unavailable',
    message: /^nothing was written/,
  });
  await taken;
  t.throws(() => archives.requireAllowed(), { code: 'permission-denied' });
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

const PRIMARY = 'PUT /operator/primary';

/** A server of dc1, which is the primary of dc2. */
async function primaryServer(options?: OperatorServerOptions): Promise<OperatorServer> {
  const server = await operatorServer(options);
  const { propose } = server.harness.deps;
  const done = async (change: Change): Promise<void> => {
    await propose({ change, timeMs: 0, cas: undefined, request: undefined });
  };
  const begin = { datacenter: 'dc1', primary: 'dc1', isWitness: false };
  await done({ type: 'global-log.begin', ...begin });
  const datacenters = ['dc1', 'dc2'].map((name) => ({ name, isVoter: true, isWitness: false }));
  await done({ type: 'datacenters.set', datacenters, majoritySeq: 0 });
  return server;
}

t.test('primary: a wish is carried out here, or sent once to where it can be', async (t) => {
  const server = await primaryServer();
  server.leaderSays = () => ({
    ...server.primary.moved(),
    datacenter: 'dc2',
    head: { epoch: 1, seq: 9 },
  });
  const move = (body: object) =>
    tell(server, 'service', { ask: PRIMARY, body: JSON.stringify(body) });
  const handedOver = await move({ Datacenter: 'dc2' });
  t.equal(handedOver.status, 200, handedOver.text);
  t.same(server.primary.moves, [{ handOver: 'dc2' }]);
  t.same(JSON.parse(handedOver.text), {
    Datacenter: 'dc2',
    Epoch: 2,
    Promises: ['dc3'],
    Position: '1.7',
    HeadPosition: '1.7',
  });
  const elsewhere = await move({ Datacenter: 'dc2', Mode: 'election' });
  t.match(JSON.parse(elsewhere.text), { Position: '1.7', HeadPosition: '1.9' });
  const wish = { datacenter: 'dc2', mode: 'election', from: 'dc1' };
  t.match(server.forwarded, [{ datacenter: 'dc2', name: 'primary-move', input: wish }]);
  const own = await move({ Datacenter: 'dc1' });
  t.same([own.status, own.text], [400, 'dc1 is the primary already']);
  // Only those who promise know whether it has been outrun.
  t.equal((await move({ Datacenter: 'dc1', Mode: 'election' })).status, 200);
  t.same(server.primary.moves, [{ handOver: 'dc2' }, 'elect']);
  const shown = await tell(server, 'service', { ask: 'GET /operator/primary' });
  t.same(JSON.parse(shown.text), {
    ...{ Datacenter: 'dc1', Epoch: 1, PromisedEpoch: 1, Position: '1.2', HeadPosition: '1.2' },
    ...{ Voters: ['dc1', 'dc2'], Closed: '', DivergentEntries: 0, GoneEntries: 0 },
  });
});

t.test('primary: one that takes no writes, because it is outrun, can be forced', async (t) => {
  const server = await primaryServer();
  const body = JSON.stringify({ Datacenter: 'dc1', Mode: 'forced', Epoch: 2, AcceptLoss: true });
  const force = () => tell(server, 'service', { ask: PRIMARY, body });
  const healthy = await force();
  t.same([healthy.status, healthy.text], [400, 'dc1 is the primary already']);
  server.primary.closed = new AclError('unavailable', 'dc2 is said to have begun epoch 2');
  const { status, text } = await force();
  t.equal(status, 200, text);
  t.same(server.primary.moves, [{ force: 2 }]);
});

t.test('primary: one that has promised to another says so, and what to do', async (t) => {
  const server = await primaryServer();
  const { propose, view } = server.harness.deps;
  const at = view.replication()!.cursor;
  const change = { type: 'epoch.promise', epoch: 2, candidate: 'dc2', at } as const;
  await propose({ change, timeMs: 0, cas: undefined, request: undefined });
  const { text } = await tell(server, 'service', { ask: 'GET /operator/primary' });
  const { Closed, ...shown } = JSON.parse(text) as { Closed: string };
  t.match(shown, { Datacenter: 'dc1', Epoch: 1, PromisedEpoch: 2 });
  t.match(Closed, /^dc1 has promised epoch 2 to dc2, and has heard of no entry of it: /);
  t.match(Closed, /`conclave operator promote dc2` tries again/);
  t.match(Closed, /`conclave operator promote dc1 --election` takes it back$/);
});

t.test('primary: the secret of a local token that came a moment ago goes nowhere', async (t) => {
  const server = await primaryServer({ federation: { datacenters: () => ['dc1', 'dc2'] } });
  const { harness } = server;
  const secret = secretIdOf('8f1c2b34-5d6e-4f70-8a9b-0c1d2e3f4a5b');
  server.readBarrier = async () => {
    await harness.run('token.create', { draft: { secretId: secret, local: true } });
  };
  const there = { ...CALL, secret, datacenter: 'dc2', consistency: 'stale' } as const;
  t.match(
    await refusalOf(server.operator.run('primary', {}, there)),
    /^permission-denied: .*the token is local to datacenter dc1/,
  );
  t.same(server.forwarded, []);
});

t.test('primary: a local token moves nothing, and its secret goes nowhere', async (t) => {
  const server = await primaryServer();
  const secret = await withRules(server, 'operator = "write"', { local: true });
  for (const body of ['{"Datacenter":"dc2"}', '{"Datacenter":"dc2","Mode":"election"}']) {
    const told = await tell(server, 'service', { ask: PRIMARY, secret, body });
    t.equal(told.status, 403);
    t.match(told.text, /the token is local to datacenter dc1, .* use a global token$/);
  }
  t.same([server.primary.moves, server.forwarded], [[], []]);
});

t.test(
  'operator: where nothing comes to a quorum of disks, the answer comes in time',
  async (t) => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const { group, archives, primary, operator, harness, log } = await primaryServer();
    Object.assign(group, { remove: never, transferLeadership: never, setAutopilot: never });
    const changes = [
      operator.run('raft-remove-peer', { server: { id: IDS.two } }, CALL),
      operator.run('raft-transfer-leader', { id: undefined }, CALL),
      operator.run(
        'autopilot-set-configuration',
        { settings: AUTOPILOT_DEFAULTS, ifIndex: undefined },
        CALL,
      ),
    ];
    archives.finish = never;
    Object.assign(primary, { elect: never });
    const restore = (await operator.beginRestore(CALL)).finish();
    const given = { datacenter: undefined, epoch: undefined, acceptsLoss: false, from: undefined };
    const move = operator.run('primary-move', { ...given, mode: 'election' }, CALL);
    const told = Promise.all(changes.map(refusalOf));
    await new Promise<void>((resolve) => setImmediate(resolve));
    harness.clock.advance(30_000);
    const unknown = 'took effect is not known: the leader has waited for it for';
    t.same(new Set(await told), new Set([`outcome-unknown: whether the change ${unknown} 30 s`]));
    t.equal(log.filter(({ fields }) => 'failed' in fields).length, 3, 'each is in the log');
    harness.clock.advance(570_000);
    t.equal(await refusalOf(restore), `outcome-unknown: whether the restore ${unknown} 600 s`);
    t.equal(await refusalOf(move), `outcome-unknown: whether the change ${unknown} 600 s`);
  },
);
