// What a text of rules says, as data: the closed lists of keywords and levels and the shape that the
// parser builds, the renderer prints and the authorizer compiles. It decides nothing by itself.

const LEVELS = ['deny', 'read', 'list', 'write'] as const;
export type Level = (typeof LEVELS)[number];

/** Keywords without a label: `acl = "read"`. */
export const FLAT_RESOURCES = ['acl', 'keyring', 'operator', 'mesh', 'peering'] as const;
export type FlatResource = (typeof FLAT_RESOURCES)[number];

/** Keywords with a label: `key "foo" { … }`, each also as `key_prefix`. */
export const NAMED_RESOURCES = [
  'agent',
  'event',
  'key',
  'node',
  'query',
  'service',
  'session',
] as const;
export type NamedResource = (typeof NAMED_RESOURCES)[number];

/** How a label names things: the one of that name, or all whose names begin with it. */
export type Match = 'exact' | 'prefix';

/** A place in the text, both counted from 1; a column is one code point wide. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface FlatRule extends Position {
  readonly resource: FlatResource;
  readonly level: Level;
}

export interface NamedRule extends Position {
  readonly resource: NamedResource;
  readonly match: Match;
  readonly name: string;
  readonly level: Level;
  /** Only for `service`; undefined where the block has no such attribute. */
  readonly intentions: Level | undefined;
}

/** Rules that are decided together: those of a whole text, or those inside one namespace block. */
export interface RuleGroup {
  readonly flat: readonly FlatRule[];
  readonly named: readonly NamedRule[];
}

/** A `namespace` or `namespace_prefix` block; its group holds acl, key, node, service, session. */
export interface NamespaceBlock extends RuleGroup, Position {
  readonly match: Match;
  readonly name: string;
  /** The block's own `policy`: governs the namespace object itself. Undefined: says nothing. */
  readonly level: Level | undefined;
}

export interface RuleWarning extends Position {
  readonly message: string;
}

/**
 * The meaning of one rule text. A resource occurs at most once in `flat`; `named` and `namespaces`
 * keep the order of the text and may repeat a label.
 */
export interface RuleSet extends RuleGroup {
  readonly namespaces: readonly NamespaceBlock[];
  /** What was ignored on the way, in the order of the text; at most WARNINGS_MAX of them. */
  readonly warnings: readonly RuleWarning[];
}

export const WARNINGS_MAX = 100;
