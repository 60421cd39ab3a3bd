// Reads the meaning of a syntax tree: which keyword grants which level on what. Refuses bad levels
// with the place of the culprit, and notes whatever is ignored as a warning.

import { unreachable } from '../../cluster/base/unreachable.ts';
import {
  folded,
  type Keyword,
  keywordOf,
  type NamedKeyword,
  type NamespaceKeyword,
} from './keywords.ts';
import { describeRule, type LabelledBlock, labelledBlocks, refusal } from './labelled-blocks.ts';
import {
  type FlatResource,
  type FlatRule,
  type Level,
  type NamedResource,
  type NamedRule,
  type NamespaceBlock,
  type Position,
  type RuleGroup,
  type RuleSet,
  type RuleWarning,
  WARNINGS_MAX,
} from './rule-set.ts';
import { quoted, syntaxError } from './source-text.ts';
import type { ItemNode, ObjectNode } from './syntax-tree.ts';

/** Throws AclError `invalid` for the first thing in the tree that must not be. */
export function readRules(root: ObjectNode): RuleSet {
  const warnings = new Warnings();
  const group = new GroupReader(warnings);
  const namespaces: NamespaceBlock[] = [];
  for (const item of root.items) {
    const keyword = keywordOf(item.keys[0]);
    if (keyword.kind === 'namespace') {
      for (const block of labelledBlocks(item, keyword)) {
        namespaces.push(readNamespace(block, { keyword, warnings }));
      }
    } else {
      group.read(item, keyword);
    }
  }
  return { ...group.rules(), namespaces, warnings: warnings.list };
}

/** What a namespace block governs beside the namespace object. */
const RESOURCES_IN_NAMESPACE: ReadonlySet<FlatResource | NamedResource> = new Set([
  'acl',
  'key',
  'node',
  'service',
  'session',
] as const);

const NO_LIST: ReadonlySet<Level> = new Set(['deny', 'read', 'write']);
const WITH_LIST: ReadonlySet<Level> = new Set(['deny', 'read', 'list', 'write']);

class Warnings {
  readonly list: RuleWarning[] = [];

  add(position: Position, message: string): void {
    if (this.list.length < WARNINGS_MAX) this.list.push({ message, ...position });
  }
}

/** Collects the rules of one group: the whole text, or one namespace block. */
class GroupReader {
  readonly #warnings: Warnings;
  readonly #flat = new Map<FlatResource, FlatRule | undefined>();
  readonly #named: NamedRule[] = [];

  constructor(warnings: Warnings) {
    this.#warnings = warnings;
  }

  read(item: ItemNode, keyword: Keyword): void {
    const [key] = item.keys;
    switch (keyword.kind) {
      case 'flat':
        this.#readFlat(item, keyword.resource);
        return;
      case 'named':
        for (const block of labelledBlocks(item, keyword)) {
          this.#named.push(readNamedRule(block, { keyword, warnings: this.#warnings }));
        }
        return;
      case 'namespace':
        this.#warnings.add(key.position, `${keyword.text} inside a namespace block is ignored`);
        return;
      case 'ignored':
        this.#warnings.add(key.position, `${quoted(key.text)} ${keyword.reason}`);
        return;
      default:
        unreachable(keyword);
    }
  }

  rules(): RuleGroup {
    const flat = [...this.#flat.values()].filter((rule) => rule !== undefined);
    return { flat, named: this.#named };
  }

  /** An argument that is given again replaces the earlier one, also by nothing. */
  #readFlat(item: ItemNode, resource: FlatResource): void {
    const [{ position }] = item.keys;
    const text = textOf(item, `root.${resource}`);
    if (this.#flat.has(resource)) {
      this.#warnings.add(position, `${resource} is given again; the last one counts`);
    }
    const level = levelOf(text, NO_LIST);
    if (text !== '' && level === undefined) {
      throw refusal(`Invalid ${resource} policy: ${quoted(text)}`, item.value.position);
    }
    this.#flat.set(resource, level === undefined ? undefined : { resource, level, ...position });
  }
}

interface BlockContext<K> {
  readonly keyword: K;
  readonly warnings: Warnings;
}

function readNamedRule(block: LabelledBlock, context: BlockContext<NamedKeyword>): NamedRule {
  const { resource, match, text } = context.keyword;
  const found = { policy: new Attribute(), intentions: new Attribute() };
  for (const item of block.attributes) {
    const name = folded(item.keys[0].text);
    if (name === 'policy') found.policy.read(item, { of: text, warnings: context.warnings });
    else if (name === 'intentions' && resource === 'service') {
      found.intentions.read(item, { of: text, warnings: context.warnings });
    } else warnAboutAttribute(item, context);
  }
  const written = {
    name: block.label,
    policy: found.policy.text,
    intentions: found.intentions.text,
  };
  const level = levelOf(written.policy, resource === 'key' ? WITH_LIST : NO_LIST);
  if (level === undefined) {
    const place = found.policy.position ?? block.position;
    throw refusal(`Invalid ${text} policy: ${describeRule(resource, written)}`, place);
  }
  const intentions = levelOf(written.intentions, NO_LIST);
  if (written.intentions !== '' && intentions === undefined) {
    const place = found.intentions.position ?? block.position;
    throw refusal(`Invalid ${text} intentions policy: ${describeRule(resource, written)}`, place);
  }
  return { resource, match, name: block.label, level, intentions, ...block.position };
}

function readNamespace(
  block: LabelledBlock,
  context: BlockContext<NamespaceKeyword>,
): NamespaceBlock {
  const { match, text } = context.keyword;
  const group = new GroupReader(context.warnings);
  const policy = new Attribute();
  for (const item of block.attributes) {
    const [key] = item.keys;
    const keyword = keywordOf(key);
    if (folded(key.text) === 'policy') {
      policy.read(item, { of: text, warnings: context.warnings });
    } else if ('resource' in keyword && !RESOURCES_IN_NAMESPACE.has(keyword.resource)) {
      const what = quoted(key.text);
      context.warnings.add(key.position, `${what} does not belong to a namespace and is ignored`);
    } else {
      group.read(item, keyword);
    }
  }
  const level = levelOf(policy.text, NO_LIST);
  if (policy.text !== '' && level === undefined) {
    throw refusal(
      `Invalid ${text} policy: ${quoted(policy.text)}`,
      policy.position ?? block.position,
    );
  }
  return { match, name: block.label, level, ...group.rules(), ...block.position };
}

/** A text-valued attribute of a block; the last one counts. */
class Attribute {
  text = '';
  position: Position | undefined;

  read(item: ItemNode, context: { readonly of: string; readonly warnings: Warnings }): void {
    const name = folded(item.keys[0].text);
    if (this.position !== undefined) {
      context.warnings.add(item.keys[0].position, `${name} is given again; the last one counts`);
    }
    this.text = textOf(item, `root.${context.of}.${name}`);
    this.position = item.value.position;
  }
}

function warnAboutAttribute(item: ItemNode, context: BlockContext<NamedKeyword>): void {
  const [key] = item.keys;
  const message = `${quoted(key.text)} is not an attribute of ${context.keyword.text} and ignored`;
  context.warnings.add(key.position, message);
}

/** The text of an argument; '' for null. Numbers give their digits, which then are no level. */
function textOf(item: ItemNode, path: string): string {
  const [, label] = item.keys;
  const { value } = item;
  const problem = (position: Position, type: string) =>
    syntaxError(position, `${path}: unknown type for string *ast.${type}`);
  if (label !== undefined) throw problem(label.position, 'ObjectList');
  switch (value.kind) {
    case 'string':
    case 'number':
      return value.text;
    case 'null':
      return '';
    case 'float':
    case 'bool':
      throw problem(value.position, 'LiteralType');
    case 'list':
      throw problem(value.position, 'ListType');
    case 'object':
      throw problem(value.position, 'ObjectList');
    default:
      return unreachable(value);
  }
}

function levelOf(text: string, allowed: ReadonlySet<Level>): Level | undefined {
  const lowered = text.toLowerCase();
  return [...allowed].find((level) => level === lowered);
}
