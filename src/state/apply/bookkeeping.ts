// What the datacenter remembers beside the objects: request ids, logins under way, and the feature level.

import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import {
  deletePendingLogin,
  forgetRequest,
  REQUEST_MEMORY_MS,
  readRequest,
  setPendingLogin,
} from '../rows/bookkeeping.ts';
import type { ApplyContext } from './checks.ts';

/** Forgets those that are old enough at the command's time. */
export function applyRequestTrim(
  { changes, timeMs }: ApplyContext,
  { keys }: ChangeOf<'request-id.trim'>,
): Answer {
  for (const key of keys) {
    const remembered = readRequest(changes, key);
    if (remembered === undefined || remembered.timeMs + REQUEST_MEMORY_MS > timeMs) continue;
    forgetRequest(changes, key);
  }
  return { type: 'done' };
}

export function applyRequestForget(
  { changes }: ApplyContext,
  { keys }: ChangeOf<'request-id.forget'>,
): Answer {
  for (const key of keys) forgetRequest(changes, key);
  return { type: 'done' };
}

export function applyPendingLoginSet(
  { changes }: ApplyContext,
  { key, value, expiresMs }: ChangeOf<'pending-login.set'>,
): Answer {
  setPendingLogin(changes, key, { value, expiresMs });
  return { type: 'done' };
}

export function applyPendingLoginDelete(
  { changes }: ApplyContext,
  { keys }: ChangeOf<'pending-login.delete'>,
): Answer {
  for (const key of keys) deletePendingLogin(changes, key);
  return { type: 'done' };
}

export function applyLevelRaise(
  { changes }: ApplyContext,
  { level }: ChangeOf<'level.raise'>,
): Answer {
  changes.raiseLevel(level);
  return { type: 'done' };
}
