// The one refusal of an archive that cannot be trusted. Nothing was changed when it is thrown.

/** Not an archive, or not the one that was written. The message says where. */
export class ArchiveDamage extends Error {
  override readonly name = 'ArchiveDamage';
}
