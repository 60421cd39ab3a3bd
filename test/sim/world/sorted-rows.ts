// An ordered map that is never changed: putting a row gives another map and shares most of it. So a
// snapshot costs nothing, and what a disk held at any earlier moment is still there. Keys are bytes as
// latin-1 text, which orders as the bytes do.

export interface Row {
  readonly key: string;
  readonly value: Uint8Array;
}

/** What rows come to, worked out from the parts of the map; `join` keeps their order. */
export interface RowsFold<T> {
  readonly none: T;
  of(row: Row): T;
  join(left: T, right: T): T;
}

/** What a fold came to last. */
interface Folded {
  readonly by: object;
  readonly value: unknown;
}

/** A row as all maps share it that have it. */
interface Leaf extends Row {
  readonly weight: number;
  folded: Folded | undefined;
}

/** A treap: ordered by key, heaped by a number that follows from the key, so that it stays shallow. */
interface Branch {
  readonly leaf: Leaf;
  readonly left: Branch | undefined;
  readonly right: Branch | undefined;
  readonly size: number;
  /** Of all rows from here on. */
  folded: Folded | undefined;
}

export interface RowRange {
  /** Included. */
  readonly from: string;
  /** Not included. */
  readonly to: string;
  readonly reverse: boolean;
}

export class SortedRows {
  static readonly EMPTY = new SortedRows(undefined);
  readonly #root: Branch | undefined;

  private constructor(root: Branch | undefined) {
    this.#root = root;
  }

  get size(): number {
    return this.#root?.size ?? 0;
  }

  get(key: string): Uint8Array | undefined {
    let branch = this.#root;
    while (branch !== undefined) {
      const { leaf } = branch;
      if (key === leaf.key) return leaf.value;
      branch = key < leaf.key ? branch.left : branch.right;
    }
    return undefined;
  }

  with(key: string, value: Uint8Array): SortedRows {
    return new SortedRows(
      put(this.#root, { key, value, weight: weightOf(key), folded: undefined }),
    );
  }

  without(key: string): SortedRows {
    if (this.get(key) === undefined) return this;
    return new SortedRows(remove(this.#root, key));
  }

  /** The row at a place in the order. */
  at(place: number): Row | undefined {
    let branch = this.#root;
    let left = place;
    while (branch !== undefined) {
      const before = branch.left?.size ?? 0;
      if (left === before) return branch.leaf;
      if (left < before) {
        branch = branch.left;
      } else {
        left -= before + 1;
        branch = branch.right;
      }
    }
    return undefined;
  }

  *all(): Generator<Row> {
    yield* walkAll(this.#root);
  }

  /** Rows of a range, in order. */
  *rows(range: RowRange): Generator<Row> {
    yield* walk(this.#root, range);
  }

  /** Of all rows. Whatever is shared with a map that was folded so before is not gone through again. */
  fold<T>(fold: RowsFold<T>): T {
    return foldedBranch(this.#root, fold);
  }
}

function put(branch: Branch | undefined, leaf: Leaf): Branch {
  if (branch === undefined) return make(leaf, undefined, undefined);
  const { leaf: own, left, right } = branch;
  if (leaf.key === own.key) return make(leaf, left, right);
  if (leaf.weight > own.weight) {
    const [before, behind] = split(branch, leaf.key);
    return make(leaf, before, behind);
  }
  return leaf.key < own.key ? make(own, put(left, leaf), right) : make(own, left, put(right, leaf));
}

function remove(branch: Branch | undefined, key: string): Branch | undefined {
  if (branch === undefined) return undefined;
  const { leaf, left, right } = branch;
  if (key === leaf.key) return join(left, right);
  return key < leaf.key
    ? make(leaf, remove(left, key), right)
    : make(leaf, left, remove(right, key));
}

/** What is before a key, and what is behind it. */
function split(
  branch: Branch | undefined,
  key: string,
): readonly [Branch | undefined, Branch | undefined] {
  if (branch === undefined) return [undefined, undefined];
  const { leaf, left, right } = branch;
  if (leaf.key < key) {
    const [near, far] = split(right, key);
    return [make(leaf, left, near), far];
  }
  const [near, far] = split(left, key);
  return [near, make(leaf, far, right)];
}

function join(left: Branch | undefined, right: Branch | undefined): Branch | undefined {
  if (left === undefined) return right;
  if (right === undefined) return left;
  return left.leaf.weight > right.leaf.weight
    ? make(left.leaf, left.left, join(left.right, right))
    : make(right.leaf, join(left, right.left), right.right);
}

function make(leaf: Leaf, left: Branch | undefined, right: Branch | undefined): Branch {
  const size = 1 + (left?.size ?? 0) + (right?.size ?? 0);
  return { leaf, left, right, size, folded: undefined };
}

function foldedBranch<T>(branch: Branch | undefined, fold: RowsFold<T>): T {
  if (branch === undefined) return fold.none;
  if (branch.folded?.by === fold) return branch.folded.value as T;
  const before = fold.join(foldedBranch(branch.left, fold), foldedLeaf(branch.leaf, fold));
  const value = fold.join(before, foldedBranch(branch.right, fold));
  branch.folded = { by: fold, value };
  return value;
}

function foldedLeaf<T>(leaf: Leaf, fold: RowsFold<T>): T {
  if (leaf.folded?.by === fold) return leaf.folded.value as T;
  const value = fold.of(leaf);
  leaf.folded = { by: fold, value };
  return value;
}

function* walk(branch: Branch | undefined, range: RowRange): Generator<Row> {
  if (branch === undefined) return;
  const { from, to, reverse } = range;
  const { leaf, left, right } = branch;
  const below = leaf.key > from ? left : undefined;
  const above = leaf.key < to ? right : undefined;
  yield* walk(reverse ? above : below, range);
  if (leaf.key >= from && leaf.key < to) yield leaf;
  yield* walk(reverse ? below : above, range);
}

function* walkAll(branch: Branch | undefined): Generator<Row> {
  if (branch === undefined) return;
  yield* walkAll(branch.left);
  yield branch.leaf;
  yield* walkAll(branch.right);
}

function weightOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < key.length; place += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(place), 0x01000193);
  }
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
}
