// Who waits for a change, and who is told of every change. Changes are announced once they are on
// disk. Those told of every change (caches) hear of it at once and in order; those who wait for one
// are woken in slices, so that thousands of them cannot stop the event loop.

import type { Clock } from '../../cluster/platform/clock.ts';
import type { NamespaceName } from '../acl/ids.ts';
import { idKey, namedObjectKey } from './rows/objects/objects.ts';
import type { TableName } from './view.ts';

/** A whole table, or one object of it by its watch key (in any letter case). */
export interface WatchTarget {
  readonly table: TableName;
  readonly object?: string | undefined;
}

export interface AppliedChange {
  readonly table: TableName;
  /**
   * Its identity: lower-cased id, name of a namespace, or namespace and name of an auth method. Empty
   * when the table changed for its readers without a change of one object.
   */
  readonly key: string;
  /** Every watch key of the object, before and after the change. */
  readonly watchKeys: readonly string[];
}

/** What is told to those who hear of everything: what a batch changed, or that all may be another. */
export type AppliedEvent =
  | { readonly kind: 'changed'; readonly changes: readonly AppliedChange[] }
  /** Another state took the place of this one: nothing that was derived from it holds. */
  | { readonly kind: 'replaced' };

/** One object: by its id, or by its name where it is read by name; of a namespace, by `called` alone. */
export type ObjectRef =
  | { readonly id: string }
  | { readonly called: string }
  | { readonly namespace: NamespaceName; readonly name: string };

/** The watch key of one object of a table. It may not exist: its creation is a change too. */
export function watchKey(ref: ObjectRef): string {
  if ('called' in ref) return ref.called;
  return 'id' in ref ? idKey(ref.id) : namedObjectKey(ref);
}

const WAKES_PER_TURN = 256;

type Wake = () => void;

export class Watch {
  readonly #clock: Clock;
  readonly #waiters = new Map<string, Set<Wake>>();
  readonly #listeners = new Set<(event: AppliedEvent) => void>();
  #waking: Wake[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves after the next change of the target, or when `signal` fires: the caller looks again in
   * both cases. Looking and waiting must not have an `await` between them.
   */
  waitFor(target: WatchTarget, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const key = waiterKey(target.table, target.object);
      const wake = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = (): void => {
        this.#forget(key, wake);
        resolve();
      };
      signal.addEventListener('abort', abort, { once: true });
      const waiters = this.#waiters.get(key);
      if (waiters === undefined) this.#waiters.set(key, new Set([wake]));
      else waiters.add(wake);
    });
  }

  /** Calls `listener` with every event, at once after it is on disk. Returns its end. */
  onApplied(listener: (event: AppliedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** How many wait now. */
  get waitingCount(): number {
    let count = this.#waking.length;
    for (const waiters of this.#waiters.values()) count += waiters.size;
    return count;
  }

  /** Tells the listeners, then wakes those who wait. For the owner of the state alone. */
  announce(changes: readonly AppliedChange[]): void {
    if (changes.length === 0) return;
    this.#tell({ kind: 'changed', changes });
    if (this.#waiters.size === 0) return;
    for (const { table, key, watchKeys } of changes) {
      this.#wake(waiterKey(table, undefined));
      if (key === '') this.#wakeObjectsOf(table);
      for (const each of watchKeys) this.#wake(waiterKey(table, each));
    }
  }

  /** No object has changed, and the state has moved on in the global log. For the owner of the state alone. */
  announceMoved(): void {
    this.#tell({ kind: 'changed', changes: [] });
  }

  /** Tells the listeners that the state was replaced, and wakes all. For the owner of the state alone. */
  announceReplaced(): void {
    this.#tell({ kind: 'replaced' });
    this.releaseAll();
  }

  /** Wakes all: the state was replaced or is closing. */
  releaseAll(): void {
    for (const key of [...this.#waiters.keys()]) this.#wake(key);
  }

  #tell(event: AppliedEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** Which of them read otherwise now is not known here: whoever waits for one looks again. */
  #wakeObjectsOf(table: TableName): void {
    const beginning = waiterKey(table, '');
    for (const key of [...this.#waiters.keys()]) if (key.startsWith(beginning)) this.#wake(key);
  }

  #wake(key: string): void {
    const waiters = this.#waiters.get(key);
    if (waiters === undefined) return;
    this.#waiters.delete(key);
    const isIdle = this.#waking.length === 0;
    for (const wake of waiters) this.#waking.push(wake);
    if (isIdle) this.#clock.after(0, () => this.#wakeSlice());
  }

  #wakeSlice(): void {
    const slice = this.#waking.slice(0, WAKES_PER_TURN);
    this.#waking = this.#waking.slice(WAKES_PER_TURN);
    if (this.#waking.length > 0) this.#clock.after(0, () => this.#wakeSlice());
    for (const wake of slice) wake();
  }

  #forget(key: string, wake: Wake): void {
    const waiters = this.#waiters.get(key);
    waiters?.delete(wake);
    if (waiters?.size === 0) this.#waiters.delete(key);
  }
}

function waiterKey(table: TableName, object: string | undefined): string {
  return object === undefined ? table : `${table} ${object.toLowerCase()}`;
}
