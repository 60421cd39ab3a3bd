// The questions that an authorizer answers: closed lists of what may be asked, and of what.

import type { NamespaceName } from '../acl/ids.ts';

/** What a rule level grants or withholds on one thing. */
export type PlainAccess = 'read' | 'list' | 'write';

interface AccessByResource {
  readonly acl: 'read' | 'write';
  readonly keyring: 'read' | 'write';
  readonly operator: 'read' | 'write';
  readonly mesh: 'read' | 'write';
  readonly peering: 'read' | 'write';
  /** Taking one and restoring one both need `acl:write` in the default namespace. */
  readonly snapshot: 'read' | 'write';
  readonly agent: 'read' | 'write';
  readonly event: 'read' | 'write';
  readonly query: 'read' | 'write';
  readonly session: 'read' | 'write';
  /** The segment `*` asks for any service (read) or all of them (write). */
  readonly intention: 'read' | 'write';
  /** `write-prefix` asks for all keys that begin with the segment. */
  readonly key: 'read' | 'list' | 'write' | 'write-prefix';
  readonly node: 'read' | 'write' | 'read-all';
  readonly service: 'read' | 'write' | 'read-all' | 'write-any';
  /** The namespace object that the segment names. */
  readonly namespace: 'read' | 'write';
}

export type Resource = keyof AccessByResource;

/** One question. `read-all` and `write-any` and resources without names ignore the segment. */
export type AccessQuery = {
  readonly [R in Resource]: {
    readonly resource: R;
    readonly access: AccessByResource[R];
    /** The exact name, or for `write-prefix` the prefix. */
    readonly segment: string;
    /** Where the thing lives; only acl, key, node, service, session and intention live in one. */
    readonly namespace: NamespaceName;
  };
}[Resource];

export type Decision = 'allow' | 'deny';

const IN_NAMESPACE: ReadonlySet<Resource> = new Set([
  'acl',
  'intention',
  'key',
  'node',
  'service',
  'session',
] as const);

/** False for what there is once for the whole system; only policies in `default` speak for it. */
export function livesInNamespace(resource: Resource): boolean {
  return IN_NAMESPACE.has(resource);
}
