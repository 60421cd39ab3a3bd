// The one refusal of a snapshot that cannot be trusted, whether it came over the wire or out of an
// archive. Nothing was changed when it is thrown.

/** What was received is not what was sent, or not the state of any node. The message says where. */
export class SnapshotDamage extends Error {
  override readonly name = 'SnapshotDamage';

  constructor(found: string, options?: { readonly cause?: unknown }) {
    super(`the snapshot is damaged: ${found}`, options);
  }
}
