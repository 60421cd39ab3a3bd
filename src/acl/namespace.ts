// A namespace: a room of its own for names, with policies and roles that apply by default in it.

import type { NamespaceName, PolicyId, RoleId } from './ids.ts';

export interface Namespace {
  readonly name: NamespaceName;
  readonly description: string;
  readonly policyDefaults: readonly PolicyId[];
  readonly roleDefaults: readonly RoleId[];
  readonly meta: Readonly<Record<string, string>>;
  readonly createIndex: number;
  readonly modifyIndex: number;
}
