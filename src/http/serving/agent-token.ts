// The tokens that agents of deployed servers are given, by the names in the path. Setup programs hand them to every
// server. One of them counts here.

import { AclError, invalid } from '../../acl/error.ts';

/**
 * `default`: it counts for requests that bring none. `unused`: what it is for there (to register nodes and services, to
 * follow the primary, to answer DNS) is not done here, or by other means. `refused`: somebody would count on it.
 */
type Meaning = 'default' | 'unused' | 'refused';

/** A client that is refused asks again by the older names, and shows the last answer alone. */
const MEANING_BY_KIND: ReadonlyMap<string, Meaning> = new Map([
  ['default', 'default'],
  ['acl_token', 'default'],
  ['agent', 'unused'],
  ['acl_agent_token', 'unused'],
  ['replication', 'unused'],
  ['acl_replication_token', 'unused'],
  ['dns', 'unused'],
  ['config_file_service_registration', 'unused'],
  ['agent_recovery', 'refused'],
  ['agent_master', 'refused'],
  ['acl_agent_master_token', 'refused'],
]);

/** Throws 'invalid' for a token that would be missed, 'not-found' for a name that is none. */
export function meaningOf(kind: string): Exclude<Meaning, 'refused'> {
  const meaning = MEANING_BY_KIND.get(kind);
  if (meaning === undefined) {
    throw new AclError('not-found', `Token ${JSON.stringify(kind)} is unknown`);
  }
  if (meaning !== 'refused') return meaning;
  throw invalid('Servers have no recovery token: a bootstrap reset gives a management token');
}
