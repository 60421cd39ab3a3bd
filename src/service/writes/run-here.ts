// A write at this server, under one reign: what it was checked against must still be so, a repeat gets the answer of
// the first time, and the answer comes in time.

import { HANDLERS } from '../handlers.ts';
import type { Asked, OperationName, OperationOutput, Soon } from '../operations.ts';
import { counted } from '../rights/denials.ts';
import type { Service } from '../service.ts';
import { requireMayTellOfNothing, withLevelOfNothing } from './acknowledge.ts';
import { answerAgain, requestOwnerOf } from './answer-again.ts';
import { AS_WRITE, answeredInTime } from './answered-in-time.ts';
import { requestNameOf } from './refused-requests.ts';
import { requestMarkOf } from './request-marks.ts';
import { type Attempt, runAsLeader } from './run-as-leader.ts';
import { untilNotOvertaken } from './under-way.ts';

/** A write at this server, which leads or rejects with LeaderAway. */
export async function runHere<Name extends OperationName>(
  service: Service,
  write: Asked<Name>,
  term?: number,
): Promise<OperationOutput<Name>> {
  try {
    const { name, call } = write;
    const request = requestNameOf(write);
    const { callers, clock, settings } = service;
    const limitMs = settings.leaderWaitMs;
    const isOfStranger = (): boolean => callers.isStranger(call.secret);
    const output = await answeredInTime(clock, AS_WRITE, (onApplied) =>
      runAsLeader(service, { name, term, request, isOfStranger, onApplied }, async (attempt) => {
        const once = () => runOnce(service, write, attempt);
        const found = await untilNotOvertaken({ clock, limitMs }, once);
        return requireMayTellOfNothing(service, found);
      }),
    );
    return await withLevelOfNothing(service, call, output);
  } catch (error) {
    throw counted(service, error);
  }
}

function runOnce<Name extends OperationName>(
  service: Service,
  { name, input, call }: Asked<Name>,
  attempt: Attempt,
): Soon<Name> {
  const owned = requestOwnerOf(service, name, input, call);
  if (owned === undefined)
    return HANDLERS[name](service, input, { call, mark: undefined, attempt });
  const { id, owner, caller } = owned;
  const mark = requestMarkOf({ id, owner, operation: name, input }, call);
  const remembered = answerAgain(service, mark, { call, caller, attempt });
  if (remembered === undefined) return HANDLERS[name](service, input, { call, mark, attempt });
  attempt.isDecided = true;
  return remembered as Soon<Name>;
}
