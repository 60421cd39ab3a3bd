// A server over a scripted door: each test says what an operation answers, and sees what it was asked.
// Time stands still until a test moves it; waits end when a test fires them or their time has passed.

import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { LogFields, Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import type { Policy } from '../../src/acl/policy.ts';
import type { Token } from '../../src/acl/token.ts';
import { createHttp } from '../../src/http/create-http.ts';
import { MetricsRegistry } from '../../src/http/figures/metrics.ts';
import { clientLimitsOf } from '../../src/http/limits/client-limits.ts';
import { DefaultToken } from '../../src/http/serving/default-token.ts';
import type { NodeInfo } from '../../src/http/serving/node-info.ts';
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../../src/http/settings.ts';
import type { Call } from '../../src/service/call.ts';
import type {
  OperationInput,
  OperationName,
  OperationOutput,
  Operations,
} from '../../src/service/operations.ts';
import type { Operator } from '../../src/service/operators/operator-operations.ts';
import type {
  ListResult,
  PolicyView,
  ReadMeta,
  TokenView,
  WatchTarget,
  WriteMeta,
} from '../../src/service/views.ts';

type Script = {
  [Name in OperationName]?: (
    input: OperationInput<Name>,
    call: Call,
  ) => OperationOutput<Name> | Promise<OperationOutput<Name>>;
};

export class FakeClock implements Clock {
  nowMs = 1_000_000;
  monotonicMs(): number {
    return this.nowMs;
  }
  wallMs(): number {
    return Date.parse('2026-11-21T06:00:00Z') + this.nowMs;
  }
  /** What would come due; a test says when. */
  readonly pending = new Set<() => void>();
  after(delayMs: number, action: () => void): { cancel(): void } {
    if (delayMs === 0) setImmediate(action);
    else this.pending.add(action);
    return { cancel: () => this.pending.delete(action) };
  }
}

interface Wait {
  readonly target: WatchTarget;
  readonly index: number;
  readonly timeoutMs: number;
  readonly end: () => void;
}

export class FakeOperations implements Operations {
  readonly calls: {
    name: OperationName;
    input: unknown;
    call: Call;
    isGone: (() => boolean) | undefined;
  }[] = [];
  readonly waits: Wait[] = [];
  readonly #waiters: (() => void)[] = [];
  script: Script;
  defaultPolicy: 'allow' | 'deny' = 'deny';

  constructor(script: Script) {
    this.script = script;
  }

  async run<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call: Call,
  ): Promise<OperationOutput<Name>> {
    return this.answer(name, input, call);
  }

  answer<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call: Call,
    isGone?: () => boolean,
  ): OperationOutput<Name> | Promise<OperationOutput<Name>> {
    this.calls.push({ name, input, call, isGone });
    const answer = this.script[name];
    if (answer === undefined) throw new Error(`the test does not expect ${name}`);
    return answer(input, call);
  }

  waitForChange(
    target: WatchTarget,
    index: number,
    timeoutMs: number,
    cancel: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve) => {
      cancel.addEventListener('abort', () => resolve(), { once: true });
      this.waits.push({ target, index, timeoutMs, end: resolve });
      for (const waiter of this.#waiters.splice(0)) waiter();
    });
  }

  /** Resolves with the next wait that begins, or the `count`th one when it has begun already. */
  async wait(count: number): Promise<Wait> {
    while (this.waits.length < count) {
      await new Promise<void>((resolve) => {
        this.#waiters.push(resolve);
      });
    }
    return this.waits[count - 1] as Wait;
  }

  meta() {
    return { defaultPolicy: this.defaultPolicy, position: { epoch: 1, seq: 7 } };
  }
}

export class FakeLogger implements Logger {
  readonly lines: { level: string; fields: LogFields; message: string }[] = [];
  debug(fields: LogFields, message: string): void {
    this.lines.push({ level: 'debug', fields, message });
  }
  info(fields: LogFields, message: string): void {
    this.lines.push({ level: 'info', fields, message });
  }
  warn(fields: LogFields, message: string): void {
    this.lines.push({ level: 'warn', fields, message });
  }
  error(fields: LogFields, message: string): void {
    this.lines.push({ level: 'error', fields, message });
  }
}

const random: Random = {
  uuid: () => 'deadbeef-0000-4000-8000-000000000000',
  bytes: (count) => new Uint8Array(count),
  fraction: () => 0.5,
};

export const NODE: NodeInfo = {
  nodeName: 'n1',
  nodeId: '11111111-1111-1111-1111-111111111111',
  datacenter: 'dc1',
  primaryDatacenter: 'dc1',
  version: '0.1.0',
  leader: () => '127.0.0.1:8300',
  peers: () => ['127.0.0.1:8300', '127.0.0.1:8301'],
  members: () => [
    {
      ...{ id: 'id-1', name: 'n1', version: '0.1.0', address: '127.0.0.1', port: 8300 },
      ...{ isAlive: true, isVoter: true, reads: 2 },
    },
    {
      ...{ id: 'id-2', name: 'n2', version: '0.0.9', address: '127.0.0.1', port: 8301 },
      ...{ isAlive: false, isVoter: true, reads: undefined },
    },
  ],
  datacenters: () => ['dc1', 'dc2'],
  config: () => ({ LogLevel: 'info' }),
  stats: () => ({ raft: { term: '3' } }),
  notReadyReasons: () => [],
};

export interface Server {
  readonly app: FastifyInstance;
  /** Opens one more listener of the same server. */
  readonly another: () => FastifyInstance;
  readonly operations: FakeOperations;
  readonly clock: FakeClock;
  readonly logger: FakeLogger;
  readonly metrics: MetricsRegistry;
  readonly defaultToken: DefaultToken;
}

export function server(
  script: Script,
  settings: Partial<HttpSettings> = {},
  node: Partial<NodeInfo> = {},
  operator: Partial<Operator> = {},
): Server {
  const operations = new FakeOperations(script);
  const clock = new FakeClock();
  const logger = new FakeLogger();
  const metrics = new MetricsRegistry();
  const defaultToken = new DefaultToken(undefined);
  const all = { ...DEFAULT_HTTP_SETTINGS, ...settings };
  const parts = {
    operations,
    operator: { run: unexpected, save: unexpected, beginRestore: unexpected, ...operator },
    settings: all,
    defaultToken,
    clientLimits: clientLimitsOf(all, clock, logger),
    node: { ...NODE, ...node },
    metrics,
    logger,
    clock,
    random,
  };
  const another = () => createHttp(parts);
  return { app: another(), another, operations, clock, logger, metrics, defaultToken };
}

const unexpected = (): Promise<never> => {
  throw new Error('the test does not expect an operator');
};

export function readMeta(index: number): ReadMeta {
  return {
    index,
    knownLeader: true,
    lastContactMs: 0,
    position: { epoch: 1, seq: index },
    watch: { table: 'policies', object: undefined },
  };
}

export const WRITE_META: WriteMeta = {
  index: 9,
  position: { epoch: 1, seq: 9 },
  ack: 'majority',
  replayed: false,
};

export function policyView(fields: Partial<Policy> = {}): PolicyView {
  const policy = {
    id: '22222222-2222-2222-2222-222222222222',
    name: 'reader',
    namespace: 'default',
    description: '',
    rules: 'acl = "read"',
    datacenters: [],
    hash: 'aGFzaA==',
    createIndex: 5,
    modifyIndex: 6,
    ...fields,
  };
  return { kind: 'policy', policy: policy as unknown as Policy };
}

export function tokenView(
  fields: Partial<Token> = {},
  view: Partial<Omit<TokenView, 'token'>> = {},
): TokenView {
  const token = {
    accessorId: '33333333-3333-3333-3333-333333333333',
    secretId: '44444444-4444-4444-4444-444444444444',
    namespace: 'default',
    description: 'a <b> & "c"',
    policies: [],
    roles: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    local: false,
    authMethod: undefined,
    createTime: '2026-11-21T06:00:00.5Z',
    expirationTime: undefined,
    hash: 'aGFzaA==',
    createIndex: 3,
    modifyIndex: 4,
    ...fields,
  };
  return {
    kind: 'token',
    token: token as unknown as Token,
    policies: [],
    roles: [],
    secretHidden: false,
    expanded: undefined,
    ...view,
  };
}

/** A list in slices; `onReturn` hears when the reader lets go of it before its end. */
export function listOf<T>(
  slices: readonly (readonly T[])[],
  options: { index?: number; next?: string; onReturn?: () => void } = {},
): ListResult<T> {
  async function* generate() {
    try {
      yield* slices;
    } finally {
      options.onReturn?.();
    }
  }
  return { slices: generate(), next: () => options.next, meta: readMeta(options.index ?? 10) };
}
