// What the audit log says of one request: who did what to which object, from where, and what came of it. It
// holds no secret: not the token's own, and nothing that a caller wrote in a wrong place.

import type { AclErrorCode } from '../acl/error.ts';

/**
 * `asked`: it is about to be carried out (`audit.required` alone). `answered`: what came of it. `begun`: the
 * server goes on with this file, or begins it. `continued`: a file that was full was put aside.
 */
export type AuditEvent = 'asked' | 'answered' | 'begun' | 'continued';

export interface AuditObject {
  readonly kind: string;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
}

/** Fields that are undefined are left out of the line. */
export interface AuditRecord {
  readonly event: AuditEvent;
  readonly operation?: string;
  /** The accessor id of whoever asks; undefined where this server knows no token with that secret. */
  readonly accessorId?: string | undefined;
  readonly client?: string | undefined;
  readonly requestId?: string | undefined;
  /** As the request names it. */
  readonly datacenter?: string | undefined;
  /** Likewise, in its query or a header. */
  readonly namespace?: string | undefined;
  readonly object?: AuditObject | undefined;
  /** What the object was made from, such as the auth method of a login. */
  readonly from?: AuditObject | undefined;
  /** What an operator asked for, where it is about no object, as far as it may be repeated. */
  readonly input?: Readonly<Record<string, unknown>> | undefined;
  /** `nothing`: there was nothing to delete, or it had changed. */
  readonly outcome?: 'done' | 'nothing' | 'refused' | 'unknown';
  readonly error?: AclErrorCode;
  /** Of the datacenter, behind the change. */
  readonly index?: number | undefined;
  /** `epoch.seq` of the global log. */
  readonly position?: string | undefined;
  /** Of the object as it is now. */
  readonly hash?: string | undefined;
  /** So many more like it came within the minute before. */
  readonly repeated?: number;
  /** So many records before this one could not be written. */
  readonly lost?: number;
  /** The last line before this one is a piece of a record: the server was ended while it was written. */
  readonly torn?: true;
  /** The link of the last whole record before this one. */
  readonly previous?: string;
}
