// Tokens on the screen: one as a block, many as columns.

import type { CallOutput } from '../../client/call-types.ts';
import { field, fieldIf, list, type Part, text } from './block.ts';
import {
  grantParts,
  identitiesCell,
  isSynthetic,
  linkText,
  namesCell,
  stampParts,
  timeText,
} from './common.ts';
import type { Column } from './table.ts';

type Token = CallOutput<'token.read-self'>;
type TokenRead = CallOutput<'token.read'>;

/** One token; what an expanded read adds comes last. */
export function tokenParts(token: TokenRead): readonly Part[] {
  return [
    field('AccessorID', token.AccessorID),
    field('SecretID', token.SecretID),
    ...fieldIf('Namespace', token.Namespace),
    field('Description', token.Description),
    field('Local', token.Local),
    ...fieldIf('Auth Method', token.AuthMethod),
    field('Create Time', timeText(token.CreateTime)),
    ...fieldIf('Expiration Time', token.ExpirationTime && timeText(token.ExpirationTime)),
    ...stampParts(token),
    ...grantParts(token),
    ...expandedParts(token),
  ];
}

function expandedParts(token: TokenRead): readonly Part[] {
  if (token.AgentACLDefaultPolicy === undefined) return [];
  return [
    list('Roles in effect', (token.ExpandedRoles ?? []).map(linkText)),
    list('Namespace default policies', (token.NamespaceDefaultPolicies ?? []).map(linkText)),
    list('Namespace default roles', (token.NamespaceDefaultRoles ?? []).map(linkText)),
    ...(token.ExpandedPolicies ?? []).map(({ Name, Description, Rules }) =>
      text(
        `Policy in effect, ${isSynthetic(Name) ? 'made from an identity' : Name}`,
        [Description === '' ? '' : `# ${Description}`, Rules]
          .filter((line) => line !== '')
          .join('\n'),
      ),
    ),
    list('Where no rule speaks', [
      `${token.AgentACLDefaultPolicy} (default policy of ${token.ResolvedByAgent ?? 'the server'})`,
    ]),
  ];
}

/** The columns of a list of tokens; the secret is none of them. */
export const TOKEN_COLUMNS: readonly Column<Token>[] = [
  { heading: 'AccessorID', cell: ({ AccessorID }) => AccessorID },
  { heading: 'Local', cell: ({ Local }) => (Local ? 'yes' : 'no') },
  {
    heading: 'Expires',
    cell: ({ ExpirationTime }) => (ExpirationTime === undefined ? '' : timeText(ExpirationTime)),
  },
  {
    heading: 'Policies',
    cell: (token) => namesCell((token.Policies ?? []).map(({ Name }) => Name)),
  },
  { heading: 'Roles', cell: (token) => namesCell((token.Roles ?? []).map(({ Name }) => Name)) },
  { heading: 'Identities', cell: identitiesCell },
  { heading: 'Description', cell: ({ Description }) => Description },
];
