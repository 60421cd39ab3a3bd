// Whether what came can be an answer of an endpoint at all. Servers of other releases may say more or less than this
// one knows, so this looks for what no answer of another program has by accident, and not at every field.

import type { TSchema } from 'typebox';
import { TransportError, type TransportResponse } from './transport.ts';

/** What is looked at of a schema. */
interface ShapeNode {
  readonly type?: string;
  readonly const?: unknown;
  readonly required?: readonly string[];
  readonly items?: ShapeNode;
  readonly patternProperties?: Readonly<Record<string, ShapeNode>>;
}

/** The value of a successful answer. Throws TransportError for what no server of ours would say there. */
export function valueIn(
  schema: TSchema,
  { status, text }: Pick<TransportResponse, 'status' | 'text'>,
): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unreadable(status, 'is no JSON', { cause });
  }
  if (hasShape(schema as ShapeNode, value)) return value;
  throw unreadable(status, NOT_ASKED_FOR);
}

/** `is` says what is wrong with the answer. */
export function unreadable(
  status: number,
  is: string = NOT_ASKED_FOR,
  options?: { readonly cause: unknown },
): TransportError {
  return new TransportError('unreadable', `status ${status}, but the answer ${is}`, options);
}

const NOT_ASKED_FOR = 'is not what was asked for';

/** Of an object at least one of the fields is there that every server of ours sends. */
function hasShape(node: ShapeNode, value: unknown): boolean {
  const { type, required = [], items = {} } = node;
  if (node.const !== undefined) return value === node.const;
  switch (type) {
    case 'array':
      return Array.isArray(value) && value.every((item) => hasShape(items, item));
    case 'object':
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      if (required.length > 0) return required.some((field) => field in value);
      return Object.values(value).every((each) => hasShape(mappedIn(node), each));
    case 'boolean':
    case 'string':
      return typeof value === type;
    default:
      return true;
  }
}

/** What the values of a map are; anything where the schema does not say. */
function mappedIn({ patternProperties = {} }: ShapeNode): ShapeNode {
  return Object.values(patternProperties)[0] ?? {};
}
