// Tokens that have what they may do by a policy, or by a role that has it at times, in the default namespace and in one
// that comes and goes with all that is in it; and what they may do is asked while that is given and taken.

import {
  namespaceTarget,
  policyNamed,
  type RightTarget,
  roleNamed,
  type Target,
  type TokenTarget,
  tokenTarget,
} from '../../acl-requests.ts';

/** A token, and what has to be there before it, in this order. */
export interface Grant {
  readonly token: TokenTarget;
  /** What its right hangs on. */
  readonly roots: readonly Target[];
  /** What has to be there besides. */
  readonly homes: readonly Target[];
  readonly right: RightTarget;
}

const HOME = 'n3';

/** With numbers beyond those of other clients; the namespaces have policies and roles of one name. */
export const GRANTS: readonly Grant[] = [undefined, HOME].flatMap((namespace, place) => {
  const policy = policyNamed('granted', 'key', namespace);
  const role = roleNamed('granted', 'granted', namespace);
  const homes = namespace === undefined ? [] : [namespaceTarget(namespace)];
  const first = 801 + 10 * place;
  return [
    grantOf(tokenTarget(first, 'granted', undefined, namespace), [policy], homes),
    grantOf(tokenTarget(first + 1, 'granted', 'granted', namespace), [policy, role], homes),
  ];
});

export const GRANT_TARGETS: readonly Target[] = [
  ...new Map(
    GRANTS.flatMap(({ token, roots, homes }) => [...homes, ...roots, token]).map((target) => [
      target.key,
      target,
    ]),
  ).values(),
];

/** All that is in a namespace, and that itself, in an order in which they can be deleted. */
export function clearingOf({ homes }: Grant): readonly Target[] {
  if (homes.length === 0) return [];
  const inside = GRANT_TARGETS.filter(
    (target) => 'namespace' in target && target.namespace === HOME,
  );
  return [...inside.reverse(), ...homes];
}

function grantOf(token: TokenTarget, roots: readonly Target[], homes: readonly Target[]): Grant {
  const rootKeys = [`token ${token.accessorId}`, ...roots.map(({ key }) => key)];
  const right = { kind: 'right', key: `right of ${token.key}`, token, rootKeys } as const;
  return { token, roots, homes, right };
}
