// What reads have in common: how fresh the state must be before they look, and what their answers say
// about it.

import type { AclError } from '../acl/error.ts';
import type { TableName } from '../state/view.ts';
import type { Call } from './call.ts';
import type { Service } from './service.ts';
import type { ReadMeta, ReadResult } from './views.ts';

/**
 * Resolves when the state is as fresh as the call demands: a stale read takes what is there, all
 * others pass the read barrier; a minimal position is waited for by all. Undefined when there is
 * nothing to wait for. Rejects with 'unavailable' or 'wait-timeout'.
 */
export function freshness(
  service: Pick<Service, 'readBarrier' | 'positions'>,
  { consistency, minPosition }: Pick<Call, 'consistency' | 'minPosition'>,
): Promise<void> | undefined {
  const barrier = consistency === 'stale' ? undefined : service.readBarrier();
  if (minPosition === undefined) return barrier;
  return Promise.resolve(barrier).then(() => service.positions.reached(minPosition));
}

/**
 * The meta of an answer. Take it before reading: what changes in between then ends a blocking query
 * too soon, never too late. `object` is what src/state's watch calls the one object of a read, in
 * any letter case.
 */
export function readMetaOf(service: Service, table: TableName, object?: string): ReadMeta {
  const { knownLeader, lastContactMs } = service.leaderContact();
  return {
    index: service.view.tableIndex(table),
    knownLeader,
    lastContactMs,
    position: service.view.position(),
    watch: { table, object },
  };
}

/** A read's answer: the value, or why there is none. An error is dear to make, so it is made on demand. */
export function readResultOf<T>(
  meta: ReadMeta,
  value: T | undefined,
  refusalWhenMissing: () => AclError,
): ReadResult<T> {
  if (value !== undefined) return { value, meta };
  const { code, message } = refusalWhenMissing();
  return { refusal: { code, message }, meta };
}
