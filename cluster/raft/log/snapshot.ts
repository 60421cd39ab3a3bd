// The full state at an index, as raft sees it: where it stands, who belonged to the group then,
// and bytes that only the caller understands (or a reference to them).

import type { Membership } from '../membership/membership.ts';
import type { EntryId } from './entry.ts';

/** A snapshot; `term` and `index` are those of the last entry that it contains. */
export interface Snapshot extends EntryId {
  readonly membership: Membership;
  readonly data: Uint8Array;
}
