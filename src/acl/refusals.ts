// The refusals that more than one place gives: the routes, the checks here, the service before it proposes,
// and the state when it applies. One function each, so that all say the same words with the same code.
// Texts are compatibility 1.5, 3.2 to 3.5, 4.1 to 4.3. Refusals of one place stand where they are given.

import { AclError, invalid } from './error.ts';

/** What a path and a body can both name. */
export type AddressedKind =
  | 'Policy ID'
  | 'Token Accessor ID'
  | 'Role ID'
  | 'BindingRule ID'
  | 'AuthMethod Name'
  | 'Namespace Name';

/**
 * Refuses a body that names another object than the path. The comparison is literal, letter case
 * included; an empty or absent name in the body agrees with every path.
 */
export function requireSameAddress(
  kind: AddressedKind,
  addresses: { readonly path: string; readonly body: string | undefined },
): void {
  if (addresses.body === undefined || addresses.body === '') return;
  if (addresses.body === addresses.path) return;
  throw new AclError('id-mismatch', `${kind} in URL and payload do not match`);
}

/** What every request is told while ACLs are off, whatever else may be wrong with it. */
export function aclDisabled(): AclError {
  return new AclError('acl-disabled', 'ACL support disabled');
}

export function unknownPolicyName(name: string): AclError {
  return invalid(`No such ACL policy with name "${name}"`);
}

export function unknownPolicyId(id: string): AclError {
  return invalid(`No such ACL policy with ID "${id}"`);
}

/** A role's link by id is refused in other words than a token's. */
export function unknownPolicyIdOfRole(id: string): AclError {
  return invalid(`Failed to apply role upsert request: No such policy with ID: ${id}`);
}

export function unknownRoleName(name: string): AclError {
  return invalid(`No such ACL role with name "${name}"`);
}

export function unknownRoleId(id: string): AclError {
  return invalid(`No such ACL role with ID "${id}"`);
}

export function unknownAuthMethod(name: string): AclError {
  return invalid(`cannot find auth method with name "${name}"`);
}

export function unknownNamespace(name: string): AclError {
  return invalid(`Namespace "${name}" does not exist`);
}

/** A login's token is changed, but its auth method was deleted. */
export function authMethodGone(name: string): AclError {
  return invalid(`Failed to apply token write request: No such auth method with Name: ${name}`);
}

export function tokenIdInUse(field: 'AccessorID' | 'SecretID'): AclError {
  return new AclError('duplicate', `Invalid Token: ${field} is already in use`);
}

export function tokenSecretChanged(): AclError {
  return invalid("Changing a token's SecretID is not permitted");
}

export function tokenLocalityChanged(accessorId: string): AclError {
  return invalid(`Cannot toggle local mode of ${accessorId}`);
}

export function tokenMethodChanged(accessorId: string): AclError {
  return invalid(`Cannot change AuthMethod of ${accessorId}`);
}

export function tokenExpirationChanged(accessorId: string): AclError {
  return invalid(`Cannot change expiration time of ${accessorId}`);
}

export function anonymousTokenDeleted(): AclError {
  return invalid('Delete operation not permitted on the anonymous token');
}

export function policyIdChosen(): AclError {
  return new AclError('id-mismatch', 'Cannot specify the ID when creating a new policy');
}

export function builtinRulesChanged(policyName: string): AclError {
  return invalid(`Changing the Rules for the builtin ${policyName} policy is not permitted`);
}

export function builtinDatacentersChanged(policyName: string): AclError {
  return invalid(`Changing the Datacenters of the ${policyName} policy is not permitted`);
}

export function authMethodTypeChanged(): AclError {
  return invalid('the Type field of an Auth Method is immutable');
}

export function bindingRuleMethodChanged(): AclError {
  return invalid('the AuthMethod field of an Binding Rule is immutable');
}

export function bootstrapSecretInUse(): AclError {
  return new AclError(
    'duplicate',
    'Provided token cannot be used because a token with that secret already exists.',
  );
}

export function bootstrapDone(bootstrapIndex: number): AclError {
  return new AclError(
    'permission-denied',
    `Permission denied: ACL bootstrap no longer allowed (reset index: ${bootstrapIndex})`,
  );
}

/** `given` says which reset index there is. */
export function wrongResetIndex(given: string, bootstrapIndex: number): AclError {
  return invalid(`Invalid bootstrap reset index (${given}, reset index: ${bootstrapIndex})`);
}

export function requestIdInUse(): AclError {
  return invalid('The request id was used before, for another request');
}

/** Deployed clients match on the letter case, which differs between create and update. */
export function policyNameTaken(name: string, on: 'create' | 'update'): AclError {
  const words = on === 'create' ? 'A Policy with Name' : 'A policy with name';
  return new AclError('duplicate', `Invalid Policy: ${words} "${name}" already exists`);
}

/** Deployed clients match on the letter case, which differs between create and update. */
export function roleNameTaken(name: string, on: 'create' | 'update'): AclError {
  const words = on === 'create' ? 'A Role with Name' : 'A role with name';
  return new AclError('duplicate', `Invalid Role: ${words} "${name}" already exists`);
}

export function tokenToUpdateMissing(accessorId: string): AclError {
  return new AclError('update-target-missing', `Cannot find token "${accessorId}"`);
}

export function policyToUpdateMissing(id: string): AclError {
  return new AclError('update-target-missing', `cannot find policy ${id}`);
}

export function roleToUpdateMissing(id: string): AclError {
  return new AclError('update-target-missing', `cannot find role ${id}`);
}

export function bindingRuleToUpdateMissing(id: string): AclError {
  return new AclError('update-target-missing', `cannot find binding rule ${id}`);
}

export function namespaceToUpdateMissing(name: string): AclError {
  return new AclError('update-target-missing', `cannot find namespace ${name}`);
}

export function tokenMissing(): AclError {
  return new AclError('token-not-found', 'token does not exist: ACL not found');
}

/** Reads say `has`, clones say `is`. */
export function tokenExpired(on: 'read' | 'clone'): AclError {
  const verb = on === 'read' ? 'has' : 'is';
  return new AclError('token-not-found', `token ${verb} expired: ACL not found`);
}

export type ReadableKind = 'policy' | 'role' | 'binding rule' | 'auth method' | 'namespace';

/** The object that a read asks for does not exist. `namespace` where the caller named one. */
export function objectMissing(kind: ReadableKind, namespace: string | undefined): AclError {
  const what =
    namespace === undefined
      ? `Requested ${kind} does not exist`
      : `Requested ${kind} not found in namespace ${namespace}`;
  return new AclError('not-found', `${what}: ACL not found`);
}

export function unknownTemplate(name: string): AclError {
  return new AclError('template-not-found', `Invalid templated policy Name: ${name}`);
}
