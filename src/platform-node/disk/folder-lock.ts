// A lock that one process holds, and that the system lets go of when that ends, however it ends. Node has none of its
// own; LevelDB, which holds one on each of its folders, is used for nothing else here.

import { LevelDatabase, LOCKED } from './level-database.ts';

export type FolderLock =
  | { readonly kind: 'held'; letGo(): Promise<void> }
  | { readonly kind: 'taken' }
  /** The folder can neither be made nor used. */
  | { readonly kind: 'impossible' };

/** Makes the folder where it is missing. */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const database = new LevelDatabase(folder, { cacheSize: 0, writeBufferSize: 64 * 1024 });
  try {
    await database.open();
  } catch (error) {
    return { kind: isHeldBySomebody((error as Error).cause) ? 'taken' : 'impossible' };
  }
  return { kind: 'held', letGo: () => database.close() };
}

/** What the system says of a place that has no locks, as a share of a network may be: LevelDB has one code for all. */
const WITHOUT_LOCKS = /No locks available|not implemented|not supported/i;

/** Whether a database could not be opened because it is open elsewhere, by why it could not. */
export function isHeldBySomebody(cause: unknown): boolean {
  const { code, message } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
  return code === LOCKED && !WITHOUT_LOCKS.test(message ?? '');
}
