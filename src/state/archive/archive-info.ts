// What an archive says of itself, whatever its format: JSON in UTF-8, for people and for looking into a file
// without reading all of it.

import type { Totals } from '../rows/meta.ts';

export interface ArchiveInfo {
  /** The version of the program that wrote it. */
  readonly release: string;
  readonly datacenter: string;
  /** The id of the group; empty when it had none. */
  readonly cluster: string;
  /** Milliseconds since 1970, by the clock of the server that wrote it. */
  readonly createdMs: number;
  /** The datacenter's index, which users see. */
  readonly index: number;
  /** `epoch.seq` of the global log. */
  readonly position: string;
  /** Of the datacenter's log: the last entry that is in it. */
  readonly logIndex: number;
  readonly logTerm: number;
  readonly totals: Totals;
}

const TEXTS = ['release', 'datacenter', 'cluster', 'position'] as const;
const NUMBERS = ['createdMs', 'index', 'logIndex', 'logTerm'] as const;
const COUNTS: readonly (keyof Totals)[] = [
  'tokens',
  'policies',
  'roles',
  'authMethods',
  'bindingRules',
  'localTokens',
  'namespaces',
];

type Fields = Partial<Record<string, unknown>>;

/** Later releases may say more; what this one knows must be there. Throws TypeError. */
export function checkedInfo(value: unknown): ArchiveInfo {
  const fields = value as Fields & { readonly totals: Fields };
  const totals: Fields = fields.totals;
  const isWhole =
    TEXTS.every((name) => typeof fields[name] === 'string') &&
    NUMBERS.every((name) => Number.isSafeInteger(fields[name])) &&
    COUNTS.every((name) => Number.isSafeInteger(totals[name]));
  if (!isWhole) throw new TypeError('a field of what the archive says of itself is missing');
  return value as ArchiveInfo;
}
