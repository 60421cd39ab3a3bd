// The one row that says how far the state is: the last applied entry, the index, the position, the
// digests, the totals and who belongs to the group. It is written in the same batch as the effects that
// it speaks of, and held in memory, so that asking for it costs nothing.

import type { LogWitness } from '../../../cluster/log/log-entry.ts';
import { FIRST_LEVEL } from '../commands/feature-levels.ts';
import type { Position } from '../global-log/cursor.ts';
import type { ObjectCounts, TableName } from '../view.ts';
import { type Fields, pack, requireFormat, unpack } from './layout/packing.ts';

export interface Meta {
  /** Undefined before the first entry. */
  readonly appliedEntry: LogWitness | undefined;
  /** The Lamport counter; 0 before the first change. */
  readonly index: number;
  readonly position: Position;
  /** Index of the last change of each table; 0 for none. */
  readonly tableIndexes: Readonly<Record<TableName, number>>;
  readonly bootstrapIndex: number | undefined;
  readonly globalDigest: Uint8Array;
  readonly fullDigest: Uint8Array;
  readonly totals: Totals;
  /** Who belongs to the group that agrees on the log: bytes that mean nothing here. */
  readonly groupRecord: Uint8Array | undefined;
  /** The level of what the log may say: see feature-levels.ts. */
  readonly level: number;
}

export type Totals = ObjectCounts & {
  readonly localTokens: number;
  readonly namespaces: number;
};

const NO_COUNTS: ObjectCounts = {
  tokens: 0,
  policies: 0,
  roles: 0,
  authMethods: 0,
  bindingRules: 0,
};

export const EMPTY_META: Meta = {
  appliedEntry: undefined,
  index: 0,
  position: { epoch: 1, seq: 0 },
  tableIndexes: {
    tokens: 0,
    policies: 0,
    roles: 0,
    'auth-methods': 0,
    'binding-rules': 0,
    namespaces: 0,
  },
  bootstrapIndex: undefined,
  globalDigest: new Uint8Array(32),
  fullDigest: new Uint8Array(32),
  totals: { ...NO_COUNTS, localTokens: 0, namespaces: 0 },
  groupRecord: undefined,
  level: FIRST_LEVEL,
};

/** Format 1 ended before the group record. */
const FORMAT_WITHOUT_GROUP = 1;
/** Has no level. Written as long as that is the first one, so that an older release can go on with it. */
const FORMAT_WITHOUT_LEVEL = 2;
const FORMAT = 3;
const COUNTS_FORMAT = 1;

export function encodeMeta(meta: Meta): Uint8Array {
  const { appliedEntry, tableIndexes: at, totals } = meta;
  const isFirstLevel = meta.level === FIRST_LEVEL;
  const fields = [
    isFirstLevel ? FORMAT_WITHOUT_LEVEL : FORMAT,
    appliedEntry === undefined ? null : [appliedEntry.index, appliedEntry.term, appliedEntry.hash],
    meta.index,
    [meta.position.epoch, meta.position.seq],
    [at.tokens, at.policies, at.roles, at['auth-methods'], at['binding-rules'], at.namespaces],
    meta.bootstrapIndex ?? null,
    meta.globalDigest,
    meta.fullDigest,
    totalsFields(totals),
    meta.groupRecord ?? null,
  ];
  return pack(isFirstLevel ? fields : [...fields, meta.level]);
}

export function decodeMeta(value: Uint8Array): Meta {
  const fields = unpack(value);
  const [format, applied, index, position, tables, bootstrap, globalDigest, fullDigest] = fields;
  if (format !== FORMAT_WITHOUT_GROUP && format !== FORMAT_WITHOUT_LEVEL) {
    requireFormat('meta row', format, FORMAT);
  }
  const [epoch, seq] = position as readonly number[];
  const [tokens, policies, roles, methods, rules, namespaces] = tables as readonly number[];
  const [totals, groupRecord = null, level = FIRST_LEVEL] = fields.slice(8);
  return {
    appliedEntry: applied === null ? undefined : appliedEntryOf(applied as Fields),
    index,
    position: { epoch, seq },
    tableIndexes: {
      tokens,
      policies,
      roles,
      'auth-methods': methods,
      'binding-rules': rules,
      namespaces,
    },
    bootstrapIndex: bootstrap ?? undefined,
    globalDigest,
    fullDigest,
    totals: countsTotals(totals as Fields),
    groupRecord: groupRecord ?? undefined,
    level,
  } as Meta;
}

function appliedEntryOf([index, term, hash]: Fields): LogWitness {
  return { index, term, hash } as LogWitness;
}

export function totalsFields(totals: Totals): Fields {
  return [...countFields(totals), totals.localTokens, totals.namespaces];
}

export function countsTotals(fields: Fields): Totals {
  const counts = fields as readonly number[];
  return { ...countsOf(counts), localTokens: counts[5], namespaces: counts[6] } as Totals;
}

function countFields(counts: ObjectCounts): readonly number[] {
  const { tokens, policies, roles, authMethods, bindingRules } = counts;
  return [tokens, policies, roles, authMethods, bindingRules];
}

function countsOf(fields: readonly number[]): ObjectCounts {
  const [tokens = 0, policies = 0, roles = 0, authMethods = 0, bindingRules = 0] = fields;
  return { tokens, policies, roles, authMethods, bindingRules };
}

/** The value of a namespace's counts row. */
export function encodeCounts(counts: ObjectCounts): Uint8Array {
  return pack([COUNTS_FORMAT, ...countFields(counts)]);
}

export function decodeCounts(value: Uint8Array | undefined): ObjectCounts {
  if (value === undefined) return NO_COUNTS;
  const [format, ...fields] = unpack(value);
  requireFormat('counts row', format, COUNTS_FORMAT);
  return countsOf(fields as readonly number[]);
}
