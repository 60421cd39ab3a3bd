// A wished change of who votes, and its bytes inside a log entry.
// The encoding is this file's own; the caller's context rides along and is never looked at.

import { unreachable } from '../../base/unreachable.ts';
import { NO_DATA } from '../log/entry.ts';
import type { NodeId } from '../node-id.ts';

/** What happens to one node. `update` changes nothing here; callers use it to carry a context. */
export type MemberChangeKind = 'add-voter' | 'add-learner' | 'remove' | 'update';

/** One step of a change. A node of 0 makes the step void. */
export interface MemberChange {
  readonly kind: MemberChangeKind;
  readonly node: NodeId;
}

/**
 * How a joint state is used. `auto`: only when more than one step is asked, left by itself;
 * `implicit`: always, left by itself; `explicit`: always, left by a change without steps.
 */
export type Transition = 'auto' | 'implicit' | 'explicit';

/** A membership change as proposed, logged and applied. */
export interface MembershipChange {
  readonly transition: Transition;
  readonly changes: readonly MemberChange[];
  /** The caller's own bytes, for instance the address of a new node. */
  readonly context: Uint8Array;
}

/** Leaves a joint state. It encodes to nothing, so that no size limit can ever refuse it. */
export const LEAVE_JOINT: MembershipChange = { transition: 'auto', changes: [], context: NO_DATA };

/** Most steps one change may have; far above any sensible group. */
export const MEMBER_CHANGES_MAX = 255;

const KINDS: readonly MemberChangeKind[] = ['add-voter', 'add-learner', 'remove', 'update'];
const TRANSITIONS: readonly Transition[] = ['auto', 'implicit', 'explicit'];
const HEADER_BYTES = 3;
const CHANGE_BYTES = 9;
const FORMAT_VERSION = 1;
const HIGH_WORD = 2 ** 32;

/** Whether the change only leaves a joint state. */
export function leavesJoint(change: MembershipChange): boolean {
  return change.transition === 'auto' && change.changes.length === 0;
}

/** Which protocol carries the change out: one step at once, or a joint state and how it is left. */
export function protocolOf(change: MembershipChange): 'simple' | 'joint' | 'joint-auto-leave' {
  switch (change.transition) {
    case 'auto':
      return change.changes.length > 1 ? 'joint-auto-leave' : 'simple';
    case 'implicit':
      return 'joint-auto-leave';
    case 'explicit':
      return 'joint';
    default:
      return unreachable(change.transition);
  }
}

/** Bytes for a log entry: version, transition, count, then kind and node of each step, then context. */
export function encodeMembershipChange(change: MembershipChange): Uint8Array {
  if (leavesJoint(change) && change.context.length === 0) return NO_DATA;
  const count = change.changes.length;
  if (count > MEMBER_CHANGES_MAX) throw new RangeError(`too many member changes: ${count}`);
  const bytes = new Uint8Array(HEADER_BYTES + count * CHANGE_BYTES + change.context.length);
  const view = new DataView(bytes.buffer);
  bytes.set([FORMAT_VERSION, TRANSITIONS.indexOf(change.transition), count]);
  for (const [position, { kind, node }] of change.changes.entries()) {
    const at = HEADER_BYTES + position * CHANGE_BYTES;
    view.setUint8(at, KINDS.indexOf(kind));
    view.setUint32(at + 1, Math.floor(node / HIGH_WORD));
    view.setUint32(at + 5, node % HIGH_WORD);
  }
  bytes.set(change.context, HEADER_BYTES + count * CHANGE_BYTES);
  return bytes;
}

/** The change that `bytes` say, or undefined where they say none; such an entry must not be logged. */
export function decodeMembershipChange(bytes: Uint8Array): MembershipChange | undefined {
  if (bytes.length === 0) return LEAVE_JOINT;
  const [version, transitionNumber, count] = bytes;
  const transition = TRANSITIONS[transitionNumber ?? -1];
  if (version !== FORMAT_VERSION || transition === undefined || count === undefined)
    return undefined;
  const contextAt = HEADER_BYTES + count * CHANGE_BYTES;
  if (bytes.length < contextAt) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const changes: MemberChange[] = [];
  for (let at = HEADER_BYTES; at < contextAt; at += CHANGE_BYTES) {
    const kind = KINDS[view.getUint8(at)];
    const node = view.getUint32(at + 1) * HIGH_WORD + view.getUint32(at + 5);
    if (kind === undefined || !Number.isSafeInteger(node)) return undefined;
    changes.push({ kind, node });
  }
  return { transition, changes, context: bytes.slice(contextAt) };
}
