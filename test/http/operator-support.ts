// The operators' door over a real state in memory and a group that only remembers what it was told to
// do, behind the real routes. A test says who leads and how well the servers do.

import type { FastifyInstance } from 'fastify';
import type { LogFields, Logger } from '../../cluster/platform/logger.ts';
import type { AclError } from '../../src/acl/error.ts';
import type { SecretId } from '../../src/acl/ids.ts';
import type { ShownAutopilotSettings, ShownServer } from '../../src/api/render/shown-operator.ts';
import { createHttp } from '../../src/http/create-http.ts';
import { MetricsRegistry } from '../../src/http/figures/metrics.ts';
import { clientLimitsOf } from '../../src/http/limits/client-limits.ts';
import { DefaultToken } from '../../src/http/serving/default-token.ts';
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../../src/http/settings.ts';
import type { Federation } from '../../src/service/datacenters/federation.ts';
import type { LeaderContact, ServiceSettings } from '../../src/service/deps.ts';
import { createOperator, type OperatorDeps } from '../../src/service/operators/operator.ts';
import type { OperatorDoor } from '../../src/service/operators/operator-operations.ts';
import type { Archives, Group, RestoreIntake } from '../../src/service/operators/operator-port.ts';
import type { Moved, PrimaryPort } from '../../src/service/operators/primary-port.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import { createHarness, type Harness, ROOT, secretWith } from '../service/harness.ts';
import { NODE } from './support.ts';

export const IDS = {
  one: 'e349749b-3303-3ddf-959c-b5885a0e1f6e',
  two: '5e26a3af-f4fc-4104-a8bb-4da9f19cb278',
  new: '10b71f14-4b08-4ae5-840c-f86d39e7d330',
  heir: '7c1d52f0-3f0e-4a39-9d3c-2b6a0a1f9e55',
};

export function shownServer(fields: Partial<ShownServer> = {}): ShownServer {
  return {
    id: IDS.one,
    name: 'n1',
    address: '127.0.0.1:8300',
    version: '0.1.0',
    reads: 2,
    isLeader: true,
    isVoter: true,
    isAlive: true,
    isHealthy: true,
    lastContactMs: 0,
    lastTerm: 3,
    lastIndex: 1167,
    stableSinceMs: Date.parse('2026-11-21T06:00:00Z'),
    ...fields,
  };
}

export const SERVERS: readonly ShownServer[] = [
  shownServer(),
  shownServer({
    id: IDS.two,
    name: 'n2',
    address: '127.0.0.2:8300',
    isLeader: false,
    lastContactMs: 12.4,
    lastIndex: 1159,
  }),
  shownServer({
    id: IDS.new,
    name: 'n3',
    address: '127.0.0.3:8300',
    isLeader: false,
    isVoter: false,
    isAlive: false,
    isHealthy: false,
    lastContactMs: undefined,
    lastIndex: undefined,
    stableSinceMs: undefined,
  }),
];

/** Remembers what it was told to do. */
export class FakeGroup implements Group {
  readonly acts: unknown[] = [];
  settings: ShownAutopilotSettings = {
    cleanupDeadServers: true,
    lastContactThresholdMs: 200,
    maxTrailingLogs: 250,
    minQuorum: 0,
    serverStabilizationTimeMs: 10_000,
  };
  index = 7;
  isHealthy = true;
  known = SERVERS;

  servers() {
    return { servers: this.known, appliedIndex: 1170 };
  }
  autopilot() {
    return { settings: this.settings, index: this.index };
  }
  autopilotState() {
    const level = { uses: 1, reads: 2, waitsFor: ['n2'] };
    return { isHealthy: this.isHealthy, failureTolerance: 1, level, servers: SERVERS };
  }
  /** As it was given with the last change. */
  requireAllowed: () => void = () => undefined;
  async remove(id: string, requireAllowed: () => void): Promise<void> {
    this.requireAllowed = requireAllowed;
    this.acts.push({ remove: id });
  }
  async transferLeadership(id: string | undefined): Promise<void> {
    this.acts.push({ transfer: id });
  }
  async setAutopilot(
    settings: ShownAutopilotSettings,
    ifIndex: number | undefined,
    requireAllowed: () => void,
  ): Promise<boolean> {
    this.requireAllowed = requireAllowed;
    if (ifIndex !== undefined && ifIndex !== this.index) return false;
    this.settings = settings;
    this.index += 1;
    return true;
  }
}

/** Gives what it is told to give, and remembers what came in. */
export class FakeArchives implements Archives {
  chunks: () => AsyncIterable<Uint8Array> = async function* () {
    yield Buffer.from('whole ');
    yield Buffer.from('archive');
  };
  readonly events: string[] = [];
  readonly taken: Buffer[] = [];
  add: RestoreIntake['add'] = async (chunk) => void this.taken.push(Buffer.from(chunk));
  finish: RestoreIntake['finish'] = async () => ({ index: 42 });

  save() {
    this.events.push('save');
    return {
      chunks: () => this.chunks(),
      close: async () => void this.events.push('close'),
    };
  }
  /** As it was given with the last restore. */
  requireAllowed: () => void = () => undefined;
  async beginRestore(requireAllowed: () => void): Promise<RestoreIntake> {
    this.requireAllowed = requireAllowed;
    this.events.push('begin');
    return {
      add: (chunk) => this.add(chunk),
      finish: () => {
        this.events.push('finish');
        return this.finish();
      },
      abandon: async () => void this.events.push('abandon'),
    };
  }
}

/** Remembers how it was moved. */
export class FakePrimary implements PrimaryPort {
  readonly moves: unknown[] = [];
  moved: () => Moved = () => ({ epoch: 2, promises: ['dc3'], position: { epoch: 1, seq: 7 } });

  /** As it was given with the last move. */
  requireAllowed: () => void = () => undefined;

  async handOver(to: string, requireAllowed: () => void): Promise<Moved> {
    this.requireAllowed = requireAllowed;
    this.moves.push({ handOver: to });
    return this.moved();
  }
  async elect(requireAllowed: () => void): Promise<Moved> {
    this.requireAllowed = requireAllowed;
    this.moves.push('elect');
    return this.moved();
  }
  nextEpoch(): number {
    return 2;
  }
  async force(epoch: number, requireAllowed: () => void): Promise<Moved> {
    this.requireAllowed = requireAllowed;
    this.moves.push({ force: epoch });
    return this.moved();
  }
  /** Why it takes no writes. */
  closed: AclError | undefined;
  closedBecause() {
    return this.closed;
  }
  lostReign() {
    return undefined;
  }
}

export interface LogLine {
  readonly level: string;
  readonly fields: LogFields;
  readonly message: string;
}

export interface OperatorServer {
  readonly app: FastifyInstance;
  readonly operator: OperatorDoor;
  readonly harness: Harness;
  readonly group: FakeGroup;
  readonly archives: FakeArchives;
  readonly primary: FakePrimary;
  readonly log: readonly LogLine[];
  readonly metrics: MetricsRegistry;
  /** Who leads, as this server knows. */
  contact: LeaderContact;
  /** What it asked of the leader. */
  readonly forwarded: unknown[];
  /** What the leader says to it. */
  leaderSays: () => unknown;
  /** Why nothing can run here; undefined where it can. */
  closedReason: string | undefined;
  readBarrier: OperatorDeps['readBarrier'];
}

export interface OperatorServerOptions {
  readonly service?: Partial<ServiceSettings>;
  readonly http?: Partial<HttpSettings>;
  readonly federation?: Partial<Federation>;
}

export async function operatorServer(options: OperatorServerOptions = {}): Promise<OperatorServer> {
  const harness = await createHarness(options.service, options.federation);
  const group = new FakeGroup();
  const archives = new FakeArchives();
  const primary = new FakePrimary();
  const log: LogLine[] = [];
  const logger = loggerTo(log);
  const { deps, clock } = harness;
  const askLeader = (asked: unknown): Promise<never> => {
    server.forwarded.push(asked);
    return Promise.resolve().then(() => server.leaderSays() as never);
  };
  const parts: OperatorDeps = {
    ...deps,
    // No reign begins in this state, whoever is said to be made the primary.
    settings: { ...deps.settings, visibleWaitMs: 0 },
    logger,
    readBarrier: () => server.readBarrier(),
    leaderContact: () => server.contact,
    notOpenBecause: () => server.closedReason,
    opens: async (limitMs) => clock.advance(limitMs),
    remote: {
      ...deps.remote,
      leaderChanged: async (limitMs) => clock.advance(limitMs),
    },
    group,
    archives,
    primary,
    runInDatacenter: (datacenter, name, { input, call }) =>
      askLeader({ datacenter, name, input, secret: call.secret }),
    runAtLeader: (name, input, { secret }) => askLeader({ name, input, secret }),
    beginRestoreAtLeader: ({ secret }) => askLeader({ name: 'restore', secret }),
  };
  const operator = createOperator(parts);
  const metrics = new MetricsRegistry();
  const settings = { ...DEFAULT_HTTP_SETTINGS, ...options.http };
  const app = createHttp({
    operations: harness.operations,
    operator,
    settings,
    defaultToken: new DefaultToken(undefined),
    clientLimits: clientLimitsOf(settings, clock, logger),
    node: NODE,
    metrics,
    logger,
    clock,
    random: deps.random,
  });
  const server: OperatorServer = {
    app,
    operator,
    harness,
    group,
    archives,
    primary,
    log,
    metrics,
    contact: { isLeader: true, knownLeader: true, lastContactMs: 0 },
    forwarded: [],
    leaderSays: () => {
      throw new LeaderAway();
    },
    closedReason: undefined,
    readBarrier: deps.readBarrier,
  };
  return server;
}

function loggerTo(lines: LogLine[]): Logger {
  const at =
    (level: string) =>
    (fields: LogFields, message: string): void =>
      void lines.push({ level, fields, message });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

export interface Asked {
  /** Method and path below `/v1`, such as `GET /snapshot`. */
  readonly ask: string;
  readonly secret?: SecretId | '';
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Told {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** Sends one request in a dialect, with the management token where no other is named. */
export async function tell(
  { app }: Pick<OperatorServer, 'app'>,
  dialect: 'consul' | 'service',
  { ask, secret = ROOT, body, headers }: Asked,
): Promise<Told> {
  const [method = '', path = ''] = ask.split(' ');
  const prefix = dialect === 'consul' ? 'X-Consul-' : 'X-Service-';
  const who = secret === '' ? { [`${prefix}Client`]: 'test' } : { [`${prefix}Token`]: secret };
  const reply = await app.inject({
    method: method as 'GET',
    url: `/v1${path}`,
    headers: { ...who, ...headers },
    ...(body === undefined
      ? {}
      : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: reply.statusCode, text: reply.body, headers: reply.headers };
}

/** The secret of a token with these rules. */
export function withRules(
  { harness }: OperatorServer,
  rules: string,
  kind: { readonly local?: boolean } = {},
): Promise<SecretId> {
  return secretWith(harness, rules, kind);
}
