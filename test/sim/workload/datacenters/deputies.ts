// Tokens that write with a right which others give and take all the time: by their policy, by the token's end,
// or by a write of their own. What such a token has written must stand in the log at a place where it had the
// right, also where the right was taken away a moment before.

import { idBytes, POLICIES, TOKENS } from '../../../../src/state/objects.ts';
import { decodeRecord } from '../../../../src/state/record-codec.ts';
import { rowKey } from '../../../../src/state/tables.ts';
import type { FederationChecks } from '../../checks/federation/federation-checks.ts';
import type { Violations } from '../../checks/violations.ts';
import { textOf } from '../../world/key-text.ts';
import type { SortedRows } from '../../world/sorted-rows.ts';
import { mayWrite, policyNamed, type Target, tokenTarget } from '../acl-requests.ts';

export type Deputy = Extract<Target, { readonly kind: 'token' }>;

const POLICY = 'deputies';

/** Beyond those of other clients. */
const NUMBERS: readonly number[] = [901, 902];

export const DEPUTIES: readonly Deputy[] = NUMBERS.flatMap((number) => {
  const target = tokenTarget(number, POLICY);
  return target.kind === 'token' ? [target] : [];
});

/** Gives them their right while its value says so. */
export const DEPUTY_POLICY: Target = policyNamed(POLICY, 'acl');

/** All that their right rests on. */
export const DEPUTY_TARGETS: readonly Target[] = [DEPUTY_POLICY, ...DEPUTIES];

/** The checker's name. */
const CHECKER = 'authority';

/** Holds every entry of theirs, those that are set apart too, against the objects before it. */
export function judgeDeputies({
  checks: { chain },
  violations,
}: {
  readonly checks: FederationChecks;
  readonly violations: Violations;
}): number {
  let count = 0;
  for (const { entry, prevHash, site } of chain.all()) {
    const deputy = DEPUTIES.find(({ accessorId }) => accessorId === entry.principal);
    const before = deputy && chain.behind(prevHash);
    if (before === undefined) continue;
    count += 1;
    violations.require(hasRight(before.rows, deputy!), CHECKER, () => {
      return `${site} wrote ${entry.epoch}.${entry.seq} for ${deputy!.key}, which had no right to it there`;
    });
  }
  return count;
}

function hasRight(rows: SortedRows, { accessorId }: Deputy): boolean {
  const row = rows.get(textOf(rowKey('token', idBytes(accessorId))));
  if (row === undefined) return false;
  return decodeRecord(TOKENS.codec, row).policies.some((id) => {
    const policy = rows.get(textOf(rowKey('policy', idBytes(id))));
    return policy !== undefined && mayWrite(decodeRecord(POLICIES.codec, policy).description);
  });
}
