// A policy as JSON: alone, in a list, and inside an expanded token.

import type { Policy } from '../../acl/policy.ts';
import { quote } from './quote.ts';
import { nullableDatacenters, optionalDatacenters, renderEnd, renderHash } from './render-parts.ts';
import type { ShownPolicy, WireStyle } from './shown.ts';

/** A policy by itself. */
export function renderPolicy(shown: ShownPolicy, style: WireStyle): string {
  return policyFields(shown.policy, optionalDatacenters(shown.policy.datacenters), style);
}

/** In expanded tokens, datacenters are null when there are none. */
export function renderExpandedPolicy(policy: Policy, style: WireStyle): string {
  return policyFields(policy, nullableDatacenters(policy.datacenters), style);
}

function policyFields(policy: Policy, datacenters: string, style: WireStyle): string {
  return `${policyHead(policy)},"Rules":${quote(policy.rules)}${datacenters}${policyTail(policy, style)}`;
}

/** Lists leave the rules out. */
export function renderPolicyListEntry(shown: ShownPolicy, style: WireStyle): string {
  const { policy } = shown;
  return policyHead(policy) + nullableDatacenters(policy.datacenters) + policyTail(policy, style);
}

function policyHead(policy: Policy): string {
  return `{"ID":${quote(policy.id)},"Name":${quote(policy.name)},"Description":${quote(policy.description)}`;
}

function policyTail(policy: Policy, style: WireStyle): string {
  return renderHash(policy.hash) + renderEnd(policy, style);
}
