// When a token becomes void: computed once when it is made, from a TTL or a given moment, within the
// configured bounds. A token is void from the moment after its expiration time, for every reader.
// Deleting void tokens is a duty of the leader and nothing here.

import { AclError, invalid } from '../error.ts';
import type { Token } from '../token.ts';
import { formatDuration, MAX_DURATION_NS } from '../values/duration.ts';
import {
  type Instant,
  instantMs,
  instantOfNs,
  isZeroMoment,
  type Moment,
  parseInstant,
} from '../values/instant.ts';
import type { TokenDraft } from './drafts.ts';

/** Bounds, both inclusive, on how long a token with an expiration lives. */
export interface TtlLimits {
  readonly minTtlNs: bigint;
  readonly maxTtlNs: bigint;
}

const NS_PER_MS = 1_000_000n;

/** Whether the token is void at `nowMs`: its expiration time lies strictly before. */
export function isExpired(token: Pick<Token, 'expirationTime'>, nowMs: number): boolean {
  return token.expirationTime !== undefined && instantMs(token.expirationTime) < nowMs;
}

/** The expiration time of a new token, or undefined when it has none (compatibility 3.4, 6.2). */
export function expirationOfNewToken(
  draft: Pick<TokenDraft, 'expirationTime' | 'expirationTtlNs'>,
  given: { readonly nowMs: number; readonly limits: TtlLimits },
): Instant | undefined {
  const ttlNs = draft.expirationTtlNs ?? 0n;
  if (ttlNs < 0n) {
    throw invalid(`Token Expiration TTL '${formatDuration(ttlNs)}' should be > 0`);
  }
  const moment = readExpirationTime(draft.expirationTime);
  if (ttlNs === 0n && moment === undefined) return undefined;
  if (ttlNs !== 0n && moment !== undefined) {
    throw invalid('Token Expiration TTL and Expiration Time cannot both be set');
  }
  const expirationNs = moment?.ns ?? BigInt(given.nowMs) * NS_PER_MS + ttlNs;
  requireExpirationWithin(expirationNs, given);
  return moment?.instant ?? instantOfNs(expirationNs);
}

/** Refuses an expiration time (nanoseconds since 1970) too near to now or too far from it. */
export function requireExpirationWithin(
  expirationNs: bigint,
  given: { readonly nowMs: number; readonly limits: TtlLimits },
): void {
  const { limits } = given;
  const distance = expirationNs - BigInt(given.nowMs) * NS_PER_MS;
  if (distance < 0n) throw invalid('ExpirationTime cannot be before CreateTime');
  const was = formatDuration(distance < MAX_DURATION_NS ? distance : MAX_DURATION_NS);
  if (distance > limits.maxTtlNs) {
    const max = formatDuration(limits.maxTtlNs);
    throw invalid(`ExpirationTime cannot be more than ${max} in the future (was ${was})`);
  }
  if (distance < limits.minTtlNs) {
    const min = formatDuration(limits.minTtlNs);
    throw invalid(`ExpirationTime cannot be less than ${min} in the future (was ${was})`);
  }
}

/** Reads the ExpirationTime of a body: the empty text and the zero time count as absent. */
export function readExpirationTime(text: string | undefined): Moment | undefined {
  if (text === undefined || text === '') return undefined;
  const moment = parseInstant(text);
  if (moment === undefined) {
    throw new AclError(
      'malformed',
      `Token decoding failed: parsing time "${text}": ExpirationTime is not an RFC 3339 time`,
    );
  }
  return isZeroMoment(moment) ? undefined : moment;
}
