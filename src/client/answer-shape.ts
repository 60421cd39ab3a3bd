// Whether what came can be an answer of an endpoint at all. Servers of other releases may say more or less than this
// one knows, so what is missing is not asked for. What is there is what it should be: it is shown, and written back.

import type { TSchema } from 'typebox';
import { TransportError, type TransportResponse } from './transport.ts';

/** What is looked at of a schema. */
interface ShapeNode {
  readonly type?: string;
  readonly const?: unknown;
  readonly anyOf?: readonly ShapeNode[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, ShapeNode>>;
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
  const { anyOf, type, items = {} } = node;
  if (anyOf !== undefined) return anyOf.some((each) => hasShape(each, value));
  if (node.const !== undefined) return value === node.const;
  switch (type) {
    case 'array':
      return Array.isArray(value) && value.every((item) => hasShape(items, item));
    case 'object':
      return typeof value === 'object' && value !== null && hasFields(node, value);
    case 'null':
      return value === null;
    case 'integer':
      return typeof value === 'number';
    case 'boolean':
    case 'number':
    case 'string':
      return typeof value === type;
    default:
      return true;
  }
}

function hasFields(node: ShapeNode, value: object): boolean {
  const { required = [], properties = {}, patternProperties = {} } = node;
  if (Array.isArray(value)) return false;
  if (required.length > 0 && !required.some((field) => field in value)) return false;
  const [mapped = {}] = Object.values(patternProperties);
  return Object.entries(value).every(([field, each]) => {
    // Null stands for what is not there.
    const isLeftOut = each === null && !required.includes(field);
    return isLeftOut || hasShape(properties[field] ?? mapped, each);
  });
}
