// The counters of the service, by the names that dashboards of such services look for. Labels come
// from closed lists or from names that an operator gave; never from a request.

export const COUNTER_NAMES = [
  'acl.token.upsert',
  'acl.token.clone',
  'acl.token.delete',
  'acl.policy.upsert',
  'acl.policy.delete',
  'acl.role.upsert',
  'acl.role.delete',
  'acl.authmethod.upsert',
  'acl.authmethod.delete',
  'acl.bindingrule.upsert',
  'acl.bindingrule.delete',
  'acl.namespace.upsert',
  'acl.namespace.delete',
  'acl.bootstrap',
  /** Labels: `method`, `result`. */
  'acl.login',
  'acl.logout',
  /** Label: `reason`. */
  'acl.denied',
  /** Whether the caller's token was found in the cache of tokens. */
  'acl.token.cache_hit',
  'acl.token.cache_miss',
  /** Void tokens that the reaper deleted. */
  'acl.token.reaped',
] as const;

export type CounterName = (typeof COUNTER_NAMES)[number];

export interface Metrics {
  /** Adds one, or `by`. */
  count(name: CounterName, labels?: Readonly<Record<string, string>>, by?: number): void;
}
