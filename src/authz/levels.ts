// Arithmetic of levels: which accesses one grants, and which of two wins when rules merge.

import type { Level } from '../rules/rule-set.ts';
import type { PlainAccess } from './access-query.ts';

const GRANTS: Readonly<Record<Level, ReadonlySet<PlainAccess>>> = {
  deny: new Set(),
  read: new Set(['read']),
  list: new Set(['read', 'list']),
  write: new Set(['read', 'list', 'write']),
};

/** The higher wins, so that one policy's deny cannot be undone by another policy. */
const PRECEDENCE: Readonly<Record<Level, number>> = { deny: 4, write: 3, list: 2, read: 1 };

/** compatibility.md 5.5. */
export function grants(level: Level, access: PlainAccess): boolean {
  return GRANTS[level].has(access);
}

/** The level that stands when rules of the same label say both (compatibility.md 5.4). */
export function dominant(a: Level, b: Level): Level {
  return PRECEDENCE[a] >= PRECEDENCE[b] ? a : b;
}
