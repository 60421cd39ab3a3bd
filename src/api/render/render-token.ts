// A token as JSON: alone, in a list, expanded, and as the answer of bootstrap. The order of fields and
// which of them are left out when empty is what deployed clients were built against.

import { quote, quoteAll } from './quote.ts';
import {
  optionalLinks,
  optionalText,
  renderEnd,
  renderHash,
  renderIdentities,
  renderLinks,
} from './render-parts.ts';
import { renderExpandedPolicy } from './render-policy.ts';
import { renderRole } from './render-role.ts';
import type { ShownExpansion, ShownLink, ShownToken, WireStyle } from './shown.ts';

const HIDDEN_SECRET = quote('<hidden>');

/** One token; with its expansion when it was asked for. */
export function renderToken(shown: ShownToken, style: WireStyle): string {
  const fields = tokenFields(shown, optionalLinks('Policies', shown.policies), style);
  if (shown.expanded === undefined) return `{${fields}`;
  return `{${fields.slice(0, -1)}${expansion(shown.expanded, style)}}`;
}

/** In lists a token without policies says so with a null. */
export function renderTokenListEntry(shown: ShownToken, style: WireStyle): string {
  const policies = shown.policies.length === 0 ? 'null' : renderLinks(shown.policies);
  return `{${tokenFields(shown, `,"Policies":${policies}`, style)}`;
}

/** The first token has its secret once more, as `ID`. */
export function renderBootstrapToken(shown: ShownToken, style: WireStyle): string {
  const fields = tokenFields(shown, optionalLinks('Policies', shown.policies), style);
  return `{"ID":${quote(shown.token.secretId)},${fields}`;
}

// Ids, instants and hashes hold nothing that JSON escapes; the checks of the domain see to that.
function tokenFields(shown: ShownToken, policies: string, style: WireStyle): string {
  const { token } = shown;
  const secret = shown.secretHidden ? HIDDEN_SECRET : quote(token.secretId);
  return (
    `"AccessorID":"${token.accessorId}","SecretID":${secret}` +
    `,"Description":${quote(token.description)}${policies}` +
    optionalLinks('Roles', shown.roles) +
    renderIdentities(token) +
    `,"Local":${token.local ? 'true' : 'false'}` +
    optionalText('AuthMethod', token.authMethod?.name) +
    (style.namespaces ? optionalText('AuthMethodNamespace', token.authMethod?.namespace) : '') +
    optionalText('ExpirationTime', token.expirationTime) +
    `,"CreateTime":"${token.createTime}"` +
    renderHash(token.hash) +
    renderEnd(token, style)
  );
}

function expansion(expanded: ShownExpansion, style: WireStyle): string {
  const policies = expanded.policies.map((policy) => renderExpandedPolicy(policy, style));
  const roles = expanded.roles.map((role) => renderRole(role, style));
  return (
    `,"ExpandedPolicies":${listOrNull(policies)}` +
    `,"ExpandedRoles":${listOrNull(roles)}` +
    `,"NamespaceDefaultPolicyIDs":${idsOrNull(expanded.namespaceDefaultPolicies)}` +
    `,"NamespaceDefaultRoleIDs":${idsOrNull(expanded.namespaceDefaultRoles)}` +
    `,"NamespaceDefaultPolicies":${linksOrNull(expanded.namespaceDefaultPolicies)}` +
    `,"NamespaceDefaultRoles":${linksOrNull(expanded.namespaceDefaultRoles)}` +
    `,"AgentACLDefaultPolicy":${quote(expanded.defaultPolicy)}` +
    `,"AgentACLDownPolicy":${quote(expanded.downPolicy)}` +
    `,"ResolvedByAgent":${quote(expanded.resolvedByNode)}`
  );
}

function listOrNull(items: readonly string[]): string {
  return items.length === 0 ? 'null' : `[${items.join()}]`;
}

function idsOrNull(links: readonly ShownLink[] | undefined): string {
  return links === undefined ? 'null' : quoteAll(links.map((link) => link.id));
}

function linksOrNull(links: readonly ShownLink[] | undefined): string {
  return links === undefined ? 'null' : renderLinks(links);
}
