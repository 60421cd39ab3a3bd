// What local tokens that are changed link to: policies and roles, some of which count in one datacenter alone, in
// `default` and in a namespace that has objects of the same names; and identities of their own.

import type { Stream } from '../../../world/stream.ts';
import {
  namespaceTarget,
  policyNamed,
  roleNamed,
  SERVICE,
  type Target,
} from '../../acl-requests.ts';

/** The first one has objects, the other one none. */
export const CHANGED_HOMES = [namespaceTarget('c1'), namespaceTarget('c2')] as const;

const POLICY = 'changing';
const SCOPED = 'changing-in-one';

interface Named {
  readonly Name: string;
}

export interface DrawnLinks {
  readonly body: {
    readonly Policies?: readonly Named[];
    readonly Roles?: readonly Named[];
    readonly ServiceIdentities?: readonly { readonly ServiceName: string }[];
  };
  /** All that has to be there for it, in this order. */
  readonly roots: readonly Target[];
}

/** What a run has of all that, by how many datacenters there are. */
export class ChangedLinks {
  readonly #siteCount: number;

  constructor(siteCount: number) {
    this.#siteCount = siteCount;
  }

  /** Of all namespaces; what has to be there before others is before them. */
  get targets(): readonly Target[] {
    return [...CHANGED_HOMES, ...this.#rootsIn(undefined), ...this.#rootsIn(CHANGED_HOMES[0].name)];
  }

  /** What has to be gone before that namespace can be, in an order in which it can be deleted. */
  inside(namespace: string): readonly Target[] {
    return namespace === CHANGED_HOMES[0].name ? [...this.#rootsIn(namespace)].reverse() : [];
  }

  /** Of a token in that namespace; undefined: the default one. */
  draw(stream: Stream, namespace: string | undefined): DrawnLinks {
    const where = namespace === CHANGED_HOMES[0].name && stream.chance(0.8) ? namespace : undefined;
    const [policy, scoped, role, scopedRole] = this.#rootsIn(where) as readonly [
      Target,
      Target,
      Target,
      Target,
    ];
    switch (
      stream.pick([
        'none',
        'policy',
        'policy',
        'scoped',
        'role',
        'role',
        'scoped-role',
        'both',
        'identity',
      ] as const)
    ) {
      case 'policy':
        return { body: { Policies: [{ Name: POLICY }] }, roots: [policy] };
      case 'scoped':
        return { body: { Policies: [{ Name: SCOPED }] }, roots: [scoped] };
      case 'role':
        return { body: { Roles: [{ Name: POLICY }] }, roots: [policy, role] };
      case 'scoped-role':
        return { body: { Roles: [{ Name: SCOPED }] }, roots: [scoped, scopedRole] };
      case 'both':
        return {
          body: { Policies: [{ Name: POLICY }], Roles: [{ Name: SCOPED }] },
          roots: [policy, scoped, scopedRole],
        };
      case 'identity':
        return { body: { ServiceIdentities: [{ ServiceName: SERVICE }] }, roots: [] };
      default:
        return { body: {}, roots: [] };
    }
  }

  #rootsIn(namespace: string | undefined): readonly Target[] {
    return [
      policyNamed(POLICY, 'key', namespace),
      { ...policyNamed(SCOPED, 'key', namespace), siteCount: this.#siteCount } as Target,
      roleNamed(POLICY, POLICY, namespace),
      roleNamed(SCOPED, SCOPED, namespace),
    ];
  }
}
