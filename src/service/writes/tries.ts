// What is known of the tries of a write: which may be made again, and what is told when the last one failed.

import { AclError } from '../../acl/error.ts';
import { isGiven } from '../../acl/values/given.ts';
import type { ServiceDeps } from '../deps.ts';
import type { Asked, OperationInput, OperationName } from '../operations.ts';
import type { WriteResult } from '../views.ts';
import { requestIdOfServer } from './request-marks.ts';

/** The same write with what makes a second try harmless, unless it has it already. */
export function repeatableOf<Name extends OperationName>(
  { random }: Pick<ServiceDeps, 'random'>,
  write: Asked<Name>,
): Asked<Name> {
  // A bootstrap with a secret gives the same answer again; it knows no request ids.
  if (write.name === 'bootstrap') {
    const { secret } = write.input as OperationInput<'bootstrap'>;
    if (isGiven(secret)) return write;
    return { ...write, input: { secret: random.uuid() } as OperationInput<Name> };
  }
  if (hasId(write)) return write;
  return { ...write, call: { ...write.call, requestId: requestIdOfServer(random) } };
}

/** Whether a second try of the same write changes nothing when the first took effect. */
export function hasId({ name, input, call }: Asked<OperationName>): boolean {
  if (name === 'bootstrap') return isGiven((input as OperationInput<'bootstrap'>).secret);
  return isGiven(call.requestId);
}

export function isUnknown(error: unknown): error is AclError {
  return error instanceof AclError && error.code === 'outcome-unknown';
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AclError && error.code === 'unavailable';
}

/**
 * Whose request it is cannot be told where nobody has that secret: it was not looked for among those that were done.
 */
function isOfNobody(error: unknown): boolean {
  return error instanceof AclError && error.code === 'token-unknown';
}

/** A refusal of this server before it asked anybody. */
export class NotAsked extends AclError {}

/** Throws NotAsked where nobody waits for it any more: nobody reads that, and nothing was done. */
export function requireAwaited({ isGone }: Asked<OperationName>): void {
  if (isGone?.() === true) throw new NotAsked('unavailable', 'whoever asked for it is gone');
}

/** Whether a failed try says nothing of what became of earlier ones. */
export function saysNothingOfEarlier(error: unknown): boolean {
  return error instanceof NotAsked || isMoved(error) || isUnavailable(error) || isOfNobody(error);
}

/** Nothing was done by this try: the primary is another datacenter by now. */
export function isMoved(error: unknown): error is AclError {
  return error instanceof AclError && error.code === 'not-primary';
}

/** What is known of the tries of a write. */
export interface Tries {
  readonly given: Asked<OperationName>;
  /** Whoever refused the last try has seen to it that no earlier one takes effect any more. */
  readonly isLast: boolean;
}

/**
 * What is told of a write after its last try failed: `unknown`, if what became of an earlier one is not
 * known and the last one says nothing of it. A server without room for it does not, nor one that knows no
 * token with its secret any more: that token may have been deleted behind the write. One that refuses it does
 * not where the earlier try may still be on its way: it would find another state than this one, and take
 * effect. One whose datacenter is not primary any more does not either; the next primary can tell by an id of
 * the client, and for whoever goes on to ask it `unknown` is the cause of the refusal.
 */
export function leastKnown(
  failure: unknown,
  unknown: AclError | undefined,
  { given, isLast }: Tries,
): unknown {
  if (unknown === undefined) return failure;
  if (isMoved(failure) && hasId(given)) {
    return new AclError(failure.code, failure.message, { cause: unknown });
  }
  return isLast && !saysNothingOfEarlier(failure) ? failure : unknown;
}

/** Of a write that goes on to another primary: an earlier try of which it is not known what became of it. */
export function unknownBehind(error: unknown): AclError | undefined {
  const cause = isMoved(error) ? error.cause : undefined;
  return isUnknown(cause) ? cause : undefined;
}

/**
 * There was nothing to delete: that is not in the log, and keeps no earlier try from deleting what somebody
 * makes in the meantime. False for one that was remembered.
 */
export function foundNothing(output: unknown): output is WriteResult<boolean> {
  return saysNothingThere(output) && !output.meta.replayed;
}

/** There was nothing to delete: found now, or remembered, as the leader of that term alone does. */
export function saysNothingThere(output: unknown): output is WriteResult<boolean> {
  const isWritten = typeof output === 'object' && output !== null && 'meta' in output;
  return isWritten && (output as WriteResult<unknown>).value === false;
}
