// Refusals for want of rights. They are counted where they are decided.

import { AclError, type AclErrorCode } from '../../acl/error.ts';
import type { Metrics } from '../metrics.ts';

const DENIALS: ReadonlySet<AclErrorCode> = new Set([
  'permission-denied',
  'token-unknown',
  'unauthenticated',
  'login-refused',
]);

export function isDenial(error: unknown): error is AclError {
  return error instanceof AclError && DENIALS.has(error.code);
}

/** The error itself, counted if it is one of them. */
export function counted({ metrics }: { readonly metrics: Metrics }, error: unknown): unknown {
  if (isDenial(error)) metrics.count('acl.denied', { reason: error.code });
  return error;
}
