// Rights are checked against the state as the leader has it, and the change enters the log behind whatever is
// under way. Mostly the change might as well have come before that. Not so where it would put back what was
// just taken away: a link that was lent, or what gives the caller its own rights. Such a write is for the
// version that was looked at alone, by the check of `cas`, and is run anew where that is not the last one.
// See docs/decisions/0008.

import { AclError } from '../acl/error.ts';
import { casMismatch } from '../acl/refusals.ts';
import type { Stamped } from '../state/stamp.ts';
import type { TableName } from '../state/view.ts';
import type { Caller } from './caller.ts';
import { dependencyOf } from './linked-policies.ts';
import type { Request } from './service.ts';

/** So often a write is run. */
const TRIES_MAX = 10;

/** The object was changed between the look at it and the write: nothing was written. */
export class Overtaken extends AclError {
  constructor() {
    const text = 'nothing was written: others change the same object all the time, try again';
    super('unavailable', text);
  }
}

/**
 * The request, to be committed for that version alone. Throws 'cas-mismatch' where it is not the one that the
 * client names.
 */
export function asSeen(request: Request, seen: Pick<Stamped, 'modifyIndex'>): Request {
  const { cas } = request.call;
  if (cas !== undefined && cas !== seen.modifyIndex) throw casMismatch(cas, seen);
  return { ...request, onlyAt: seen.modifyIndex };
}

/** Whether the caller has rights by that object. */
export function restsOn({ token, dependencies }: Caller, table: TableName, id: string): boolean {
  if (table === 'tokens') return token.accessorId.toLowerCase() === id.toLowerCase();
  return dependencies.has(dependencyOf(table, id));
}

/** Runs a write again that others have overtaken. Rejects with Overtaken when that happens all the time. */
export async function untilNotOvertaken<Output>(
  run: () => Output | Promise<Output>,
): Promise<Output> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Overtaken) || tries === TRIES_MAX) throw error;
    }
  }
}
