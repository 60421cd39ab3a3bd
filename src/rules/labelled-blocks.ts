// Finds the labelled blocks in all the forms that HCL 1 and JSON have for them. What the attributes
// of a block mean is read elsewhere.

import { type AclError, invalid } from '../acl/error.ts';
import { folded, type NamedKeyword, type NamespaceKeyword } from './keywords.ts';
import type { NamedResource, Position } from './rule-set.ts';
import { placeOf, quoted, syntaxError } from './source-text.ts';
import type {
  ItemNode,
  KeyNode,
  ListNode,
  LiteralNode,
  ObjectNode,
  ValueNode,
} from './syntax-tree.ts';

/** One labelled block, before its attributes are looked at. */
export interface LabelledBlock {
  readonly label: string;
  readonly position: Position;
  readonly attributes: readonly ItemNode[];
}

/**
 * The blocks that one item stands for: `key "a" {…}` is one, `key {a {…} b {…}}` and the JSON forms
 * may be several, each of them perhaps a list of blocks.
 */
export function labelledBlocks(
  item: ItemNode,
  keyword: NamedKeyword | NamespaceKeyword,
): readonly LabelledBlock[] {
  const [key, label, ...more] = item.keys;
  if (label !== undefined) {
    if (more.length > 0) throw bareLabel(keyword, label);
    return blocksOf({ label, position: key.position, value: item.value }, keyword);
  }
  return objectsIn(item.value).flatMap((object) =>
    object.items.flatMap((inner) => {
      if (inner.keys.length > 1) throw bareLabel(keyword, inner.keys[0]);
      const [innerLabel] = inner.keys;
      return blocksOf(
        { label: innerLabel, position: innerLabel.position, value: inner.value },
        keyword,
      );
    }),
  );
}

function objectsIn(value: ValueNode): readonly ObjectNode[] {
  if (value.kind === 'object') return [value];
  if (value.kind !== 'list') {
    throw syntaxError(value.position, 'unknown slice type: *ast.LiteralType');
  }
  requireBlocks(value);
  return value.elements.map((element) => {
    if (element.kind === 'object') return element;
    throw syntaxError(element.position, 'not an object type for struct (*ast.LiteralType)');
  });
}

function blocksOf(
  block: { readonly label: KeyNode; readonly position: Position; readonly value: ValueNode },
  keyword: NamedKeyword | NamespaceKeyword,
): readonly LabelledBlock[] {
  const { label, position, value } = block;
  if (value.kind === 'object') return [{ label: label.text, position, attributes: value.items }];
  if (value.kind === 'list') {
    if (value.elements.length === 0) throw bareLabel(keyword, label);
    requireBlocks(value);
    return value.elements.map((element) => {
      if (element.kind !== 'object') throw bareLabel(keyword, label);
      return { label: label.text, position: element.position, attributes: element.items };
    });
  }
  return [blockWithoutLabel(label, value, keyword)];
}

/** Deployed servers take a list of blocks in JSON alone; an empty one says nothing. */
function requireBlocks({ elements, mayBeBlocks, position }: ListNode): void {
  if (mayBeBlocks || elements.length === 0) return;
  throw syntaxError(position, 'not an object type for struct (*ast.ListType)');
}

/** `key { policy = "read" }` is, in HCL 1, a block with the label `policy` and that very policy. */
function blockWithoutLabel(
  label: KeyNode,
  value: LiteralNode,
  keyword: NamedKeyword | NamespaceKeyword,
): LabelledBlock {
  if (keyword.kind === 'namespace' || folded(label.text) !== 'policy') {
    throw bareLabel(keyword, label);
  }
  return { label: label.text, position: label.position, attributes: [{ keys: [label], value }] };
}

/** A label that no block with a policy belongs to. */
function bareLabel(keyword: NamedKeyword | NamespaceKeyword, label: KeyNode): AclError {
  const rule =
    keyword.kind === 'namespace'
      ? `${quoted(label.text)} is not followed by a block`
      : describeRule(keyword.resource, { name: label.text, policy: '', intentions: '' });
  return refusal(`Invalid ${keyword.text} policy: ${rule}`, label.position);
}

/** The form in which deployed servers print a rule, by resource: its type and its fields. */
const PRINTED_RULES: Readonly<
  Record<NamedResource, { readonly type: string; readonly nameField: string }>
> = {
  agent: { type: 'AgentRule', nameField: 'Node' },
  event: { type: 'EventRule', nameField: 'Event' },
  key: { type: 'KeyRule', nameField: 'Prefix' },
  node: { type: 'NodeRule', nameField: 'Name' },
  query: { type: 'PreparedQueryRule', nameField: 'Prefix' },
  service: { type: 'ServiceRule', nameField: 'Name' },
  session: { type: 'SessionRule', nameField: 'Node' },
};
const PRINTED_WITH_EXTENSION: ReadonlySet<NamedResource> = new Set(['key', 'node', 'service']);

/** A rule as deployed servers print it in a refusal. */
export function describeRule(
  resource: NamedResource,
  written: { readonly name: string; readonly policy: string; readonly intentions: string },
): string {
  const { type, nameField } = PRINTED_RULES[resource];
  const fields = [`${nameField}:${quoted(written.name)}`, `Policy:${quoted(written.policy)}`];
  if (resource === 'service') fields.push(`Intentions:${quoted(written.intentions)}`);
  if (PRINTED_WITH_EXTENSION.has(resource)) fields.push('EnterpriseRule:acl.EnterpriseRule{}');
  return `&acl.${type}{${fields.join(', ')}}`;
}

/** The refusal of something that parses and has no meaning. */
export function refusal(message: string, position: Position): AclError {
  return invalid(`${message} at ${placeOf(position)}`);
}
