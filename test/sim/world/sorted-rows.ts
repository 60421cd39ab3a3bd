// An ordered map that is never changed: putting a row gives another map and shares most of it. So a
// snapshot costs nothing, and what a disk held at any earlier moment is still there. Keys are bytes as
// latin-1 text, which orders as the bytes do.

/** A treap: ordered by key, heaped by a number that follows from the key, so that it stays shallow. */
interface Branch {
  readonly key: string;
  readonly value: Uint8Array;
  readonly weight: number;
  readonly left: Branch | undefined;
  readonly right: Branch | undefined;
  readonly size: number;
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
      if (key === branch.key) return branch.value;
      branch = key < branch.key ? branch.left : branch.right;
    }
    return undefined;
  }

  with(key: string, value: Uint8Array): SortedRows {
    return new SortedRows(put(this.#root, key, value, weightOf(key)));
  }

  without(key: string): SortedRows {
    if (this.get(key) === undefined) return this;
    return new SortedRows(remove(this.#root, key));
  }

  /** The row at a place in the order. */
  at(place: number): { readonly key: string; readonly value: Uint8Array } | undefined {
    let branch = this.#root;
    let left = place;
    while (branch !== undefined) {
      const before = branch.left?.size ?? 0;
      if (left === before) return branch;
      if (left < before) {
        branch = branch.left;
      } else {
        left -= before + 1;
        branch = branch.right;
      }
    }
    return undefined;
  }

  *all(): Generator<{ readonly key: string; readonly value: Uint8Array }> {
    yield* walkAll(this.#root);
  }

  /** Rows of a range, in order. */
  *rows(range: RowRange): Generator<{ readonly key: string; readonly value: Uint8Array }> {
    yield* walk(this.#root, range);
  }
}

function put(branch: Branch | undefined, key: string, value: Uint8Array, weight: number): Branch {
  if (branch === undefined) return make(key, value, weight, undefined, undefined);
  if (key === branch.key) return make(key, value, weight, branch.left, branch.right);
  if (weight > branch.weight) {
    const [left, right] = split(branch, key);
    return make(key, value, weight, left, right);
  }
  const { left, right } = branch;
  return key < branch.key
    ? make(branch.key, branch.value, branch.weight, put(left, key, value, weight), right)
    : make(branch.key, branch.value, branch.weight, left, put(right, key, value, weight));
}

function remove(branch: Branch | undefined, key: string): Branch | undefined {
  if (branch === undefined) return undefined;
  const { left, right } = branch;
  if (key === branch.key) return join(left, right);
  return key < branch.key
    ? make(branch.key, branch.value, branch.weight, remove(left, key), right)
    : make(branch.key, branch.value, branch.weight, left, remove(right, key));
}

/** What is before a key, and what is behind it. */
function split(
  branch: Branch | undefined,
  key: string,
): readonly [Branch | undefined, Branch | undefined] {
  if (branch === undefined) return [undefined, undefined];
  const { left, right } = branch;
  if (branch.key < key) {
    const [near, far] = split(right, key);
    return [make(branch.key, branch.value, branch.weight, left, near), far];
  }
  const [near, far] = split(left, key);
  return [near, make(branch.key, branch.value, branch.weight, far, right)];
}

function join(left: Branch | undefined, right: Branch | undefined): Branch | undefined {
  if (left === undefined) return right;
  if (right === undefined) return left;
  return left.weight > right.weight
    ? make(left.key, left.value, left.weight, left.left, join(left.right, right))
    : make(right.key, right.value, right.weight, join(left, right.left), right.right);
}

function make(
  key: string,
  value: Uint8Array,
  weight: number,
  left: Branch | undefined,
  right: Branch | undefined,
): Branch {
  return { key, value, weight, left, right, size: 1 + (left?.size ?? 0) + (right?.size ?? 0) };
}

function* walk(branch: Branch | undefined, range: RowRange): Generator<Branch> {
  if (branch === undefined) return;
  const { from, to, reverse } = range;
  const { key, left, right } = branch;
  const below = key > from ? left : undefined;
  const above = key < to ? right : undefined;
  yield* walk(reverse ? above : below, range);
  if (key >= from && key < to) yield branch;
  yield* walk(reverse ? below : above, range);
}

function* walkAll(branch: Branch | undefined): Generator<Branch> {
  if (branch === undefined) return;
  yield* walkAll(branch.left);
  yield branch;
  yield* walkAll(branch.right);
}

function weightOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < key.length; place += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(place), 0x01000193);
  }
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
}
