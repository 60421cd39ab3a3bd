// A role as JSON; lists show the same full object.

import { quote } from './quote.ts';
import { optionalLinks, renderEnd, renderHash, renderIdentities } from './render-parts.ts';
import type { ShownRole, WireStyle } from './shown.ts';

export function renderRole(shown: ShownRole, style: WireStyle): string {
  const { role } = shown;
  return (
    `{"ID":${quote(role.id)},"Name":${quote(role.name)},"Description":${quote(role.description)}` +
    optionalLinks('Policies', shown.policies) +
    renderIdentities(role) +
    renderHash(role.hash) +
    renderEnd(role, style)
  );
}
