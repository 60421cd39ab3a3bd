// One committed command on the state. It checks first and writes last; a refusal is an outcome that
// changed nothing. The same state and the same command give the same bytes on every node.

import { assert } from '../../../cluster/base/assert.ts';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { AclError, invalid } from '../../acl/error.ts';
import {
  deletePendingLogin,
  forgetRequest,
  readRequest,
  REQUEST_MEMORY_MS,
  rememberRequest,
  setPendingLogin,
} from '../rows/bookkeeping.ts';
import type { ChangeSet } from '../change-set.ts';
import type { Change, Command, RequestMark } from '../commands/commands.ts';
import { forgetsByName } from '../commands/feature-levels.ts';
import type { EntryRequest } from '../global-log/global-entry.ts';
import type { Answer, Outcome } from '../commands/outcome.ts';
import { readToken } from '../reads/reads.ts';
import { stillHolds } from '../reads/standing-outcome.ts';
import { applyAuthMethodDelete, applyAuthMethodSet } from './auth-method.ts';
import { applyBindingRuleDelete, applyBindingRuleSet } from './binding-rule.ts';
import { applyBootstrap, applyEnsureBuiltins } from './builtins.ts';
import type { ApplyContext } from './checks.ts';
import {
  applyDatacenterAllow,
  applyDatacenterRemove,
  applyDatacentersSet,
  applyFederationAdopt,
} from './datacenters.ts';
import {
  applyDivergentDiscard,
  applyDivergentDrop,
  applyEpochFence,
  applyEpochPromise,
  applyEpochStart,
} from './epochs.ts';
import {
  applyGlobalSnapshotBegin,
  applyGlobalSnapshotCarry,
  applyGlobalSnapshotChunk,
  applyGlobalSnapshotCommit,
} from './global-snapshot.ts';
import { isGlobalChange } from './global-changes.ts';
import { applyGlobalLogApply, applyGlobalLogBegin, applyGlobalLogTrim } from './global-log.ts';
import { applyNamespaceDelete, applyNamespaceSet } from './namespace.ts';
import { applyPolicyDelete, applyPolicySet } from './policy.ts';
import {
  applyRestoreAbandon,
  applyRestoreBegin,
  applyRestoreChunk,
  applyRestoreCommit,
} from './restore.ts';
import { applyRoleDelete, applyRoleSet } from './role.ts';
import { applyTokenDelete, applyTokenReap, applyTokenSet } from './token.ts';

/** Applies one command. Never throws on what a command says. */
export function applyCommand(changes: ChangeSet, command: Command): Outcome {
  changes.beginCommand();
  try {
    return answered(changes, command);
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    assert(changes.isUntouched, 'a refusal changed nothing', { refusal: error.message });
    return { kind: 'refused', code: error.code, message: error.message };
  }
}

function answered(changes: ChangeSet, command: Command): Outcome {
  const { change, timeMs, cas, request, principal } = command;
  const remembered = request === undefined ? undefined : readRequest(changes, request.key);
  const holds = remembered !== undefined && stillHolds(changes.replication, remembered.outcome);
  if (request !== undefined && remembered !== undefined && holds) {
    // What is remembered counts at any age, wherever all servers know that: clocks differ.
    const isAgeless = forgetsByName(changes.level, changes.replication);
    const isOld = !isAgeless && remembered.timeMs + REQUEST_MEMORY_MS <= timeMs;
    const isSame = Buffer.compare(remembered.fingerprint, request.fingerprint) === 0;
    if (!isOld && !isSame) throw invalid('The request id was used before, for another request');
    if (!isOld) return remembered.outcome;
  }
  if (isGlobalChange(change, (id) => readToken(changes, id)?.local === true)) {
    changes.requireGlobalWrites();
  }
  const answer = applyChange({ changes, timeMs, cas, principal }, change);
  changes.endObjects({ timeMs, principal, request: entryRequestOf(request, answer) });
  const { index, position } = changes;
  const outcome = { kind: 'applied', answer, index, position, replayed: false } as const;
  if (request !== undefined) rememberRequest(changes, request, timeMs, outcome);
  return outcome;
}

function applyChange(context: ApplyContext, change: Change): Answer {
  const { changes, timeMs } = context;
  switch (change.type) {
    case 'token.set':
      return applyTokenSet(context, change);
    case 'token.delete':
      return applyTokenDelete(context, change);
    case 'token.reap':
      return applyTokenReap(context, change);
    case 'policy.set':
      return applyPolicySet(context, change);
    case 'policy.delete':
      return applyPolicyDelete(context, change);
    case 'role.set':
      return applyRoleSet(context, change);
    case 'role.delete':
      return applyRoleDelete(context, change);
    case 'auth-method.set':
      return applyAuthMethodSet(context, change);
    case 'auth-method.delete':
      return applyAuthMethodDelete(context, change);
    case 'binding-rule.set':
      return applyBindingRuleSet(context, change);
    case 'binding-rule.delete':
      return applyBindingRuleDelete(context, change);
    case 'namespace.set':
      return applyNamespaceSet(context, change);
    case 'namespace.delete':
      return applyNamespaceDelete(context, change);
    case 'bootstrap':
      return applyBootstrap(context, change);
    case 'ensure-builtins':
      return applyEnsureBuiltins(context, change);
    case 'request-id.trim':
      for (const key of change.keys) trimRequest(changes, key, timeMs);
      return { type: 'done' };
    case 'request-id.forget':
      for (const key of change.keys) forgetRequest(changes, key);
      return { type: 'done' };
    case 'level.raise':
      changes.raiseLevel(change.level);
      return { type: 'done' };
    case 'pending-login.set':
      setPendingLogin(changes, change.key, change);
      return { type: 'done' };
    case 'pending-login.delete':
      for (const key of change.keys) deletePendingLogin(changes, key);
      return { type: 'done' };
    case 'restore.begin':
      return applyRestoreBegin(context, change);
    case 'restore.chunk':
      return applyRestoreChunk(context, change);
    case 'restore.commit':
      return applyRestoreCommit(context, change);
    case 'restore.abandon':
      return applyRestoreAbandon(context, change);
    case 'global-log.begin':
      return applyGlobalLogBegin(context, change);
    case 'global-log.apply':
      return applyGlobalLogApply(context, change);
    case 'global-log.trim':
      return applyGlobalLogTrim(context, change);
    case 'global-snapshot.begin':
      return applyGlobalSnapshotBegin(context, change);
    case 'global-snapshot.chunk':
      return applyGlobalSnapshotChunk(context, change);
    case 'global-snapshot.carry':
      return applyGlobalSnapshotCarry(context, change);
    case 'global-snapshot.commit':
      return applyGlobalSnapshotCommit(context, change);
    case 'epoch.promise':
      return applyEpochPromise(context, change);
    case 'epoch.start':
      return applyEpochStart(context, change);
    case 'epoch.fence':
      return applyEpochFence(context, change);
    case 'divergent.discard':
      return applyDivergentDiscard(context, change);
    case 'divergent.drop':
      return applyDivergentDrop(context, change);
    case 'datacenters.set':
      return applyDatacentersSet(context, change);
    case 'datacenter.remove':
      return applyDatacenterRemove(context, change);
    case 'datacenter.allow':
      return applyDatacenterAllow(context, change);
    case 'federation.adopt':
      return applyFederationAdopt(context, change);
    default:
      return unreachable(change);
  }
}

/** What the global log remembers of the request: repeats are known wherever the primary is. */
function entryRequestOf(
  request: RequestMark | undefined,
  answer: Answer,
): EntryRequest | undefined {
  return request === undefined || answer.type === 'verdict' ? undefined : { ...request, answer };
}

function trimRequest(changes: ChangeSet, key: Uint8Array, timeMs: number): void {
  const remembered = readRequest(changes, key);
  if (remembered === undefined || remembered.timeMs + REQUEST_MEMORY_MS > timeMs) return;
  forgetRequest(changes, key);
}
