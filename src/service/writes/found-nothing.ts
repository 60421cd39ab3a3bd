// Which outputs of writes say that there was nothing to delete.

import type { WriteResult } from '../views.ts';

/**
 * There was nothing to delete: that is not in the log, and keeps no earlier try from deleting what somebody
 * makes in the meantime. False for one that was remembered.
 */
export function foundNothing(output: unknown): output is WriteResult<boolean> {
  const isWritten = typeof output === 'object' && output !== null && 'meta' in output;
  if (!isWritten) return false;
  const { value, meta } = output as WriteResult<unknown>;
  return value === false && !meta.replayed;
}
