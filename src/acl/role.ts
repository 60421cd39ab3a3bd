// A role: a named set of policies and identities.

import type { NodeIdentity, ServiceIdentity, TemplatedPolicy } from './identities.ts';
import type { NamespaceName, PolicyId, RoleId } from './ids.ts';

export interface Role {
  readonly id: RoleId;
  readonly name: string;
  readonly namespace: NamespaceName;
  readonly description: string;
  readonly policies: readonly PolicyId[];
  readonly serviceIdentities: readonly ServiceIdentity[];
  readonly nodeIdentities: readonly NodeIdentity[];
  readonly templatedPolicies: readonly TemplatedPolicy[];
  readonly hash: string;
  readonly createIndex: number;
  readonly modifyIndex: number;
}
