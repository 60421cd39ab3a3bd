// Sends a change into the log and turns what comes back into a write's answer, or into the refusal
// that the caller meets.

import { assert } from '../../../cluster/base/assert.ts';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { AclError } from '../../acl/error.ts';
import type { AccessorId } from '../../acl/ids.ts';
import type { Change } from '../../state/commands/commands.ts';
import type { Answer, AppliedOutcome } from '../../state/commands/outcome.ts';
import type { AckLevel, Call } from '../call.ts';
import { namespaceViewOf, roleViewOf, tokenViewOf } from '../objects/make-views.ts';
import type { Request, Service } from '../service.ts';
import type {
  AuthMethodView,
  BindingRuleView,
  NamespaceView,
  PolicyView,
  RoleView,
  TokenView,
  WriteMeta,
  WriteResult,
} from '../views.ts';
import { acknowledged } from './acknowledge.ts';

interface ViewByAnswer {
  token: TokenView;
  policy: PolicyView;
  role: RoleView;
  'auth-method': AuthMethodView;
  'binding-rule': BindingRuleView;
  namespace: NamespaceView;
  deleted: boolean;
}

/**
 * Proposes the change and answers with its outcome, which must be of the expected type. Must follow the checks
 * without a pause. Rejects with the state's refusal, with Overtaken where it has to be checked anew, or with
 * what the log says when the change did not get into it.
 */
export async function commit<Type extends keyof ViewByAnswer>(
  service: Service,
  request: Request,
  change: Change,
  expected: Type,
): Promise<WriteResult<ViewByAnswer[Type]>> {
  const { call, mark, attempt, checkedAgainst = [] } = request;
  service.underWay.requireQuiet(() => [...service.callers.rootsOf(call.secret), ...checkedAgainst]);
  const timeMs = service.clock.wallMs();
  const isLocal = concernsLocalToken(service, change);
  if (attempt !== undefined) attempt.isDecided = true;
  const principal = principalOf(service, call);
  const command = { change, timeMs, cas: call.cas, request: mark, principal };
  const outcome = await service.propose(command, attempt?.reign);
  if (outcome.kind === 'refused') throw new AclError(outcome.code, outcome.message);
  attempt?.applied();
  assert(outcome.answer.type === expected, 'the outcome fits the change', { expected });
  const result = await writeResultOf(service, outcome, { call, isLocal });
  return result as WriteResult<ViewByAnswer[Type]>;
}

/** The accessor id of who asks, as the global log tells it. */
function principalOf({ callers }: Service, { secret }: Call): AccessorId | undefined {
  return secret === undefined ? undefined : callers.tokenOf(secret)?.accessorId;
}

function concernsLocalToken({ view }: Service, change: Change): boolean {
  if (change.type === 'token.set') return change.token.local;
  return change.type === 'token.delete' && view.token(change.accessorId)?.local === true;
}

/**
 * The answer of an applied write; also of one that was only remembered. Rejects with 'wait-timeout' when
 * it did not get as far as the caller asked for.
 */
export function writeResultOf(
  service: Service,
  applied: AppliedOutcome,
  wish: { readonly call: Call; readonly isLocal: boolean },
): WriteOutput | Promise<WriteOutput> {
  const { answer, index, position, replayed } = applied;
  const value = viewOfAnswer(service, answer);
  const resultWith = (ack: AckLevel | undefined): WriteOutput => ({
    value,
    meta: { index, position, ack, replayed },
  });
  if (wish.isLocal) return resultWith(undefined);
  const what = answer.type === 'deleted' ? 'deletion' : 'change';
  const ack = acknowledged(service, position, { call: wish.call, what });
  return ack instanceof Promise ? ack.then(resultWith) : resultWith(ack);
}

type WriteOutput = WriteResult<ViewByAnswer[keyof ViewByAnswer]>;

/**
 * The answer of a delete that found nothing to delete: no change was made. Which datacenters know that is
 * waited for when the leader has proven it: see acknowledge.ts.
 */
export function nothingDeleted(service: Service): WriteResult<boolean> {
  return { value: false, meta: metaOfNoChange(service) };
}

/** Of an answer that needed nothing to be written: where the state is. */
export function metaOfNoChange({ view }: Service): WriteMeta {
  return { index: view.index(), position: view.position(), ack: undefined, replayed: false };
}

function viewOfAnswer(service: Service, answer: Answer): ViewByAnswer[keyof ViewByAnswer] {
  const names = service.names;
  switch (answer.type) {
    case 'token':
      return tokenViewOf(answer.token, names, { secretHidden: false });
    case 'policy':
      return { kind: 'policy', policy: answer.policy };
    case 'role':
      return roleViewOf(answer.role, names);
    case 'auth-method':
      return { kind: 'auth-method', method: answer.method };
    case 'binding-rule':
      return { kind: 'binding-rule', rule: answer.rule };
    case 'namespace':
      return namespaceViewOf(answer.namespace, names);
    case 'deleted':
      return answer.existed;
    case 'done':
    case 'verdict':
      throw new AclError('internal', 'a duty has no answer for a caller');
    default:
      return unreachable(answer);
  }
}
