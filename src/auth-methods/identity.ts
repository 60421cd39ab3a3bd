// What a validator says about whoever logs in, and which names an auth method may speak of. Maps, not
// objects: the names come from outside, and `__proto__` is a claim like any other.

export interface Attributes {
  readonly strings: ReadonlyMap<string, string>;
  readonly lists: ReadonlyMap<string, readonly string[]>;
}

/** A validated outside identity. Holds no credential. */
export interface Identity {
  /** What selectors see, by full name such as `value.team`. */
  readonly selectable: Attributes;
  /** What `${…}` sees; a subset of the strings above. */
  readonly interpolatable: ReadonlyMap<string, string>;
  /** Where its token is to be, as the auth method maps it. Absent: as namespace rules say. */
  readonly mappedNamespace?: string;
}

/** The fields that a selector may name. A map allows any key below it, present or not. */
export interface FieldTable {
  readonly strings: readonly string[];
  readonly stringMaps: readonly string[];
  readonly listMaps: readonly string[];
  /** Texts in maps, by full name, that read as empty where the identity has none. */
  readonly emptyWhenAbsent?: ReadonlySet<string>;
  /** Regular expressions are refused: they cost more than a request of somebody with few rights may. */
  readonly refusesPatterns?: true;
}

export interface AttributeNames {
  readonly selectable: FieldTable;
  readonly interpolatable: readonly string[];
}
