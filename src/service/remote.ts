// The way to the leader of this datacenter, for what this server cannot decide alone. Declared here,
// where it is used; src/node carries the calls from server to server. One call is one try: how often to
// try is decided by whoever calls.

import { AclError } from '../acl/error.ts';
import type { Call } from './call.ts';
import type { OperationInput, OperationName, OperationOutput } from './operations.ts';

export interface Remote {
  /**
   * Runs an operation at the leader, which is another server. Rejects with LeaderAway when nothing was
   * done, with 'outcome-unknown' when that is not known, else with what the leader refuses.
   */
  runAtLeader<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call: Call,
  ): Promise<OperationOutput<Name>>;
  /**
   * Of the leader that would be asked now, this server too; undefined where nobody is known. What a leader of
   * a later term has refused, no question to one of an earlier term does any more.
   */
  leaderTerm(): number | undefined;
  /** Resolves when another server may lead by now, at the latest after `limitMs`. */
  leaderChanged(limitMs: number): Promise<void>;
}

export const NOBODY_LEADS = 'No cluster leader';

/** Nothing was done, because nobody is known to lead or somebody else does. Another try may work. */
export class LeaderAway extends AclError {
  constructor(options: { readonly cause?: unknown; readonly says?: string } = {}) {
    super('unavailable', options.says ?? NOBODY_LEADS, options);
  }
}
