// A row that holds ids, for objects that are read at once: 16 bytes each, ascending, each once. Such a list can be
// long, and a command can take all of it away, one id after the other: each step costs a copy of it, and no more.

const ID_BYTES = 16;

/** The ids of a list; undefined: of none. */
export function idsOf(list: Uint8Array | undefined): readonly Uint8Array[] {
  if (list === undefined) return [];
  return Array.from({ length: list.length / ID_BYTES }, (_, place) =>
    list.subarray(place * ID_BYTES, (place + 1) * ID_BYTES),
  );
}

/** The list with that id in it. */
export function withId(list: Uint8Array, id: Uint8Array): Uint8Array {
  const { at, isThere } = placeOf(list, id);
  return isThere ? list : Buffer.concat([list.subarray(0, at), id, list.subarray(at)]);
}

/** The list without that id. */
export function withoutId(list: Uint8Array, id: Uint8Array): Uint8Array {
  const { at, isThere } = placeOf(list, id);
  return isThere ? Buffer.concat([list.subarray(0, at), list.subarray(at + ID_BYTES)]) : list;
}

/** Where the id stands in the list, or would stand. */
function placeOf(list: Uint8Array, id: Uint8Array): { at: number; isThere: boolean } {
  const bytes = Buffer.from(list.buffer, list.byteOffset, list.length);
  const compared = (place: number): number =>
    bytes.compare(id, 0, ID_BYTES, place * ID_BYTES, (place + 1) * ID_BYTES);
  let [low, high] = [0, list.length / ID_BYTES];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (compared(middle) < 0) low = middle + 1;
    else high = middle;
  }
  const isThere = low * ID_BYTES < list.length && compared(low) === 0;
  return { at: low * ID_BYTES, isThere };
}
