// The bytes of a call or its answer: positional msgpack, the first field the number of the format. Nothing
// that came over the wire is trusted before it has the shape that it should have.

import { Packr } from 'msgpackr';
import { checkMsgpack } from './check-msgpack.ts';
import { type Fields, fieldsFromTo } from './shape.ts';
import { WireDamage } from './wire-damage.ts';

const packr = new Packr({ useRecords: false });

/** A later layout of a payload has another number. */
const FORMAT = 1;

/** The bytes belong to the caller. */
export function packed(...fields: readonly unknown[]): Uint8Array {
  return packr.pack([FORMAT, ...fields]);
}

/** The fields behind the format: so many, and in later layouts up to `countMax`. Throws WireDamage. */
export function unpacked(
  bytes: Uint8Array,
  what: string,
  count: number,
  countMax: number = count,
): Fields {
  const all = fieldsFromTo(valueIn(bytes, what), what, count + 1, countMax + 1);
  const [format, ...fields] = all;
  if (format !== FORMAT) throw new WireDamage(`${what} has the format ${String(format)}`);
  return fields;
}

function valueIn(bytes: Uint8Array, what: string): unknown {
  checkMsgpack(bytes);
  try {
    return packr.unpack(bytes);
  } catch (error) {
    throw new WireDamage(`${what} is no msgpack`, { cause: error });
  }
}
