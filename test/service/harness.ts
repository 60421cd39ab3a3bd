// A service over the real state machine on memory, with a clock that stands still until it is told to
// move, and auth methods whose credential is the identity as JSON.

import { must } from '../../cluster/base/assert.ts';
import type { LogEntry } from '../../cluster/log/log-entry.ts';
import type { TokenDraft } from '../../src/acl/checks/drafts.ts';
import { AclError } from '../../src/acl/error.ts';
import type { SecretId } from '../../src/acl/ids.ts';
import { secretIdOf } from '../../src/acl/ids.ts';
import type { Token } from '../../src/acl/token.ts';
import type { AuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import type { AuthMethodValidator } from '../../src/auth-methods/auth-method-validator.ts';
import { type Call, PLAIN_CALL } from '../../src/service/call.ts';
import { createOperations, type Door } from '../../src/service/create-operations.ts';
import type { Federation } from '../../src/service/datacenters/federation.ts';
import type { ServiceDeps, ServiceSettings } from '../../src/service/deps.ts';
import { ensureBuiltins } from '../../src/service/duties/duties.ts';
import type {
  OperationInput,
  OperationName,
  OperationOutput,
  Operations,
} from '../../src/service/operations.ts';
import { LeaderAway, type Remote } from '../../src/service/remote.ts';
import type { ListResult } from '../../src/service/views.ts';
import { trackingWrites } from '../../src/service/writes/tracking-writes.ts';
import { encodeCommand } from '../../src/state/commands/command-codec.ts';
import type { Outcome } from '../../src/state/commands/outcome.ts';
import { StateMachine } from '../../src/state/machine.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeRandom } from '../support/fake-random.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { TTL_LIMITS } from '../support/state-and-service/fixtures.ts';
import { loneDatacenter } from '../support/state-and-service/lone-datacenter.ts';

export const ROOT = secretIdOf('root-secret');
export const START_MS = Date.parse('2026-01-01T00:00:00Z');

/** Accepts `{"name": "value"}` as a credential; its entries are the attributes `value.name`. */
const jsonValidator: AuthMethodValidator = {
  checkConfig: ({ config }) =>
    config.bad === true
      ? Promise.reject(new AclError('invalid', 'Invalid Auth Method: bad Config'))
      : Promise.resolve(),
  attributeNames: () => ({
    selectable: { strings: [], stringMaps: ['value'], listMaps: ['list'] },
    interpolatable: ['value.name', 'value.team'],
  }),
  mappingText: ({ config }) => String(config.mapping ?? ''),
  validate: async (_method, bearerToken) => {
    if (!bearerToken.startsWith('{')) throw new AclError('login-refused', 'bad credential');
    const claims = Object.entries(JSON.parse(bearerToken) as Record<string, string>);
    const strings = new Map(claims.map(([name, value]) => [`value.${name}`, value]));
    return {
      selectable: { strings, lists: new Map() },
      interpolatable: strings,
    };
  },
};

export const authMethods: AuthMethods = {
  types: {
    'aws-iam': jsonValidator,
    jwt: jsonValidator,
    kubernetes: jsonValidator,
    oidc: jsonValidator,
  },
  oidcFlow: {
    authUrl: ({ method, redirectUri, clientNonce, meta }) => {
      const { name, namespace, createIndex } = method;
      const pending = {
        method: { name, namespace, createIndex },
        state: 'state-1',
        nonce: 'nonce',
        pkceVerifier: '',
        redirectUri,
        clientNonce,
        meta,
        expiresAtMs: START_MS + 300_000,
      };
      return Promise.resolve({ authUrl: 'https://idp/?state=state-1', pending });
    },
    callback: ({ method, pending, code }) =>
      pending === undefined
        ? Promise.reject(new AclError('login-refused', 'the login state is unknown or has expired'))
        : jsonValidator.validate(method, code),
  },
};

export interface Harness {
  readonly operations: Operations;
  readonly door: Door;
  readonly machine: StateMachine;
  readonly clock: FakeClock;
  readonly deps: ServiceDeps;
  /** Counts by metric name. */
  readonly counts: Map<string, number>;
  resetIndex: number | undefined;
  /** Whom that is for, where it is for one alone. */
  resetSecret: string | undefined;
  proposals: number;
  barriers: number;
  run<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call?: Partial<Call>,
  ): Promise<OperationOutput<Name>>;
}

export const SETTINGS: ServiceSettings = {
  nodeName: 'n1',
  datacenter: 'dc1',
  aclEnabled: true,
  defaultPolicy: 'deny',
  downPolicy: 'extend-cache',
  tokenLimits: TTL_LIMITS,
  initialManagementSecret: ROOT,
  namespacesEnabled: true,
  leaderWaitMs: 5_000,
  defaultAck: 'primary',
  ackTimeoutMs: 5_000,
  visibleWaitMs: 2_000,
};

/** Of a server that is no member of a group: nobody else leads. */
const NO_REMOTE: Remote = {
  runAtLeader: () => Promise.reject(new LeaderAway()),
  leaderTerm: () => undefined,
  leaderChanged: () => Promise.resolve(),
};

export const CALL: Call = { ...PLAIN_CALL, secret: ROOT };

/** A node with its built-ins; the management token's secret is ROOT unless settings say otherwise. */
export async function createHarness(
  settings: Partial<ServiceSettings> = {},
  federation: Partial<Federation> = {},
): Promise<Harness> {
  const clock = new FakeClock(START_MS);
  const machine = StateMachine.open(new MemoryKv(), { clock });
  const counts = new Map<string, number>();
  let queue: Promise<unknown> = Promise.resolve();
  const applyOne = async (payload: Uint8Array): Promise<Outcome> => {
    const index = machine.appliedIndex() + 1;
    const entry: LogEntry = { index, term: 1, type: 'normal', payload, hash: new Uint8Array(32) };
    return must((await machine.apply([entry]))[0], 'an outcome');
  };
  const deps: ServiceDeps = trackingWrites({
    view: machine,
    watch: machine.watch,
    propose: (command) => {
      harness.proposals += 1;
      const payload = encodeCommand(command);
      const outcome = queue.then(() => applyOne(payload));
      queue = outcome.catch(() => undefined);
      return outcome;
    },
    readBarrier: () => {
      harness.barriers += 1;
      return Promise.resolve();
    },
    leaderContact: () => ({ isLeader: true, knownLeader: true, lastContactMs: 0 }),
    reign: () => 1,
    notOpenBecause: () => undefined,
    opens: () => Promise.resolve(),
    remote: NO_REMOTE,
    federation: {
      ...loneDatacenter(settings.datacenter ?? 'dc1', () => machine.position()),
      ...federation,
    },
    takeResetIndex: (secret) => {
      const { resetIndex: given, resetSecret = secret } = harness;
      if (resetSecret !== secret) return undefined;
      harness.resetIndex = undefined;
      return given;
    },
    authMethods,
    clock,
    agreedMs: () => Promise.resolve(clock.wallMs()),
    random: new FakeRandom(),
    logger: {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: () => undefined,
    },
    metrics: {
      count: (name, labels, by = 1) => {
        const key = labels === undefined ? name : `${name} ${Object.values(labels).join(' ')}`;
        counts.set(key, (counts.get(key) ?? 0) + by);
      },
    },
    settings: { ...SETTINGS, ...settings },
  });
  const door = createOperations(deps);
  const harness: Harness = {
    operations: door,
    door,
    machine,
    clock,
    deps,
    counts,
    resetIndex: undefined,
    resetSecret: undefined,
    proposals: 0,
    barriers: 0,
    run: (name, input, call) => harness.operations.run(name, input, { ...CALL, ...call }),
  };
  await ensureBuiltins(deps);
  return harness;
}

/** `code: message` of the refusal, or `ok`; also of a read that resolves with a refusal. */
export async function refusalOf(running: Promise<unknown>): Promise<string> {
  try {
    const result = (await running) as { refusal?: { code: string; message: string } };
    const refusal = result?.refusal;
    return refusal === undefined ? 'ok' : `${refusal.code}: ${refusal.message}`;
  } catch (error) {
    if (error instanceof AclError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** All of a list. */
export async function allOf<T>(result: ListResult<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const slice of result.slices) all.push(...slice);
  return all;
}

/** A token as ROOT makes it. */
export async function newToken(harness: Harness, draft: TokenDraft = {}): Promise<Token> {
  return (await harness.run('token.create', { draft })).value.token;
}

/** The id of a policy with these rules. */
export async function newPolicy(
  harness: Harness,
  name: string,
  rules: string,
  namespace?: string,
): Promise<string> {
  return (await harness.run('policy.create', { draft: { name, rules, namespace } })).value.policy
    .id;
}

/** The secret of a token with one policy of these rules. */
export async function secretWith(
  harness: Harness,
  rules: string,
  { local = false }: { readonly local?: boolean } = {},
): Promise<SecretId> {
  const name = `p-${harness.proposals}`;
  const policies = [{ id: await newPolicy(harness, name, rules) }];
  return (await newToken(harness, { policies, local })).secretId;
}
