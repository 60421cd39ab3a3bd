// A policy: a named set of rules.

import type { NamespaceName, PolicyId } from './ids.ts';

export interface Policy {
  readonly id: PolicyId;
  readonly name: string;
  readonly namespace: NamespaceName;
  readonly description: string;
  /** The text as it was given; src/rules reads it. */
  readonly rules: string;
  /** Empty: valid in all datacenters, also future ones. */
  readonly datacenters: readonly string[];
  readonly hash: string;
  readonly createIndex: number;
  readonly modifyIndex: number;
}
