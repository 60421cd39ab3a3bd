// A repeat of a write that carries a request id gets the first answer, and nothing is done again. Whose
// request it was is part of its name: nobody else is told what came of it.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import { AclError, type AclErrorCode } from '../../acl/error.ts';
import type { NamespaceName } from '../../acl/ids.ts';
import type { RequestMark } from '../../state/commands/commands.ts';
import { type Answer, isOfLocalToken } from '../../state/commands/outcome.ts';
import type { Call } from '../call.ts';
import type { Asked, OperationInput, OperationName, Soon } from '../operations.ts';
import type { Caller } from '../rights/caller.ts';
import { requireAcl, requireNamespace } from '../rights/permissions.ts';
import type { Service } from '../service.ts';
import { writeResultOf } from './commit.ts';
import { AnswerWithheld } from './refused-requests.ts';
import { rememberedIdOf, rememberedOutcome, requestMarkOf } from './request-marks.ts';
import type { Attempt } from './run-as-leader.ts';

interface OwnedRequest {
  readonly id: string;
  /** What nobody else can present; see `requestMarkOf`. */
  readonly owner: string;
  /** Undefined where the credential itself is the owner. */
  readonly caller: Caller | undefined;
}

/** Undefined where nothing is remembered: see `rememberedIdOf`. */
export function requestOwnerOf<Name extends OperationName>(
  service: Service,
  name: Name,
  input: OperationInput<Name>,
  call: Call,
): OwnedRequest | undefined {
  const id = rememberedIdOf({ name, call });
  if (id === undefined) return undefined;
  const credential = credentialOf(input, name === 'logout' ? call : undefined);
  if (credential !== undefined) return { id, owner: credential, caller: undefined };
  const caller = service.callers.resolve(call.secret);
  return { id, owner: `token ${caller.token.accessorId}`, caller };
}

/** The credential by which a caller without a token of their own is known. */
function credentialOf(input: object, logout: Call | undefined): string | undefined {
  if (logout !== undefined) return `secret ${logout.secret ?? ''}`;
  if ('bearerToken' in input) return `bearer ${String(input.bearerToken)}`;
  return 'state' in input && 'code' in input ? `code ${String(input.code)}` : undefined;
}

/** The first answer to a request that was made before, for a caller who might still make it. */
export function answerAgain(
  service: Service,
  mark: RequestMark,
  {
    call,
    caller,
    attempt,
  }: { readonly call: Call; readonly caller: Caller | undefined; readonly attempt: Attempt },
): ReturnType<typeof writeResultOf> | undefined {
  const outcome = rememberedOutcome(service.view, mark, service.clock.wallMs());
  if (outcome === undefined) return undefined;
  attempt.applied();
  if (caller !== undefined) requireStillAllowed(caller, outcome.answer);
  const isLocal = isOfLocalToken(outcome.answer);
  return writeResultOf(service, { ...outcome, replayed: true }, { call, isLocal });
}

/**
 * The first answer to a repeat of what was done here to a local token. Once the token is gone nothing
 * tells any more where it lived, so the primary was asked: `said` is its refusal, or undefined where it
 * found nothing to delete. Undefined also where what is remembered here may be of a global token and the
 * caller asked for more datacenters than this one can speak for.
 */
export function answerFromHome<Name extends OperationName>(
  service: Service,
  { name, input, call }: Asked<Name>,
  said: AclError | undefined,
): Soon<Name> | undefined {
  const owned = ownedOrUndefined(service, name, input, call);
  if (owned === undefined) return undefined;
  const mark = requestMarkOf({ id: owned.id, owner: owned.owner, operation: name, input }, call);
  const outcome = rememberedOutcome(service.view, mark, service.clock.wallMs());
  if (outcome === undefined) return undefined;
  const { answer } = outcome;
  const isOfNobodyElse = said === undefined || KNOWS_NO_TOKEN.has(said.code);
  const asksForMore = call.ack !== undefined && call.ack !== 'primary';
  const mayBeLocal = answer.type !== 'token' && (isOfNobodyElse || !asksForMore);
  const isLocal = isOfLocalToken(answer) || mayBeLocal;
  if (!isLocal) return undefined;
  if (owned.caller !== undefined) requireStillAllowed(owned.caller, answer);
  const again = writeResultOf(service, { ...outcome, replayed: true }, { call, isLocal });
  return again as Soon<Name>;
}

/** What is said of a token that the whole federation does not share. */
const KNOWS_NO_TOKEN: ReadonlySet<AclErrorCode> = new Set([
  'token-not-found',
  'token-unknown',
  'update-target-missing',
]);

/** Whose own token is not known here has done nothing here. */
function ownedOrUndefined<Name extends OperationName>(
  service: Service,
  name: Name,
  input: OperationInput<Name>,
  call: Call,
): OwnedRequest | undefined {
  try {
    return requestOwnerOf(service, name, input, call);
  } catch (error) {
    if (error instanceof AclError) return undefined;
    throw error;
  }
}

/** Whoever reads that it is refused must not take it for not done. */
const WAS_DONE = ' (the request took effect when it came before; its answer is not given again)';

/** Answers may hold secrets: who lost the right to write does not get them again. */
function requireStillAllowed(caller: Caller, answer: Answer): void {
  if (answer.type === 'deleted' || answer.type === 'done' || answer.type === 'verdict') return;
  try {
    if (answer.type === 'namespace') requireNamespace(caller, 'write', answer.namespace.name);
    else requireAcl(caller, 'write', namespaceOfAnswer(answer));
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    throw new AnswerWithheld(error.code, `${error.message}${WAS_DONE}`, { cause: error });
  }
}

function namespaceOfAnswer(
  answer: Exclude<Answer, { type: 'deleted' | 'done' | 'verdict' | 'namespace' }>,
): NamespaceName {
  switch (answer.type) {
    case 'token':
      return answer.token.namespace;
    case 'policy':
      return answer.policy.namespace;
    case 'role':
      return answer.role.namespace;
    case 'auth-method':
      return answer.method.namespace;
    case 'binding-rule':
      return answer.rule.namespace;
    default:
      return unreachable(answer);
  }
}
