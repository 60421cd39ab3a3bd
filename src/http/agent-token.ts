// The tokens that agents of deployed servers are given, by the names in the path. Setup programs hand
// them to every server; nothing is done in their name here.

import { AclError, invalid } from '../acl/error.ts';

const DEFAULT = 'The default token of a server is its setting acl.tokens.default';
const RECOVERY = 'Servers have no recovery token: a bootstrap reset gives a management token';

/**
 * Undefined: what it is for there (to register nodes and services, to follow the primary, to answer DNS) is not
 * done here, or by other means. A text refuses one that somebody counts on. A client that is refused asks again
 * by the older names, and shows the last answer alone.
 */
const REFUSAL_BY_KIND: ReadonlyMap<string, string | undefined> = new Map([
  ['agent', undefined],
  ['acl_agent_token', undefined],
  ['replication', undefined],
  ['acl_replication_token', undefined],
  ['dns', undefined],
  ['config_file_service_registration', undefined],
  ['default', DEFAULT],
  ['acl_token', DEFAULT],
  ['agent_recovery', RECOVERY],
  ['agent_master', RECOVERY],
  ['acl_agent_master_token', RECOVERY],
]);

/** Throws 'invalid' for a token that would be missed, 'not-found' for a name that is none. */
export function requireTokenWithoutUse(kind: string): void {
  if (!REFUSAL_BY_KIND.has(kind)) {
    throw new AclError('not-found', `Token ${JSON.stringify(kind)} is unknown`);
  }
  const refusal = REFUSAL_BY_KIND.get(kind);
  if (refusal !== undefined) throw invalid(refusal);
}
