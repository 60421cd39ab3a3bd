// Tokens that write with a right which others give and take all the time: by their policy or
// role, by the token's end, or by a write of their own. What such a token has written must stand in the log at a
// place where it had the right, also where the right was taken away a moment before.

import type { Command } from '../../../../../src/state/commands/commands.ts';
import { canarySecret, canaryText } from '../../../checks/federation/canaries.ts';
import type { Applied, RightsState } from '../../../checks/shadow.ts';
import type { Violations } from '../../../checks/violations.ts';
import { mayWrite, policyNamed, roleNamed, type Target, tokenTarget } from '../../acl-requests.ts';

export type Deputy = Extract<Target, { readonly kind: 'token' }>;

const POLICY = 'deputies';

const ROLE = 'deputies-by-role';

/** With numbers beyond those of other clients. */
export const DEPUTIES: readonly Deputy[] = [
  tokenTarget(901, POLICY),
  tokenTarget(902, POLICY, ROLE),
];

/** Gives them their right while its value says so. */
export const DEPUTY_POLICY: Target = policyNamed(POLICY, 'acl');

const DEPUTY_ROLE: Target = roleNamed(ROLE, POLICY);

/** All that their right rests on. */
export const DEPUTY_TARGETS: readonly Target[] = [DEPUTY_POLICY, DEPUTY_ROLE, ...DEPUTIES];

/** What the right of this one rests on. */
export function rootsOf(deputy: Deputy): readonly Target[] {
  return deputy.role === undefined ? [DEPUTY_POLICY, deputy] : [DEPUTY_POLICY, DEPUTY_ROLE, deputy];
}

/** Beyond the local tokens of other clients. */
const FIRST_LOCAL = 1_000_000;

/** The checker's name. */
const CHECKER = 'authority';

/** Whether this is a command of nobody here, or of one that has its right in the state before it. */
export function hasRight({ principal }: Command, state: RightsState): boolean {
  if (principal === undefined || !isDeputy(principal)) return true;
  const { policies, roles } = state.token(principal) ?? { policies: [], roles: [] };
  const byRole = roles.flatMap((id) => state.role(id)?.policies ?? []);
  return [...policies, ...byRole].some((id) => {
    const policy = state.policy(id);
    return policy !== undefined && mayWrite(policy.description);
  });
}

/** Of the log of one datacenter: how many commands of theirs took effect. */
export function judgeDeputies(
  commands: readonly Applied[],
  { violations, site }: { readonly violations: Violations; readonly site: string },
): number {
  const done = commands.filter(({ command: { principal }, outcome }) => {
    const isTheirs = principal !== undefined && isDeputy(principal);
    return isTheirs && outcome.kind === 'applied' && !outcome.replayed;
  });
  for (const { command, index, isRightful } of done) {
    violations.require(isRightful, CHECKER, () => {
      return `${site} did ${command.change.type} at ${index} of its log for ${command.principal}, which had no right to it there`;
    });
  }
  return done.length;
}

function isDeputy(principal: string): boolean {
  return DEPUTIES.some(({ accessorId }) => accessorId === principal);
}

/** A local token that a deputy makes: nobody looks for it again. */
export function localTokenOf(site: number, number: number): Readonly<Record<string, unknown>> {
  const digits = number.toString(16).padStart(12, '0');
  return {
    AccessorID: `eeeeeeee-0000-4000-8000-${digits}`,
    SecretID: canarySecret(site, FIRST_LOCAL + number),
    Description: canaryText(site, FIRST_LOCAL + number),
    Local: true,
  };
}
