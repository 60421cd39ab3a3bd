// Which status a refusal becomes. One total table for each dialect, so that a new code does not
// compile until both say what it is. The text of a refusal never depends on the dialect.

import type { AclErrorCode } from '../../acl/error.ts';

/**
 * `consul` gives the codes that deployed clients match on, odd as some are; `service` gives those
 * that plain HTTP would.
 */
export type Dialect = 'service' | 'consul';

interface Statuses {
  readonly service: number;
  readonly consul: number;
}

const STATUS_BY_CODE: Record<AclErrorCode, Statuses> = {
  malformed: { service: 400, consul: 400 },
  invalid: { service: 400, consul: 500 },
  'id-mismatch': { service: 400, consul: 400 },
  'acl-disabled': { service: 401, consul: 401 },
  unauthenticated: { service: 401, consul: 401 },
  'permission-denied': { service: 403, consul: 403 },
  'token-unknown': { service: 403, consul: 403 },
  'not-found': { service: 404, consul: 404 },
  'token-not-found': { service: 404, consul: 403 },
  'template-not-found': { service: 404, consul: 400 },
  'update-target-missing': { service: 404, consul: 500 },
  duplicate: { service: 409, consul: 500 },
  'cas-mismatch': { service: 409, consul: 409 },
  'login-refused': { service: 403, consul: 500 },
  'method-not-allowed': { service: 405, consul: 405 },
  'body-too-large': { service: 413, consul: 413 },
  'rate-limited': { service: 429, consul: 429 },
  unavailable: { service: 503, consul: 500 },
  'not-primary': { service: 503, consul: 500 },
  'outcome-unknown': { service: 504, consul: 500 },
  'wait-timeout': { service: 504, consul: 504 },
  'no-such-datacenter': { service: 400, consul: 500 },
  'no-such-endpoint': { service: 404, consul: 404 },
  internal: { service: 500, consul: 500 },
};

/** A code that only a later release knows, which came from a server of it, is that of a fault. */
export function statusOf(code: AclErrorCode, dialect: Dialect): number {
  const statuses: Statuses | undefined = STATUS_BY_CODE[code];
  return (statuses ?? STATUS_BY_CODE.internal)[dialect];
}

/** The words of a status, for RFC 9457. */
export function titleOf(status: number): string {
  return TITLES[status] ?? 'Error';
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};
