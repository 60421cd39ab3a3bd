// Documents of outside services, cached. Loads are shared and spaced, so that a flood of logins is never a flood
// of requests; each ends in time whatever becomes of its request, and only so many wait for it.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { REQUEST_TIMEOUT_MS, RemoteFailure } from './remote.ts';

/** Keys and discovery documents are used this long before they are asked for again. */
const FRESH_MS = 600_000;
/** At least this long lies between two reloads that were caused by an unknown key. */
const RELOAD_COOLDOWN_MS = 30_000;
/** A load is one request and a little work on its answer; one that takes longer is given up. */
export const LOAD_MAX_MS = REQUEST_TIMEOUT_MS + 2_000;
/** So many may wait for one load. */
export const SHARERS_MAX = 1024;
const ENTRIES_MAX = 128;
/** Of the documents that are kept, as JSON, and of what they are kept by: whoever writes auth methods chooses them. */
const KEPT_CHARS_MAX = 8 * 1024 * 1024;

interface Entry<T> {
  readonly value: T;
  readonly chars: number;
  readonly loadedAtMs: number;
  /** When a reload was last begun; a reload that failed counts too. */
  readonly reloadedAtMs: number;
}

interface Load<T> {
  readonly loaded: Promise<T>;
  sharerCount: number;
}

/** A bounded cache of remote documents by key. Failures are not cached; loads in flight are shared. */
export class RemoteCache<T> {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #loads = new Map<string, Load<T>>();
  #keptChars = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The cached value while it is fresh, otherwise a new one. */
  get(key: string, load: () => Promise<T>): Promise<T> {
    const entry = this.#entries.get(key);
    if (entry !== undefined && this.#sinceMs(entry.loadedAtMs) < FRESH_MS) {
      return Promise.resolve(entry.value);
    }
    return this.load(key, load);
  }

  /** A new value, or undefined when the cached one was loaded too short a while ago. */
  reload(key: string, load: () => Promise<T>): Promise<T | undefined> {
    const running = this.#loads.get(key);
    if (running !== undefined) return share(running);
    const entry = this.#entries.get(key);
    if (entry !== undefined && this.#sinceMs(entry.reloadedAtMs) < RELOAD_COOLDOWN_MS) {
      return Promise.resolve(undefined);
    }
    if (entry !== undefined) {
      this.#entries.set(key, { ...entry, reloadedAtMs: this.#clock.wallMs() });
    }
    return this.load(key, load);
  }

  /**
   * Loads in any case; two loads of one key at a time become one. Rejects with RemoteFailure after
   * LOAD_MAX_MS, and where SHARERS_MAX wait already.
   */
  load(key: string, load: () => Promise<T>): Promise<T> {
    const running = this.#loads.get(key);
    if (running !== undefined) return share(running);
    const loaded = this.#store(key, load).finally(() => this.#loads.delete(key));
    this.#loads.set(key, { loaded, sharerCount: 1 });
    return loaded;
  }

  async #store(key: string, load: () => Promise<T>): Promise<T> {
    const value = await this.#inTime(load);
    this.#drop(key);
    const loadedAtMs = this.#clock.wallMs();
    const chars = key.length + JSON.stringify(value).length;
    this.#entries.set(key, { value, chars, loadedAtMs, reloadedAtMs: loadedAtMs });
    this.#keptChars += chars;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= ENTRIES_MAX && this.#keptChars <= KEPT_CHARS_MAX) break;
      this.#drop(oldest);
    }
    return value;
  }

  #drop(key: string): void {
    this.#keptChars -= this.#entries.get(key)?.chars ?? 0;
    this.#entries.delete(key);
  }

  /** What comes later is dropped: somebody else may have loaded the document meanwhile. */
  #inTime(load: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(LOAD_MAX_MS, () => {
        reject(new RemoteFailure('no answer (timeout)', `nothing came within ${LOAD_MAX_MS} ms`));
      });
      load()
        .then(resolve, reject)
        .finally(() => timer.cancel());
    });
  }

  /** A wall clock that was set back makes an entry old, not young for ever. */
  #sinceMs(momentMs: number): number {
    const elapsedMs = this.#clock.wallMs() - momentMs;
    return elapsedMs < 0 ? FRESH_MS : elapsedMs;
  }
}

function share<T>(load: Load<T>): Promise<T> {
  if (load.sharerCount >= SHARERS_MAX) {
    return Promise.reject(new RemoteFailure(`${SHARERS_MAX} wait for the same answer already`));
  }
  load.sharerCount += 1;
  return load.loaded;
}
