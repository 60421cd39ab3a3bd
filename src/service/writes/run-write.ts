// Where a write runs, and how often it is tried. Here if this server leads, else at the leader; and
// again, within bounds, while it is certain that nothing was done, or that doing it again changes
// nothing: a write that leaves this server has a request id for that reason. What became of it is
// either known at the end, or said to be not known.

import { AclError } from '../../acl/error.ts';
import { counted, isDenial } from '../rights/denials.ts';
import { foundNothing } from './found-nothing.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { Asked, OperationInput, OperationName, OperationOutput } from '../operations.ts';
import { requireOperator } from '../rights/permissions.ts';
import { LeaderAway } from '../remote.ts';
import { requestIdOfServer } from './request-marks.ts';
import type { Service } from '../service.ts';
import type { WriteResult } from '../views.ts';

/** Between two tries, unless the leader changes before. */
const PAUSE_MS = 100;
/** How long an answer of the leader waits for this server's own state. */
export const CATCH_UP_MS = 1_000;

/** Rejects with AclError: what was refused, 'unavailable', or 'outcome-unknown'. */
export async function runWrite<Name extends OperationName>(
  service: Service,
  given: Asked<Name>,
  runHere: (write: Asked<Name>) => Promise<OperationOutput<Name>>,
): Promise<OperationOutput<Name>> {
  const { clock, remote, settings } = service;
  // After this no other try begins; one that was begun before may take longer.
  const deadlineMs = clock.monotonicMs() + settings.leaderWaitMs;
  // Who loses the answer of a bootstrap is locked out: it can be repeated wherever it runs.
  let write = given.name === 'bootstrap' ? repeatableOf(service, given) : given;
  /** Of an earlier try: it may have taken effect, or still be on its way to the leader of that term. */
  let unknown: AclError | undefined;
  let unknownTerm = 0;
  for (;;) {
    const term = remote.leaderTerm() ?? 0;
    const isLast = unknown === undefined || term > unknownTerm;
    let failure: unknown = unknown;
    try {
      const isHere = service.leaderContact().isLeader;
      write = isHere ? write : repeatableOf(service, write);
      const output = await (isHere ? runHere(write) : runElsewhere(service, write, given));
      if (isLast || !foundNothing(output)) return output;
    } catch (error) {
      failure = error;
      if (isUnknown(error)) {
        unknown = error;
        unknownTerm = term;
      }
    }
    const leftMs = deadlineMs - clock.monotonicMs();
    const mayTryAgain = failure instanceof LeaderAway || (isUnknown(failure) && hasId(write));
    if (!mayTryAgain || leftMs <= 0) throw leastKnown(failure, unknown, { given, isLast });
    await remote.leaderChanged(Math.min(leftMs, PAUSE_MS));
  }
}

/**
 * As in operator.ts: by the settings of this server, too, a leader whose default policy allows lets nobody do by way
 * of here what operators do.
 */
async function requireOfCarried(
  service: Service,
  { name, call }: Asked<OperationName>,
): Promise<void> {
  if (OPERATION_TABLE[name].isOfOperators !== true) return;
  await service.readBarrier();
  try {
    requireOperator(service.callers.resolve(call.secret));
  } catch (error) {
    if (!isDenial(error)) throw error;
    counted(service, error);
    throw new NotAsked(error.code, error.message, { cause: error });
  }
}

/** Runs at the leader; then waits, but not for long, until this server has what the answer speaks of. */
async function runElsewhere<Name extends OperationName>(
  service: Service,
  write: Asked<Name>,
  given: Asked<Name>,
): Promise<OperationOutput<Name>> {
  await requireOfCarried(service, write);
  const { remote, indexes } = service;
  const { name, input, call } = write;
  const output = await remote.runAtLeader(name, input, call);
  if (!('meta' in output)) return output;
  const { meta } = output as WriteResult<unknown>;
  const isThere = await indexes.reached(meta.index, CATCH_UP_MS);
  // Nobody repeated anything but this server.
  const replayed = meta.replayed && hasId(given);
  return { ...output, meta: { ...meta, replayed, ...(!isThere && { isVisible: false }) } };
}

/** The same write with what makes a second try harmless, unless it has it already. */
export function repeatableOf<Name extends OperationName>(
  { random }: Service,
  write: Asked<Name>,
): Asked<Name> {
  // A bootstrap with a secret gives the same answer again; it knows no request ids.
  if (write.name === 'bootstrap') {
    const { secret } = write.input as OperationInput<'bootstrap'>;
    return secret === undefined || secret === ''
      ? { ...write, input: { secret: random.uuid() } as OperationInput<Name> }
      : write;
  }
  if (hasId(write)) return write;
  return { ...write, call: { ...write.call, requestId: requestIdOfServer(random) } };
}

/** Whether a second try of the same write changes nothing when the first took effect. */
export function hasId({ name, input, call }: Asked<OperationName>): boolean {
  if (name === 'bootstrap') return (input as OperationInput<'bootstrap'>).secret !== undefined;
  return call.requestId !== undefined && call.requestId !== '';
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
