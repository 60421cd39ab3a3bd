// The commands that enter the log. All is decided before: ids, times, secrets, hashes, defaults.
// Applying one asks nothing but the state. A type is never removed or given another meaning: the
// numbers in command-codec.ts are tombstoned instead.

import type { AuthMethod } from '../../acl/auth-method.ts';
import type { BindingRule } from '../../acl/binding-rule.ts';
import type { AccessorId, BindingRuleId, NamespaceName, PolicyId, RoleId } from '../../acl/ids.ts';
import type { Namespace } from '../../acl/namespace.ts';
import type { Policy } from '../../acl/policy.ts';
import type { Role } from '../../acl/role.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import type { Token } from '../../acl/token.ts';
import type { GlobalCursor, Position } from '../global-log/cursor.ts';
import type { Datacenter, EpochStart } from '../global-log/replication.ts';

/**
 * Whether the object must be new or must exist; `either` is the upsert of auth methods. With
 * `create-drawn` the proposing leader drew all ids of the new object at random, just now.
 */
export type Presence = 'create' | 'create-drawn' | 'update' | 'either';

export type Change =
  | {
      readonly type: 'token.set';
      readonly presence: 'create' | 'create-drawn' | 'update';
      readonly token: Unstamped<Token>;
    }
  | { readonly type: 'token.delete'; readonly accessorId: AccessorId }
  /** Deletes those of the named tokens that are void at the command's time; the others stay. */
  | { readonly type: 'token.reap'; readonly accessorIds: readonly AccessorId[] }
  | {
      readonly type: 'policy.set';
      readonly presence: 'create' | 'update';
      readonly policy: Unstamped<Policy>;
    }
  | { readonly type: 'policy.delete'; readonly id: PolicyId }
  | {
      readonly type: 'role.set';
      readonly presence: 'create' | 'update';
      readonly role: Unstamped<Role>;
    }
  | { readonly type: 'role.delete'; readonly id: RoleId }
  | {
      readonly type: 'auth-method.set';
      readonly presence: 'either';
      readonly method: Unstamped<AuthMethod>;
    }
  /** Deletes the method and its binding rules; its tokens are void from then on, and reaped. */
  | {
      readonly type: 'auth-method.delete';
      readonly namespace: NamespaceName;
      readonly name: string;
    }
  | {
      readonly type: 'binding-rule.set';
      readonly presence: 'create' | 'update';
      readonly rule: Unstamped<BindingRule>;
    }
  | { readonly type: 'binding-rule.delete'; readonly id: BindingRuleId }
  | {
      readonly type: 'namespace.set';
      readonly presence: 'either' | 'create' | 'update';
      readonly namespace: Unstamped<Namespace>;
    }
  /** Refused while the namespace still holds an object. */
  | { readonly type: 'namespace.delete'; readonly name: NamespaceName }
  /** The first management token. `resetIndex` allows it again when it equals the last bootstrap's index. */
  | {
      readonly type: 'bootstrap';
      readonly token: Unstamped<Token>;
      readonly resetIndex: number | undefined;
    }
  /**
   * Makes the built-ins that are missing (policies, anonymous token, default namespace), and the initial management
   * token where there was no bootstrap yet.
   */
  | {
      readonly type: 'ensure-builtins';
      readonly policies: readonly Unstamped<Policy>[];
      readonly tokens: readonly Unstamped<Token>[];
      readonly namespace: Unstamped<Namespace>;
    }
  /** Forgets remembered request ids that are older than ten minutes at the command's time. */
  | { readonly type: 'request-id.trim'; readonly keys: readonly Uint8Array[] }
  /** A pending external login (OIDC): kept until it is used or too old. */
  | {
      readonly type: 'pending-login.set';
      readonly key: string;
      readonly value: Uint8Array;
      readonly expiresMs: number;
    }
  | { readonly type: 'pending-login.delete'; readonly keys: readonly string[] }
  /** Another state begins to come in, out of sight; one that was coming in before is dropped. */
  | { readonly type: 'restore.begin'; readonly id: string }
  /** The next rows of it, as row-parser.ts reads them. */
  | {
      readonly type: 'restore.chunk';
      readonly id: string;
      /** From 1 on, without a gap. */
      readonly number: number;
      readonly rows: Uint8Array;
    }
  /** All rows are there: it becomes the state, if it is what is said here. */
  | {
      readonly type: 'restore.commit';
      readonly id: string;
      readonly chunkCount: number;
      /** See `chained` in snapshot-format.ts: over the rows of all chunks. */
      readonly chain: Uint8Array;
      /** The meta row of the state that is restored. */
      readonly metaRow: Uint8Array;
    }
  /** Drops what came in, if it is this one. */
  | { readonly type: 'restore.abandon'; readonly id: string }
  /** The datacenter has a name and a global log from here on. Beginning again changes nothing. */
  | {
      readonly type: 'global-log.begin';
      readonly datacenter: string;
      readonly primary: string;
      readonly isWitness: boolean;
    }
  /** The next entries of the primary, in order. Answered by a verdict. */
  | {
      readonly type: 'global-log.apply';
      /** Of the log that they were taken from, at that time. */
      readonly epoch: number;
      /** Where this datacenter is. */
      readonly from: GlobalCursor;
      readonly entries: readonly Uint8Array[];
      /** Where it is after them. */
      readonly to: GlobalCursor;
    }
  /** Drops kept entries up to and with this seq, and unused ones, some at a time. */
  | { readonly type: 'global-log.trim'; readonly upTo: number }
  /**
   * The global objects of another datacenter begin to come in, out of sight. Answered by a verdict, as all of these.
   */
  | {
      readonly type: 'global-snapshot.begin';
      readonly id: string;
      /** See global-log/global-snapshot.ts. */
      readonly header: Uint8Array;
    }
  /** The next piece of it. */
  | {
      readonly type: 'global-snapshot.chunk';
      readonly id: string;
      /** From 1 on, without a gap. */
      readonly number: number;
      readonly rows: Uint8Array;
    }
  /**
   * Copies local rows as they are now. The first one has no keys: from it on, what changes goes into both
   * states, and the proposer lists what there is.
   */
  | {
      readonly type: 'global-snapshot.carry';
      readonly id: string;
      /** From 1 on, without a gap. */
      readonly number: number;
      readonly keys: readonly Uint8Array[];
      /** There are no others. */
      readonly isLast: boolean;
    }
  /** It becomes the state. Giving it up is `restore.abandon`. */
  | { readonly type: 'global-snapshot.commit'; readonly id: string }
  /** Asks for the promise to take nothing of a lower epoch any more. */
  | {
      readonly type: 'epoch.promise';
      readonly epoch: number;
      readonly candidate: string;
      /** How far the candidate is. */
      readonly at: Position;
    }
  /** This datacenter is the primary from here on, by the promises of these. */
  | {
      readonly type: 'epoch.start';
      readonly epoch: number;
      readonly promises: readonly string[];
      /** An operator takes the loss of what others may have. */
      readonly isForced: boolean;
      /** This datacenter stands on a fork, and what it set apart is of the log again. */
      readonly isFromFork: boolean;
    }
  /** A log with these epochs was heard of, the last of which is later than any here. */
  | { readonly type: 'epoch.fence'; readonly epochs: readonly EpochStart[] }
  /** Forgets what this datacenter wrote in that epoch and no later one has, some at a time. */
  | { readonly type: 'divergent.discard'; readonly epoch: number; readonly upTo: number }
  /** Forgets one of them. */
  | { readonly type: 'divergent.drop'; readonly epoch: number; readonly seq: number }
  /** There are these datacenters from here on. */
  | {
      readonly type: 'datacenters.set';
      /** By name. */
      readonly datacenters: readonly Datacenter[];
      /** Up to here a majority of the voters has the log, as the proposer knows. */
      readonly majoritySeq: number;
    }
  /** An operator wants a datacenter to take no part any more, nor another under its name. */
  | {
      readonly type: 'datacenter.remove';
      readonly name: string;
      /** As in `datacenters.set`. */
      readonly majoritySeq: number;
      /** The operator knows that others are lost, and does not wait for a majority. */
      readonly isForced: boolean;
    }
  /** One that was removed may come back. */
  | { readonly type: 'datacenter.allow'; readonly name: string }
  /** The log here is that of this federation, from now on and for ever. */
  | { readonly type: 'federation.adopt'; readonly federationId: string }
  /** All who read this log read that level: commands of it may follow. A lower one changes nothing. */
  | { readonly type: 'level.raise'; readonly level: number }
  /** Forgets remembered request ids, however old they are. */
  | { readonly type: 'request-id.forget'; readonly keys: readonly Uint8Array[] };

export type ChangeType = Change['type'];

/** The command of that type. */
export type ChangeOf<Type extends ChangeType> = Extract<Change, { readonly type: Type }>;

/** What enters the log. */
export interface Command {
  readonly change: Change;
  /** The proposing leader's wall clock, milliseconds. */
  readonly timeMs: number;
  /** Apply only if the object's ModifyIndex is this (0: only if it does not exist). */
  readonly cas: number | undefined;
  /** Remembers the outcome, so that a repeat changes nothing. */
  readonly request: RequestMark | undefined;
  /** Who asked for it, for the global log; absent for duties. */
  readonly principal?: AccessorId | undefined;
}

export interface RequestMark {
  /** SHA-256 of the caller's accessor id and the request id: nobody can replay another's request. */
  readonly key: Uint8Array;
  /** SHA-256 of the operation and its input: the same id with another request is refused. */
  readonly fingerprint: Uint8Array;
}
