// What each type of auth method offers: the check on write, the attribute names for checking
// selectors and templates, and the validation of a credential at login.

import type { AuthMethod } from '../acl/auth-method.ts';
import type { AttributeNames, Identity } from './identity.ts';

export interface AuthMethodValidator {
  /**
   * Checks the Config, and the namespace rules by it, before they are stored, contacting the outside where
   * compatibility.md 7.2 says so.
   * Rejects with AclError('invalid'), text `Invalid Auth Method: …`.
   */
  checkConfig(method: AuthMethod): Promise<void>;
  /** Throws AclError('invalid') when the stored Config does not decode. */
  attributeNames(method: AuthMethod): AttributeNames;
  /**
   * What the Config says of the namespaces in which tokens are made, as a text that is the same where the same is said;
   * '' where it says nothing. Left out where it cannot. Throws AclError('invalid') when the Config does not decode.
   */
  mappingText?(method: Pick<AuthMethod, 'config'>): string;
  /**
   * Validates a credential. Rejects with AclError: `login-refused` when the credential is not
   * accepted, `unavailable` when whoever must be asked gives no answer. Texts hold no secret.
   */
  validate(method: AuthMethod, bearerToken: string): Promise<Identity>;
}
