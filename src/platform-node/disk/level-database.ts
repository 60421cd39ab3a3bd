// LevelDB with a list of its own of what is open on it. The package keeps that in a Set, whose outgrown tables
// point at those that took their places: one that has grown old keeps all later ones alive, and with them each
// iterator that was open when its table was replaced, with the rows that it read last, outside the engine's heap.

import type { ClassicLevel } from 'classic-level';
import { Level } from 'level';

type Resource = Parameters<ClassicLevel['attachResource']>[0];

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
}

/** Closing it closes all of them, as the database does before it closes itself. */
class OpenResources implements Resource {
  /** In no order, and few: what is looked for is mostly among the last. */
  readonly #resources: Resource[] = [];

  add(resource: Resource): void {
    this.#resources.push(resource);
  }

  /** What is not there stays away. */
  remove(resource: Resource): void {
    const place = this.#resources.lastIndexOf(resource);
    if (place < 0) return;
    const last = this.#resources.pop();
    if (last !== undefined && last !== resource) this.#resources[place] = last;
  }

  async close(): Promise<void> {
    await Promise.all(this.#resources.map((resource) => resource.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
