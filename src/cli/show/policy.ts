// Policies, roles and templates on the screen.

import type { CallOutput, ListItem } from '../../client/call-types.ts';
import { field, fieldIf, type Part, text } from './block.ts';
import { datacentersText, grantParts, identitiesCell, namesCell, stampParts } from './common.ts';
import type { Column } from './table.ts';

type Policy = CallOutput<'policy.read'>;
type Role = CallOutput<'role.read'>;
type Template = CallOutput<'templated-policy.read'>;

export function policyParts(policy: Policy): readonly Part[] {
  return [
    field('ID', policy.ID),
    field('Name', policy.Name),
    ...fieldIf('Namespace', policy.Namespace),
    field('Description', policy.Description),
    field('Datacenters', datacentersText(policy.Datacenters)),
    ...stampParts(policy),
    text('Rules', policy.Rules),
  ];
}

/** A policy that a template would give: its id and name are long hashes that name nothing stored. */
export function previewParts(policy: Policy): readonly Part[] {
  return [
    field('Description', policy.Description),
    field('Datacenters', datacentersText(policy.Datacenters)),
    text('Rules', policy.Rules),
  ];
}

export const POLICY_COLUMNS: readonly Column<ListItem<'policy.list'>>[] = [
  { heading: 'ID', cell: ({ ID }) => ID },
  { heading: 'Name', cell: ({ Name }) => Name },
  { heading: 'Datacenters', cell: ({ Datacenters }) => datacentersText(Datacenters) },
  { heading: 'Description', cell: ({ Description }) => Description },
];

export function roleParts(role: Role): readonly Part[] {
  return [
    field('ID', role.ID),
    field('Name', role.Name),
    ...fieldIf('Namespace', role.Namespace),
    field('Description', role.Description),
    ...stampParts(role),
    ...grantParts(role),
  ];
}

export const ROLE_COLUMNS: readonly Column<Role>[] = [
  { heading: 'ID', cell: ({ ID }) => ID },
  { heading: 'Name', cell: ({ Name }) => Name },
  { heading: 'Policies', cell: (role) => namesCell((role.Policies ?? []).map(({ Name }) => Name)) },
  { heading: 'Identities', cell: identitiesCell },
  { heading: 'Description', cell: ({ Description }) => Description },
];

export function templateParts(template: Template): readonly Part[] {
  return [
    field('Name', template.TemplateName),
    field('Description', template.Description),
    field('Variables', variablesText(template) || 'none'),
    text('Template', template.Template),
    text('Schema of the variables', template.Schema),
  ];
}

export const TEMPLATE_COLUMNS: readonly Column<Template>[] = [
  { heading: 'Name', cell: ({ TemplateName }) => TemplateName },
  { heading: 'Variables', cell: variablesText },
  { heading: 'Description', cell: ({ Description }) => Description },
];

/** The names of the variables, out of the schema that the service sends as text. */
function variablesText({ Schema }: Template): string {
  if (Schema === '') return '';
  try {
    const { properties } = JSON.parse(Schema) as { readonly properties?: object };
    return Object.keys(properties ?? {}).join(', ');
  } catch {
    return 'see the schema';
  }
}
