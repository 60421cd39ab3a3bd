// A node's number in its group, from the id in its data folder: a new disk has a new id, and so is a
// new member, which owes nobody what the old one promised.

import { assert } from '../../base/assert.ts';
import type { NodeId } from '../../raft/node-id.ts';

/** Hexadecimal digits that are taken: 48 random bits, well below 2^53. */
const DIGITS = 12;

/** Whether the text is a uuid that has a number. */
export function isNodeId(text: string): boolean {
  return numberOf(text) > 0;
}

/** From the first 48 bits of a uuid. Throws on another text, and on the one id in 2^48 that gives 0. */
export function nodeNumberOf(uuid: string): NodeId {
  const node = numberOf(uuid);
  assert(node > 0, 'the id of a node is a uuid that does not begin with zeros', { uuid });
  return node;
}

/** 0 for what is no id of a node. */
function numberOf(text: string): number {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return 0;
  return Number.parseInt(text.replaceAll('-', '').slice(0, DIGITS), 16);
}
