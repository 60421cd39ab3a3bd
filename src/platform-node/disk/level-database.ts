// LevelDB with a list of its own of what is open on it, and a way of its own to close an iterator, so that one
// goes with the next young garbage: it keeps the rows that it read last, outside the engine's heap, where nothing
// tells the engine to look for garbage. The package keeps what is open in a Set, whose outgrown tables point at
// those that took their places: one that has grown old keeps all later ones alive. And its `close` of an iterator
// writes a function into a property of it, which the engine makes old from the start, with all that it knows.

import type { ClassicLevel, Iterator } from 'classic-level';
import { Level } from 'level';

type Resource = Parameters<ClassicLevel['attachResource']>[0];

export type RowIterator = Iterator<LevelDatabase, Uint8Array, Uint8Array>;

/** What the package asks of whoever implements an iterator: to be called once, while nothing is read. */
interface IteratorInside {
  _close(): Promise<void>;
}

/** What `level` gives to servers. */
const Classic = Level as unknown as typeof ClassicLevel;

/** The code of the failure where another process, or this one, has it open. */
export const LOCKED = 'LEVEL_LOCKED';

/** Opened once. */
export class LevelDatabase extends Classic<Uint8Array, Uint8Array> {
  readonly #open = new OpenResources();

  /** The options are those of `classic-level`. */
  constructor(location: string, options: object) {
    super(location, options);
    super.attachResource(this.#open);
  }

  override attachResource(resource: Resource): void {
    this.#open.add(resource);
  }

  override detachResource(resource: Resource): void {
    this.#open.remove(resource);
  }

  /** Of this database, once, when nobody reads from it any more. One that is closed with the database is waited for. */
  async closeIterator(iterator: RowIterator): Promise<void> {
    if (!this.#open.remove(iterator)) return iterator.close();
    await (iterator as unknown as IteratorInside)._close();
  }
}

/** Closing it closes all of them, as the database does before it closes itself. */
class OpenResources implements Resource {
  /** In no order, and few: what is looked for is mostly among the last. */
  readonly #resources: Resource[] = [];

  add(resource: Resource): void {
    this.#resources.push(resource);
  }

  /** Whether it was there. */
  remove(resource: Resource): boolean {
    const place = this.#resources.lastIndexOf(resource);
    if (place < 0) return false;
    const last = this.#resources.pop();
    if (last !== undefined && last !== resource) this.#resources[place] = last;
    return true;
  }

  async close(): Promise<void> {
    await Promise.all(this.#resources.splice(0).map((resource) => resource.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
