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
    const { cause } = error as { readonly cause?: { readonly code?: unknown } };
    return { kind: cause?.code === LOCKED ? 'taken' : 'impossible' };
  }
  return { kind: 'held', letGo: () => database.close() };
}
