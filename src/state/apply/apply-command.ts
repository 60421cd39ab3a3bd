// One committed command on the state. It checks first and writes last; a refusal is an outcome that
// changed nothing. The same state and the same command give the same bytes on every node.

import { assert } from '../../../cluster/base/assert.ts';
import { AclError } from '../../acl/error.ts';
import { requestIdInUse } from '../../acl/refusals.ts';
import type { ChangeSet } from '../change-set.ts';
import type { Change, ChangeOf, ChangeType, Command, RequestMark } from '../commands/commands.ts';
import { forgetsByName } from '../commands/feature-levels.ts';
import type { Answer, Outcome } from '../commands/outcome.ts';
import type { EntryRequest } from '../global-log/global-entry.ts';
import { readToken } from '../reads/reads.ts';
import { stillHolds } from '../reads/standing-outcome.ts';
import { REQUEST_MEMORY_MS, readRequest, rememberRequest } from '../rows/bookkeeping.ts';
import { applyAuthMethodDelete, applyAuthMethodSet } from './auth-method.ts';
import { applyBindingRuleDelete, applyBindingRuleSet } from './binding-rule.ts';
import {
  applyLevelRaise,
  applyPendingLoginDelete,
  applyPendingLoginSet,
  applyRequestForget,
  applyRequestTrim,
} from './bookkeeping.ts';
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
import { isGlobalChange } from './global-changes.ts';
import { applyGlobalLogApply, applyGlobalLogBegin, applyGlobalLogTrim } from './global-log.ts';
import {
  applyGlobalSnapshotBegin,
  applyGlobalSnapshotCarry,
  applyGlobalSnapshotChunk,
  applyGlobalSnapshotCommit,
} from './global-snapshot.ts';
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

type Handler<C extends Change> = (context: ApplyContext, change: C) => Answer;

const HANDLERS: { readonly [Type in ChangeType]: Handler<ChangeOf<Type>> } = {
  'token.set': applyTokenSet,
  'token.delete': applyTokenDelete,
  'token.reap': applyTokenReap,
  'policy.set': applyPolicySet,
  'policy.delete': applyPolicyDelete,
  'role.set': applyRoleSet,
  'role.delete': applyRoleDelete,
  'auth-method.set': applyAuthMethodSet,
  'auth-method.delete': applyAuthMethodDelete,
  'binding-rule.set': applyBindingRuleSet,
  'binding-rule.delete': applyBindingRuleDelete,
  'namespace.set': applyNamespaceSet,
  'namespace.delete': applyNamespaceDelete,
  bootstrap: applyBootstrap,
  'ensure-builtins': applyEnsureBuiltins,
  'request-id.trim': applyRequestTrim,
  'request-id.forget': applyRequestForget,
  'level.raise': applyLevelRaise,
  'pending-login.set': applyPendingLoginSet,
  'pending-login.delete': applyPendingLoginDelete,
  'restore.begin': applyRestoreBegin,
  'restore.chunk': applyRestoreChunk,
  'restore.commit': applyRestoreCommit,
  'restore.abandon': applyRestoreAbandon,
  'global-log.begin': applyGlobalLogBegin,
  'global-log.apply': applyGlobalLogApply,
  'global-log.trim': applyGlobalLogTrim,
  'global-snapshot.begin': applyGlobalSnapshotBegin,
  'global-snapshot.chunk': applyGlobalSnapshotChunk,
  'global-snapshot.carry': applyGlobalSnapshotCarry,
  'global-snapshot.commit': applyGlobalSnapshotCommit,
  'epoch.promise': applyEpochPromise,
  'epoch.start': applyEpochStart,
  'epoch.fence': applyEpochFence,
  'divergent.discard': applyDivergentDiscard,
  'divergent.drop': applyDivergentDrop,
  'datacenters.set': applyDatacentersSet,
  'datacenter.remove': applyDatacenterRemove,
  'datacenter.allow': applyDatacenterAllow,
  'federation.adopt': applyFederationAdopt,
};

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
    if (!isOld && !isSame) throw requestIdInUse();
    if (!isOld) return remembered.outcome;
  }
  if (isGlobalChange(change, (id) => readToken(changes, id)?.local === true)) {
    changes.requireGlobalWrites();
  }
  // The type of a change picks the handler of that very type.
  const handle = HANDLERS[change.type] as Handler<Change>;
  const answer = handle({ changes, timeMs, cas, principal }, change);
  changes.endObjects({ timeMs, principal, request: entryRequestOf(request, answer) });
  const { index, position } = changes;
  const outcome = { kind: 'applied', answer, index, position, replayed: false } as const;
  if (request !== undefined) rememberRequest(changes, request, timeMs, outcome);
  return outcome;
}

/** What the global log remembers of the request: repeats are known wherever the primary is. */
function entryRequestOf(
  request: RequestMark | undefined,
  answer: Answer,
): EntryRequest | undefined {
  return request === undefined || answer.type === 'verdict' ? undefined : { ...request, answer };
}
