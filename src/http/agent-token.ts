// The tokens that agents of deployed servers are given, by the names in the path. Setup programs hand
// them to every server; nothing is done in their name here.

import { AclError, invalid } from '../acl/error.ts';

/** What they are for there (to register nodes and services, to follow the primary, to answer DNS) is not done, or by other means. */
const WITHOUT_USE: ReadonlySet<string> = new Set([
  'agent',
  'replication',
  'dns',
  'config_file_service_registration',
]);

/** Whoever sets one of these counts on it. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['default', 'The default token of a server is its setting acl.tokens.default'],
  ['agent_recovery', 'Servers have no recovery token: a bootstrap reset gives a management token'],
]);

/** Throws 'invalid' for a token that would be missed, 'not-found' for a name that is none. */
export function requireTokenWithoutUse(kind: string): void {
  if (WITHOUT_USE.has(kind)) return;
  const refusal = REFUSED.get(kind);
  if (refusal !== undefined) throw invalid(refusal);
  throw new AclError('not-found', `Token ${JSON.stringify(kind)} is unknown`);
}
