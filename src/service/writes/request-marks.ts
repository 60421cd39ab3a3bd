// Request ids: a write that carries one is remembered with its outcome, so that a repeat gets the
// first answer and changes nothing. The memory is the state's (ten minutes); this file makes the mark
// that goes into the log and answers from the memory before any work is done again.

import type { Random } from '../../../cluster/platform/random.ts';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import { AclError } from '../../acl/error.ts';
import { requestIdInUse } from '../../acl/refusals.ts';
import { isGiven } from '../../acl/values/given.ts';
import type { RequestMark } from '../../state/commands/commands.ts';
import { forgetsByName } from '../../state/commands/feature-levels.ts';
import type { AppliedOutcome } from '../../state/commands/outcome.ts';
import { stillHolds } from '../../state/reads/standing-outcome.ts';
import { REQUEST_MEMORY_MS } from '../../state/rows/bookkeeping.ts';
import type { StateView } from '../../state/view.ts';
import type { Call } from '../call.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { Asked, OperationName } from '../operations.ts';

/** Longer ids are refused. */
export const REQUEST_ID_MAX = 128;

/** How ids begin that servers give to what leaves them. */
const OF_SERVER = 'server/';

export function requestIdOfServer(random: Random): string {
  return `${OF_SERVER}${random.uuid()}`;
}

/** Whether a server gave it, which repeats its own tries and nobody else's. */
export function isOfServer(requestId: string): boolean {
  return requestId.startsWith(OF_SERVER);
}

/** The id by which the outcome of a request is remembered; undefined without one, and for what is not remembered. */
export function rememberedIdOf({
  name,
  call: { requestId },
}: Pick<Asked<OperationName>, 'name' | 'call'>): string | undefined {
  if (!isGiven(requestId) || OPERATION_TABLE[name].kind === 'read') return undefined;
  // Bootstrap has no owner, only a secret that its caller chose; the other only begins a login.
  return name === 'bootstrap' || name === 'oidc.auth-url' ? undefined : requestId;
}

/**
 * The mark of a request. `owner` is what nobody else can present: the accessor id behind the caller's
 * secret, or the credential of a login. The fingerprint is over what was asked, not over what came of
 * it: ids, secrets and times are taken anew on each try.
 */
export function requestMarkOf(
  request: {
    readonly id: string;
    readonly owner: string;
    readonly operation: OperationName;
    readonly input: unknown;
  },
  call: Pick<Call, 'namespaceParameter' | 'namespaceHeader' | 'cas'>,
): RequestMark {
  if (request.id.length > REQUEST_ID_MAX) {
    throw new AclError('malformed', `A request id may have at most ${REQUEST_ID_MAX} characters`);
  }
  const { namespaceParameter, namespaceHeader, cas } = call;
  const asked = [request.operation, request.input, namespaceParameter, namespaceHeader, cas];
  return {
    key: hashOf(JSON.stringify([request.owner, request.id])),
    fingerprint: hashOf(canonicalText(asked)),
  };
}

/**
 * The outcome that the state remembers for the mark, if it still does. Throws 'invalid' when the same
 * caller used the id for another request.
 */
export function rememberedOutcome(
  view: Pick<StateView, 'request' | 'replication' | 'usesLevel'>,
  mark: RequestMark,
  nowMs: number,
): AppliedOutcome | undefined {
  const remembered = view.request(mark.key);
  if (remembered === undefined || !stillHolds(view.replication(), remembered.outcome)) {
    return undefined;
  }
  // As where it is applied: see docs/decisions/0007.
  const isAgeless = forgetsByName(view.usesLevel, view.replication());
  if (!isAgeless && remembered.timeMs + REQUEST_MEMORY_MS <= nowMs) return undefined;
  if (Buffer.compare(remembered.fingerprint, mark.fingerprint) !== 0) {
    throw requestIdInUse();
  }
  const { outcome } = remembered;
  return outcome.kind === 'applied' ? outcome : undefined;
}

function hashOf(text: string): Uint8Array {
  return sha256(Buffer.from(text, 'utf8'));
}

/** One text for one meaning: sorted keys, absent and undefined alike, big numbers as text. */
function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part === 'bigint') return `${part}n`;
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
