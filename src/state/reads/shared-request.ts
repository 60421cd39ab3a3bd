// Remembered requests of what all datacenters have. Who follows entry by entry remembers them with their entries;
// who takes a snapshot of the primary in gets them with it: a repeat changes nothing where that one is primary
// later.

import { AssertionError } from '../../../cluster/base/assert.ts';
import { isOfLocalToken } from '../commands/outcome.ts';
import { decodeRequest, encodeRequest, type RememberedRequest } from '../rows/request-row.ts';
import { ROW } from '../rows/tables.ts';

export interface ArrivedRequest {
  readonly key: Uint8Array;
  readonly request: RememberedRequest;
}

/** Behind the kind. */
const KEY_BYTES = 32;

/** Whether the primary sends the row along: no local token is in it. */
export function isSentRequest(key: Uint8Array, value: Uint8Array): boolean {
  return key[0] === ROW.request && isShared(decodeRequest(value).outcome);
}

/** What came in such a row; undefined for one that may not come, or is none. */
export function arrivedRequest(key: Uint8Array, value: Uint8Array): ArrivedRequest | undefined {
  if (key[0] !== ROW.request || key.length !== 1 + KEY_BYTES) return undefined;
  const request = requestOrNone(value);
  if (request === undefined || !isShared(request.outcome)) return undefined;
  return { key: key.subarray(1), request };
}

/** The row of a request that came, in a state of that index: from then on it is remembered here. */
export function requestRow(request: RememberedRequest, index: number): Uint8Array {
  return encodeRequest({ ...request, outcome: { ...request.outcome, index } });
}

function isShared({ answer }: RememberedRequest['outcome']): boolean {
  return !isOfLocalToken(answer);
}

/** A format that is not known here ends the process. */
function requestOrNone(value: Uint8Array): RememberedRequest | undefined {
  try {
    return decodeRequest(value);
  } catch (error) {
    if (error instanceof AssertionError) throw error;
    return undefined;
  }
}
