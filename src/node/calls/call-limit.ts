// How long a server waits for what another one does for it.

import type { Errand } from '../../service/datacenters/federation.ts';
import { OPERATION_TABLE } from '../../service/operation-table.ts';
import type { OperationName } from '../../service/operations.ts';
import { ackLimitMs } from '../../service/writes/acknowledge.ts';

/** An operation that asks an identity provider takes its time; beyond this nobody waits for it. */
export const CALL_MAX_MS = 30_000;

/**
 * A write has besides what it may wait for other datacenters: then it is answered, whatever they say.
 * `ackTimeoutMs` is what counts where the call does not say so.
 */
export function callLimitMs(
  { name, call }: Pick<Errand, 'name' | 'call'>,
  ackTimeoutMs: number,
): number {
  if (isReadOf(name)) return CALL_MAX_MS;
  return CALL_MAX_MS + Math.ceil(ackLimitMs(call, { ackTimeoutMs }));
}

/** Whether the operation of that name changes nothing; false for one of a later release. */
export function isReadOf(name: string): boolean {
  return (
    Object.hasOwn(OPERATION_TABLE, name) && OPERATION_TABLE[name as OperationName].kind === 'read'
  );
}
