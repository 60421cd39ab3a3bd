// Whether what came can be an answer of an endpoint at all. Servers of other releases may say more or less than this
// one knows, so this looks for what no answer of another program has by accident, and not at every field.

import type { TSchema } from 'typebox';

/** What is looked at of a schema. */
interface ShapeNode {
  readonly type?: string;
  readonly required?: readonly string[];
  readonly items?: ShapeNode;
}

/** Of an object at least one of the fields is there that every server of ours sends. */
export function canAnswer(schema: TSchema, value: unknown): boolean {
  return hasShape(schema as ShapeNode, value);
}

function hasShape({ type, required = [], items = {} }: ShapeNode, value: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value) && value.every((item) => hasShape(items, item));
    case 'object':
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      return required.length === 0 || required.some((field) => field in value);
    case 'boolean':
    case 'string':
      return typeof value === type;
    default:
      return true;
  }
}
