// Content hashes: BLAKE2b-256, in base64, of what an object says. Two datacenters that agree on an
// object agree on its hash; secrets, expiry, the names of links and indexes do not count. The order of
// the parts is compatibility 6.1 and never changes. Lists must be in their normal order before.

import { blake2b256 } from '../../cluster/platform/blake2b.ts';
import type { Identities } from './identities.ts';
import type { Policy } from './policy.ts';
import type { Role } from './role.ts';
import type { Unstamped } from './stamped.ts';
import type { Token } from './token.ts';

/** The content hash of a token. Its namespace does not count: ids are unique in all of them. */
export function tokenHash(
  token: Pick<Token, 'description' | 'local' | 'policies' | 'roles'> & Identities,
): string {
  const locality = token.local ? 'local' : 'global';
  const links = token.policies.join('') + token.roles.join('');
  return hashOf(token.description + locality + links + identitiesText(token));
}

/**
 * Completes a token with the hash of its content. Field by field: a spread gives every token a hidden
 * class of its own, and all code behind it becomes slower.
 */
export function withTokenHash(token: Omit<Unstamped<Token>, 'hash'>): Unstamped<Token> {
  return {
    accessorId: token.accessorId,
    secretId: token.secretId,
    namespace: token.namespace,
    description: token.description,
    policies: token.policies,
    roles: token.roles,
    serviceIdentities: token.serviceIdentities,
    nodeIdentities: token.nodeIdentities,
    templatedPolicies: token.templatedPolicies,
    local: token.local,
    authMethod: token.authMethod,
    createTime: token.createTime,
    expirationTime: token.expirationTime,
    hash: tokenHash(token),
  };
}

export function policyHash(
  policy: Pick<Policy, 'name' | 'description' | 'rules' | 'datacenters'>,
): string {
  return hashOf(policy.name + policy.description + policy.rules + policy.datacenters.join(''));
}

export function roleHash(
  role: Pick<Role, 'name' | 'description' | 'policies'> & Identities,
): string {
  return hashOf(role.name + role.description + role.policies.join('') + identitiesText(role));
}

function identitiesText(owner: Identities): string {
  let text = '';
  for (const { serviceName, datacenters } of owner.serviceIdentities) {
    text += serviceName + datacenters.join('');
  }
  for (const { nodeName, datacenter } of owner.nodeIdentities) text += nodeName + datacenter;
  for (const { templateId, templateName, variables, datacenters } of owner.templatedPolicies) {
    text += templateId + templateName + (variables?.name ?? '') + datacenters.join('');
  }
  return text;
}

function hashOf(text: string): string {
  const digest = blake2b256(Buffer.from(text, 'utf8'));
  return Buffer.from(digest.buffer, digest.byteOffset, digest.length).toString('base64');
}
