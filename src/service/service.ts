// What every operation has at hand: the node's side (deps), who is asking, and what the request asks
// to be remembered by. The door makes one `Request` for each run.

import type { RequestMark } from '../state/commands/commands.ts';
import type { Call } from './call.ts';
import type { ServiceDeps } from './deps.ts';
import type { GoalWaiters } from './goal-waiters.ts';
import type { PendingLogins } from './logins/pending-logins.ts';
import type { LinkNames } from './objects/link-names.ts';
import type { PositionWaiters } from './position-waiters.ts';
import type { CallerResolver } from './rights/caller-resolver.ts';
import type { RefusedRequests } from './writes/refused-requests.ts';
import type { Attempt } from './writes/run-as-leader.ts';

export interface Service extends ServiceDeps {
  readonly callers: CallerResolver;
  readonly names: LinkNames;
  readonly positions: PositionWaiters;
  readonly indexes: GoalWaiters<number>;
  readonly refused: RefusedRequests;
  readonly pendingLogins: PendingLogins;
}

/** One run of an operation. */
export interface Request {
  readonly call: Call;
  /** Set when the caller gave the request an id. */
  readonly mark: RequestMark | undefined;
  /** Of a write. */
  readonly attempt: Attempt | undefined;
  /** What it was checked against besides the rights of its caller, by `dependencyOf`. */
  readonly checkedAgainst?: readonly string[];
}
