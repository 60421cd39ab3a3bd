// How a login is refused, whatever the type of its auth method.

import { AclError } from '../acl/error.ts';

/** Longest credential that a login may present, in UTF-16 units. */
const BEARER_LENGTH_MAX = 65_536;

/** A refused credential. The message never repeats any part of the credential. */
export function refused(message: string, cause?: unknown): AclError {
  return new AclError('login-refused', message, { cause });
}

/** Throws AclError('login-refused') when a bearer is empty or too long to be looked at. */
export function checkBearerLength(bearer: string): void {
  if (bearer === '') throw refused('no bearer token was given');
  if (bearer.length > BEARER_LENGTH_MAX) throw refused('the bearer token is too large');
}
