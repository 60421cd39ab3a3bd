// What tests of the endpoints for operators share.

import type { TokenDraft } from '../../../src/acl/checks/drafts.ts';
import type { AccessorId, SecretId } from '../../../src/acl/ids.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { type Harness, newToken } from '../../service/harness.ts';
import { IDS, operatorServer } from '../operator-support.ts';

export const DIALECTS = ['consul', 'service'] as const;

export const CONFIGURATION = '/operator/autopilot/configuration';

export const UNKNOWN = '99999999-9999-4999-8999-999999999999';

export const PEER = 'DELETE /operator/raft/peer';

export const TRANSFER = 'POST /operator/raft/transfer-leader';

/** A request for each endpoint that goes through where the caller may ask it. */
export const ASKS: readonly (readonly [ask: string, right: string, body?: string])[] = [
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

/** Where there is one datacenter, nothing can be moved, and nothing was left behind. */
export const IN_VAIN = new Map([
  ['PUT /operator/primary', 400],
  ['PUT /operator/divergence?position=1.7', 404],
]);

/** An entry of the global log of another system, which made this token. */
export async function entryOfToken(
  draft: TokenDraft,
): Promise<{ entry: Uint8Array; secretId: SecretId }> {
  const elsewhere = await anotherSystem();
  const { secretId } = await newToken(elsewhere, draft);
  return { entry: await lastEntry(elsewhere), secretId };
}

/** One that deletes tokens with these ids, because their time is over there. */
export async function entryOfReaped(accessorIds: readonly AccessorId[]): Promise<Uint8Array> {
  const elsewhere = await anotherSystem();
  for (const accessorId of accessorIds) {
    await newToken(elsewhere, { accessorId, expirationTtlNs: 60_000_000_000n });
  }
  const timeMs = elsewhere.clock.wallMs() + 3_600_000;
  const change: Change = { type: 'token.reap', accessorIds };
  await elsewhere.deps.propose({ change, timeMs, cas: undefined, request: undefined });
  return lastEntry(elsewhere);
}

export async function anotherSystem(): Promise<Harness> {
  const elsewhere = (await operatorServer()).harness;
  const begin: Change = {
    type: 'global-log.begin',
    datacenter: 'dc1',
    primary: 'dc1',
    isWitness: false,
  };
  await elsewhere.deps.propose({ change: begin, timeMs: 0, cas: undefined, request: undefined });
  return elsewhere;
}

export async function lastEntry({ machine }: Harness): Promise<Uint8Array> {
  const { seq } = machine.replication()!.cursor;
  const [entry] = (await machine.globalEntries(seq - 1, 1 << 20))!;
  return entry!;
}
