// What gives values for keys: the store, a snapshot of it, or what has changed in memory and is not
// written yet.

export interface Getter {
  get(key: Uint8Array): Uint8Array | undefined;
}
