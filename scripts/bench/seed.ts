// Fills a data folder with tokens through the node's own write path, without HTTP: every command is
// encoded, logged, applied and synced as in service.

import type { AccessorId, SecretId } from '../../src/acl/ids.ts';
import { openNode } from '../../src/node/node.ts';
import { readSettings } from '../../src/node/settings/settings.ts';
import { openSystemPlatform } from '../../src/platform-node/system-platform.ts';
import { type Call, PLAIN_CALL } from '../../src/service/call.ts';

export const MANAGEMENT_SECRET = '11111111-2222-4333-8444-555555555555';

/** Tokens are numbered: the n-th has these ids, spread over the whole range of ids. */
export function accessorOf(serial: number): string {
  return idOf(serial, 'a');
}

export function secretOf(serial: number): string {
  return idOf(serial, 'b');
}

function idOf(serial: number, kind: string): string {
  const spread = Math.imul(serial, 0x9e3779b1) >>> 0;
  const low = serial.toString(16).padStart(12, '0');
  return `${spread.toString(16).padStart(8, '0')}-${kind}000-4000-8000-${low}`;
}

const CALL: Call = { ...PLAIN_CALL, secret: MANAGEMENT_SECRET as SecretId };

const IN_FLIGHT = 1024;
const POLICY_RULES =
  'service "web" { policy = "write" }\nservice_prefix "" { policy = "read" }\nkey_prefix "app/" { policy = "read" }';

/** The name of the policy that every token has. */
export const BENCH_POLICY = 'bench';

/** Creates `count` tokens, each linked to one policy. Resolves with how many a second that were. */
export async function seed(dataFolder: string, count: number): Promise<number> {
  const settings = readSettings({
    flags: {
      'data-dir': dataFolder,
      'node-name': 'bench',
      'ports-http': '0',
      'ports-cluster': '-1',
      'log-level': 'error',
      'acl-tokens-initial-management': MANAGEMENT_SECRET,
    },
    files: [],
    environment: {},
  });
  const node = await openNode({
    settings,
    platform: openSystemPlatform(settings),
    version: 'bench',
  });
  const draft = { name: BENCH_POLICY, rules: POLICY_RULES };
  const { value } = await node.operations.run('policy.create', { draft }, CALL);
  const policies = [{ id: value.policy.id }];
  const startedAt = performance.now();
  let next = 0;
  const createSome = async (): Promise<void> => {
    while (next < count) {
      const serial = next++;
      const ids = { accessorId: accessorOf(serial) as AccessorId, secretId: secretOf(serial) };
      const token = { ...ids, description: `token ${serial} of the benchmark`, policies };
      await node.operations.run('token.create', { draft: token }, CALL);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, createSome));
  const seconds = (performance.now() - startedAt) / 1000;
  await node.close();
  return count / seconds;
}
