// The row of a remembered request: what was asked under its id, when, and what came of it.

import { outcomeFields, replayedOutcomeOf } from '../commands/answer-codec.ts';
import type { AppliedOutcome } from '../commands/outcome.ts';
import { type Fields, pack, requireFormat, unpack } from './layout/packing.ts';

const FORMAT = 1;

export interface RememberedRequest {
  readonly fingerprint: Uint8Array;
  readonly timeMs: number;
  readonly outcome: AppliedOutcome;
}

export function encodeRequest({ fingerprint, timeMs, outcome }: RememberedRequest): Uint8Array {
  return pack([FORMAT, fingerprint, timeMs, outcomeFields(outcome)]);
}

/** When it was remembered, and with which index: what was answered, which may be long, is not unpacked. */
export function requestAgeOf(
  value: Uint8Array,
): Pick<RememberedRequest, 'timeMs'> & Pick<AppliedOutcome, 'index'> {
  const [format, , timeMs, outcome] = unpack(value);
  requireFormat('request', format, FORMAT);
  const [, , index] = outcome as Fields;
  return { timeMs: timeMs as number, index: index as number };
}

export function decodeRequest(value: Uint8Array): RememberedRequest {
  const [format, fingerprint, timeMs, outcome] = unpack(value);
  requireFormat('request', format, FORMAT);
  return {
    fingerprint: fingerprint as Uint8Array,
    timeMs: timeMs as number,
    outcome: replayedOutcomeOf(outcome as Fields),
  };
}
