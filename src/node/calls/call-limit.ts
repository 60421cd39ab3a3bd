// How long a server waits for what another one does for it, and which place that takes.

import type { Call } from '../../service/call.ts';
import type { Errand } from '../../service/datacenters/federation.ts';
import { OPERATION_TABLE, type OperationFacts } from '../../service/operation-table.ts';
import type { OperationName } from '../../service/operations.ts';
import { isReadOfOperators } from '../../service/operators/operator-table.ts';
import { ackLimitMs } from '../../service/writes/acknowledge.ts';
import type { CallKind } from './call-places.ts';

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

/**
 * By what it does and what its caller asked for; what is of a later release counts as a write. So does what operators
 * look at: whoever may read anything must not keep them from it.
 */
export function kindOfCall({
  name,
  call,
}: {
  readonly name: string;
  readonly call: Pick<Call, 'ack' | 'ackTimeoutMs'>;
}): CallKind {
  if (factsOf(name)?.kind === 'read') return 'read';
  if (factsOf(name)?.asksProvider === true) return 'outside';
  const { ack = 'primary', ackTimeoutMs } = call;
  return ack === 'primary' && ackTimeoutMs === undefined ? 'write' : 'late';
}

/** Whether what has that name changes nothing; false for what is of a later release. */
export function isReadOf(name: string): boolean {
  return isReadOfOperators(name) || factsOf(name)?.kind === 'read';
}

function factsOf(name: string): OperationFacts | undefined {
  return Object.hasOwn(OPERATION_TABLE, name) ? OPERATION_TABLE[name as OperationName] : undefined;
}
