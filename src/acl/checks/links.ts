// Links to other objects by id. They are resolved from names before they come here.

import type { PolicyId, RoleId } from '../ids.ts';

/** Of an object, or what those of a draft turned out to mean: then the checks drop repetitions. */
export interface Links {
  readonly policies: readonly PolicyId[];
  readonly roles: readonly RoleId[];
}

/** The ids without repetitions, each at the place where it came first. */
export function uniqueIds<Id extends string>(ids: readonly Id[]): readonly Id[] {
  return ids.length < 2 ? ids : [...new Set(ids)];
}
