// Where a write runs, and how often it is tried. Here if this server leads, else at the leader; and
// again, within bounds, while it is certain that nothing was done, or that doing it again changes
// nothing: a write that leaves this server has a request id for that reason. What became of it is
// either known at the end, or said to be not known.

import type { AclError } from '../../acl/error.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { Asked, OperationName, OperationOutput } from '../operations.ts';
import { LeaderAway } from '../remote.ts';
import { counted, isDenial } from '../rights/denials.ts';
import { requireOperator } from '../rights/permissions.ts';
import type { Service } from '../service.ts';
import type { WriteResult } from '../views.ts';
import { runHere } from './run-here.ts';
import { foundNothing, hasId, isUnknown, leastKnown, NotAsked, repeatableOf } from './tries.ts';

/** Between two tries, unless the leader changes before. */
const PAUSE_MS = 100;
/** How long an answer of the leader waits for this server's own state. */
export const CATCH_UP_MS = 1_000;

/** Rejects with AclError: what was refused, 'unavailable', or 'outcome-unknown'. */
export async function runWrite<Name extends OperationName>(
  service: Service,
  given: Asked<Name>,
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
      const output = await (isHere ? runHere(service, write) : runElsewhere(service, write, given));
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
    const goesOn = mayTryAgain && leftMs > 0;
    if (goesOn) await remote.leaderChanged(Math.min(leftMs, PAUSE_MS));
    if (!goesOn || given.isGone?.() === true) throw leastKnown(failure, unknown, { given, isLast });
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
