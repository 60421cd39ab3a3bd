// The one refusal of a snapshot that cannot be trusted, whether it came over the wire or out of an
// archive. Nothing was changed when it is thrown.

import type { KvRow } from '../../../cluster/platform/kv.ts';
import { requireReadable, UnreadableRow } from '../rows/layout/readable-row.ts';

/** What was received is not what was sent, or not the state of any node. The message says where. */
export class SnapshotDamage extends Error {
  override readonly name = 'SnapshotDamage';

  constructor(
    found: string,
    {
      says = 'the snapshot is damaged',
      ...options
    }: { readonly says?: string; readonly cause?: unknown } = {},
  ) {
    super(`${says}: ${found}`, options);
  }
}

/** Throws SnapshotDamage unless this release reads the row. */
export function requireUndamaged(row: KvRow): void {
  try {
    requireReadable(row);
  } catch (error) {
    throw error instanceof UnreadableRow ? new SnapshotDamage(error.message) : error;
  }
}
