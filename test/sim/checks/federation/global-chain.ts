// Every entry of the global log that any disk ever held, by the hash that names it and all before it;
// and what the shared objects are behind each of them, worked out here from the effects alone, by nothing
// that had a part in the run.

import type { KvWrite } from '../../../../cluster/platform/kv.ts';
import {
  decodeEntry,
  entryHash,
  type GlobalEntry,
} from '../../../../src/state/global-log/global-entry.ts';
import { textOf } from '../../world/key-text.ts';
import type { SortedRows } from '../../world/sorted-rows.ts';
import { withWrites } from './state-image.ts';

export interface KnownEntry {
  readonly entry: GlobalEntry;
  readonly hash: string;
  readonly prevHash: string;
  /** The datacenter whose disk held it first: who wrote it. */
  readonly site: string;
  /** When that was, in the time of the run. */
  readonly atMs: number;
}

/** The shared objects at one place of the log. */
export interface Behind {
  readonly rows: SortedRows;
  readonly digest: string;
}

export class GlobalChain {
  readonly #byHash = new Map<string, KnownEntry>();
  readonly #byPlace = new Map<string, KnownEntry>();
  readonly #forgotten = new Set<string>();
  readonly #behind = new Map<string, Behind>();

  /** The log begins behind these objects, under this hash. */
  begin(hash: string, { rows, digest }: Behind): void {
    if (!this.#behind.has(hash)) this.#behind.set(hash, { rows, digest });
  }

  /** The entry; another one that is at the same place, if there is one; and whether no disk had it any more. */
  add(
    bytes: Uint8Array,
    first: Pick<KnownEntry, 'site' | 'atMs'>,
  ): { readonly known: KnownEntry; readonly rival?: KnownEntry; readonly isBack?: boolean } {
    const hash = textOf(entryHash(bytes));
    const there = this.#byHash.get(hash);
    if (there !== undefined) {
      const isBack = this.#forgotten.delete(hash);
      const at = this.at(there.entry.epoch, there.entry.seq);
      if (at === undefined) this.#byPlace.set(placeText(there.entry.epoch, there.entry.seq), there);
      const isRivalled = at !== undefined && at !== there;
      return { known: there, isBack, ...(isRivalled && { rival: at }) };
    }
    const entry = decodeEntry(bytes);
    const known = { entry, hash, prevHash: textOf(entry.prevHash), ...first };
    const rival = this.at(entry.epoch, entry.seq);
    this.#byHash.set(hash, known);
    if (rival !== undefined) return { known, rival };
    this.#byPlace.set(placeText(entry.epoch, entry.seq), known);
    return { known };
  }

  /** No disk has it any more, so another one may stand in its place. */
  forget(known: KnownEntry): void {
    const { epoch, seq } = known.entry;
    this.#forgotten.add(known.hash);
    if (this.at(epoch, seq) === known) this.#byPlace.delete(placeText(epoch, seq));
  }

  /** Whether no disk has it any more. */
  isForgotten({ hash }: KnownEntry): boolean {
    return this.#forgotten.has(hash);
  }

  get size(): number {
    return this.#byHash.size;
  }

  all(): Iterable<KnownEntry> {
    return this.#byHash.values();
  }

  at(epoch: number, seq: number): KnownEntry | undefined {
    return this.#byPlace.get(placeText(epoch, seq));
  }

  withHash(hash: string): KnownEntry | undefined {
    return this.#byHash.get(hash);
  }

  /** Whether anything is known of the place with this hash. */
  knows(hash: string): boolean {
    return this.#byHash.has(hash) || this.#behind.has(hash);
  }

  /** The objects behind the entry with this hash; undefined where not all before it is known. */
  behind(hash: string): Behind | undefined {
    const missing: KnownEntry[] = [];
    let at = hash;
    while (!this.#behind.has(at)) {
      const known = this.#byHash.get(at);
      if (known === undefined) return undefined;
      missing.push(known);
      at = known.prevHash;
    }
    for (const known of missing.reverse()) {
      const before = this.#behind.get(known.prevHash)!;
      this.#behind.set(known.hash, after(before, known.entry));
    }
    return this.#behind.get(hash);
  }

  /** All entries up to the one with this hash, from the first on. */
  upTo(hash: string): readonly KnownEntry[] {
    const chain: KnownEntry[] = [];
    for (let at = this.#byHash.get(hash); at !== undefined; at = this.#byHash.get(at.prevHash)) {
      chain.push(at);
    }
    return chain.reverse();
  }
}

function after(before: Behind, { body }: GlobalEntry): Behind {
  if (body.kind !== 'effects') return before;
  const writes = body.effects.map(({ key, value }): KvWrite => {
    return value === undefined ? { type: 'del', key } : { type: 'put', key, value };
  });
  const { rows, digest } = withWrites(before.rows, writes);
  return { rows, digest };
}

export function placeText(epoch: number, seq: number): string {
  return `${epoch}.${seq}`;
}
