// What of a call may go to another datacenter. The secret of a local token may not: it belongs to its
// datacenter alone, and no other one could do anything with it. So it is looked at here before anything
// is sent, and what is not known here is looked for once more behind a read barrier.

import { ANONYMOUS_SECRET, type SecretId } from '../../acl/ids.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { Asked, OperationName } from '../operations.ts';
import type { Service } from '../service.ts';
import { NotAsked } from '../writes/tries.ts';

/** Operations to which the caller's token means nothing. */
const NEEDS_NO_SECRET: ReadonlySet<OperationName> = new Set([
  'bootstrap',
  'login',
  'oidc.auth-url',
  'oidc.callback',
  'replication.status',
]);

/**
 * The same as it may be sent. Rejects with 'permission-denied' when the caller's token is a local
 * one, and with 'unavailable' when it is not known here and this datacenter cannot say whether it is.
 */
export async function requireTravels<Name extends OperationName>(
  service: Service,
  datacenter: string,
  asked: Asked<Name>,
): Promise<Asked<Name>> {
  const { settings } = service;
  const { name, call } = asked;
  const secret = NEEDS_NO_SECRET.has(name) ? undefined : call.secret;
  const travelling = { ...asked, call: { ...call, secret } };
  if (secret === undefined || secret === ANONYMOUS_SECRET) return travelling;
  if (!(await bearsLocalToken(service, secret))) return travelling;
  const isRead = OPERATION_TABLE[name].kind === 'read';
  const what = isRead
    ? `and does not exist in ${datacenter}`
    : `and this is written in ${datacenter} for all datacenters: use a global token`;
  throw new NotAsked(
    isRead ? 'token-unknown' : 'permission-denied',
    `${isRead ? 'ACL not found' : 'Permission denied'}: the token is local to datacenter ${settings.datacenter} ${what}`,
  );
}

/** Whether the token with this secret is a local one. It may have been made a moment ago at another server. */
export async function bearsLocalToken(
  service: Pick<Service, 'view' | 'readBarrier'>,
  secret: SecretId,
): Promise<boolean> {
  const { view } = service;
  if (view.tokenBySecret(secret) === undefined) await service.readBarrier();
  return view.tokenBySecret(secret)?.local === true;
}
