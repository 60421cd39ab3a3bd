// The refusals that a caller can meet. Each has a stable code; the status it becomes is decided in
// one table in src/http/wire/status.ts, by dialect. The message is the whole text that the caller reads.

export type AclErrorCode =
  /** The request itself cannot be read: JSON, query values, a missing id in the path. */
  | 'malformed'
  /** Read well, but against a rule of the domain: names, bounds, rules text, immutable fields. */
  | 'invalid'
  /** Path and body name different objects, or an id was given where the service chooses it. */
  | 'id-mismatch'
  /** A feature parameter was used while the feature is off, or ACLs are off. */
  | 'acl-disabled'
  /** No token where one is needed (logout). */
  | 'unauthenticated'
  /** The token is known and may not do this. */
  | 'permission-denied'
  /** The presented secret belongs to no living token. */
  | 'token-unknown'
  /** The object that a read asks for does not exist. */
  | 'not-found'
  /** The token that a read, clone or update by accessor asks for does not exist. */
  | 'token-not-found'
  /** The templated policy that is read or previewed does not exist. */
  | 'template-not-found'
  /** An update names an object that does not exist. */
  | 'update-target-missing'
  /** A name or an id that must be unique is taken. */
  | 'duplicate'
  /** `cas` named another ModifyIndex than the object has. */
  | 'cas-mismatch'
  /** An external login was refused by the validator. */
  | 'login-refused'
  | 'method-not-allowed'
  | 'body-too-large'
  | 'rate-limited'
  /** No leader, or the primary datacenter is out of reach: nothing was done. */
  | 'unavailable'
  /** A global write that came to a datacenter which is not, or not any more, the primary: nothing was done. */
  | 'not-primary'
  /** Sent into the log, but whether it took effect is not known. */
  | 'outcome-unknown'
  /** A wait that the caller asked for ended before its condition held. */
  | 'wait-timeout'
  /** A datacenter that does not exist here. */
  | 'no-such-datacenter'
  | 'no-such-endpoint'
  /** A fault of the service itself. */
  | 'internal';

/** Longer texts lose their middle, which is what the caller sent: refusals are kept, and sent on. */
const TEXT_MAX = 2048;
/** So much of the end stays: it says what is wrong. */
const TEXT_END = 512;

function shortened(text: string): string {
  if (text.length <= TEXT_MAX) return text;
  // A cut between the halves of a character leaves what some clients cannot read.
  return `${text.slice(0, TEXT_MAX - TEXT_END - 1)}…${text.slice(-TEXT_END)}`.toWellFormed();
}

/** A refusal that reaches the caller as it is, if it is not very long. Never carries a secret. */
export class AclError extends Error {
  override readonly name = 'AclError';
  readonly code: AclErrorCode;

  constructor(code: AclErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(shortened(message), options);
    this.code = code;
  }
}

/** Shorthand for the most frequent refusal. */
export function invalid(message: string): AclError {
  return new AclError('invalid', message);
}
