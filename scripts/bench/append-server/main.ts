// The ceiling of a write: the same HTTP server, behind it nothing but a synced, group-committed
// LevelDB append of the body. Prints its port when it listens; argument: the folder for its data.

import type { AddressInfo } from 'node:net';
import type { KvWrite } from '../../../cluster/platform/kv.ts';
import type { AccessorId, NamespaceName, SecretId } from '../../../src/acl/ids.ts';
import type { Token } from '../../../src/acl/token.ts';
import { instantOfMs } from '../../../src/acl/values/instant.ts';
import { createHttp } from '../../../src/http/create-http.ts';
import { MetricsRegistry } from '../../../src/http/figures/metrics.ts';
import { clientLimitsOf } from '../../../src/http/limits/client-limits.ts';
import { DefaultToken } from '../../../src/http/serving/default-token.ts';
import type { NodeInfo } from '../../../src/http/serving/node-info.ts';
import { DEFAULT_HTTP_SETTINGS } from '../../../src/http/settings.ts';
import { openLevelKv } from '../../../src/platform-node/disk/level-kv.ts';
import { openJsonLog } from '../../../src/platform-node/process/json-log.ts';
import { systemClock } from '../../../src/platform-node/system-clock.ts';
import { systemRandom } from '../../../src/platform-node/system-random.ts';
import type { OperationInput, Operations } from '../../../src/service/operations.ts';
import type { Operator } from '../../../src/service/operators/operator-operations.ts';
import type { TokenView, WriteResult } from '../../../src/service/views.ts';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: main.js FOLDER');
const kv = await openLevelKv({
  folder,
  name: 'append',
  onFatal: (cause) => {
    throw cause;
  },
});

let queue: { readonly write: KvWrite; resolve(): void }[] = [];
let isWriting = false;
let nextIndex = 1;

/** Resolves when the bytes are on disk; whatever queues while a sync runs goes into the next one. */
function append(value: Uint8Array): Promise<number> {
  const index = nextIndex++;
  const key = Buffer.alloc(8);
  key.writeBigUInt64BE(BigInt(index));
  return new Promise((resolve, reject) => {
    queue.push({ write: { type: 'put', key, value }, resolve: () => resolve(index) });
    if (!isWriting) writeQueued().catch(reject);
  });
}

async function writeQueued(): Promise<void> {
  isWriting = true;
  await Promise.resolve();
  while (queue.length > 0) {
    const batch = queue;
    queue = [];
    await kv.write(batch.map(({ write }) => write));
    for (const { resolve } of batch) resolve();
  }
  isWriting = false;
}

async function createToken({
  draft,
}: OperationInput<'token.create'>): Promise<WriteResult<TokenView>> {
  const accessorId = systemRandom.uuid() as AccessorId;
  const secretId = systemRandom.uuid() as SecretId;
  const index = await append(Buffer.from(JSON.stringify({ accessorId, secretId, draft })));
  const token: Token = {
    accessorId,
    secretId,
    namespace: 'default' as NamespaceName,
    description: draft.description ?? '',
    policies: [],
    roles: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    local: false,
    authMethod: undefined,
    createTime: instantOfMs(systemClock.wallMs()),
    expirationTime: undefined,
    hash: 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=',
    createIndex: index,
    modifyIndex: index,
  };
  const policies = (draft.policies ?? []).map(({ id }) => ({ id: id ?? '', name: 'bench' }));
  const value = {
    kind: 'token',
    token,
    policies,
    roles: [],
    secretHidden: false,
    expanded: undefined,
  } as const;
  return {
    value,
    meta: { index, position: { epoch: 1, seq: index }, ack: 'primary', replayed: false },
  };
}

const run = async (name: string, input: unknown) => {
  if (name !== 'token.create') throw new Error(`the append server does not know ${name}`);
  return createToken(input as OperationInput<'token.create'>);
};

const operations = {
  run,
  answer: run,
  waitForChange: () => Promise.resolve(),
  meta: () => ({ defaultPolicy: 'deny', position: { epoch: 1, seq: nextIndex } }),
} as Operations;

const logger = openJsonLog('warn', 2);

const app = createHttp({
  operations,
  operator: {} as Operator,
  settings: DEFAULT_HTTP_SETTINGS,
  defaultToken: new DefaultToken(undefined),
  clientLimits: clientLimitsOf(DEFAULT_HTTP_SETTINGS, systemClock, logger),
  node: {} as NodeInfo,
  metrics: new MetricsRegistry(),
  logger,
  clock: systemClock,
  random: systemRandom,
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${(app.server.address() as AddressInfo).port}\n`);
process.once('SIGTERM', () => {
  void app.close().then(() => kv.close());
});
