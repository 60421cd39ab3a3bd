// What rights and writes hang on, each by a name: an object that may change, or what stands for more than one.
// Caches forget by it, and a write waits while anything that it was checked against is being changed.

import { nameKey } from '../acl/values/names.ts';
import type { TableName } from '../state/view.ts';

/** What an applied change of an object is known by: its table and its id or name. */
export function dependencyOf(table: TableName, id: string): string {
  return `${table} ${id.toLowerCase()}`;
}

/** An auth method with its binding rules. */
export function methodDependency(namespace: string, name: string): string {
  return dependencyOf('auth-methods', `${namespace} ${nameKey(name)}`);
}

/** Whether there was a bootstrap. */
export const BOOTSTRAP_DEPENDENCY = 'bootstrap';

/** Each object there is. */
export const EVERYTHING = 'everything';
