// The names of things: which characters and lengths each kind may have, with the refusals that say
// so, and the key under which a name is looked up. Whether a name is taken is the state's question.

import { invalid } from '../error.ts';
import { GLOBAL_READ_ONLY_ID, type NamespaceName } from '../ids.ts';

/** The one policy name with a slash. Nobody else may take it, or anything under `builtin/`. */
export const GLOBAL_READ_ONLY_NAME = 'builtin/global-read-only';

const POLICY_NAME_MAX = 128;
const IDENTITY_NAME_MAX = 256;
const WORD = /^[A-Za-z0-9_-]+$/;
const ROLE_NAME = /^[A-Za-z0-9_-]{1,256}$/;
const AUTH_METHOD_NAME = /^[A-Za-z0-9_-]{1,128}$/;
const IDENTITY_NAME = /^[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?$/;
const DATACENTER_NAME = /^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$/;
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * The key of a name: names of policies, roles and auth methods are looked up, and unique, in any
 * letter case. Only A to Z are lowered: names have no other letters, and a few letters of other
 * alphabets would turn into ASCII ones, so that a text that no name equals would find one.
 */
export function nameKey(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** Refuses a policy name (decisions 3). `id` is the policy that bears or wants it. */
export function requirePolicyName(name: string, id: string): void {
  if (name === GLOBAL_READ_ONLY_NAME && id === GLOBAL_READ_ONLY_ID) return;
  if (name === '') throw invalid('Invalid Policy: no Name is set');
  if (name.length > POLICY_NAME_MAX) {
    throw invalid('Invalid Policy: invalid Name. Length must be greater than 0 and less than 128');
  }
  if (name.startsWith('/') || name.startsWith('builtin/')) {
    throw invalid("Invalid Policy: invalid Name. Names cannot be prefixed with '/' or 'builtin/'");
  }
  if (!WORD.test(name)) {
    throw invalid(
      "Invalid Policy: invalid Name. Only alphanumeric characters, '-' and '_' are allowed",
    );
  }
}

/** Whether a role may bear the name. A login's computed policy name must pass the same pattern. */
export function isRoleName(name: string): boolean {
  return ROLE_NAME.test(name);
}

export function requireRoleName(name: string): void {
  if (name === '') throw invalid('Invalid Role: no Name is set');
  if (!isRoleName(name)) {
    throw invalid(
      "Invalid Role: invalid Name. Only alphanumeric characters, '-' and '_' are allowed",
    );
  }
}

/** Whether a datacenter may be called that. */
export function isDatacenterName(name: string): boolean {
  return DATACENTER_NAME.test(name);
}

export function requireAuthMethodName(name: string): void {
  if (name === '') throw invalid('Invalid Auth Method: no Name is set');
  if (!AUTH_METHOD_NAME.test(name)) {
    throw invalid(
      "Invalid Auth Method: invalid Name. Only alphanumeric characters, '-' and '_' are allowed",
    );
  }
}

/** The rule for the names of services and nodes in identities: one rule for both. */
export function isIdentityName(name: string): boolean {
  return name.length <= IDENTITY_NAME_MAX && IDENTITY_NAME.test(name);
}

/** Whether a namespace may be called so: a DNS label in lower case. */
export function isNamespaceName(name: string): name is NamespaceName {
  return DNS_LABEL.test(name);
}

/** Refuses what is no DNS label in lower case; gives the name as such. */
export function requireNamespaceName(name: string): NamespaceName {
  if (name === '') throw invalid('Invalid Namespace: no Name is set');
  if (!isNamespaceName(name)) {
    throw invalid(
      "Invalid Namespace: invalid Name. Only lowercase alphanumeric characters and '-' are allowed, " +
        "at most 63 of them, and no '-' first or last",
    );
  }
  return name;
}
