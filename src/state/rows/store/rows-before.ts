// What rows held before a batch that is on its way to the disk. The batch lands when nobody looks, between
// two reads of one request; until the machine says that it has landed, readers are shown these rows as
// they were, so that whatever one request reads belongs to one state.

/** By `nameOf` the key; undefined: there was no such row. */
export type RowsBefore = Pick<ReadonlyMap<string, Uint8Array | undefined>, 'get' | 'has'>;

/** The bytes of a key as text, to be looked up by. */
export function nameOf(key: Uint8Array): string {
  return (key instanceof Buffer ? key : Buffer.from(key)).toString('latin1');
}
