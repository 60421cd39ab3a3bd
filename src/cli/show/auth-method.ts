// Auth methods and binding rules on the screen.

import type { CallOutput, ListItem } from '../../client/call-types.ts';
import { field, fieldIf, list, type Part, text } from './block.ts';
import { stampParts } from './common.ts';
import { jsonText } from './json.ts';
import type { Column } from './table.ts';

type AuthMethod = CallOutput<'auth-method.read'>;
type BindingRule = CallOutput<'binding-rule.read'>;

export function authMethodParts(method: AuthMethod): readonly Part[] {
  return [
    field('Name', method.Name),
    field('Type', method.Type),
    ...fieldIf('Namespace', method.Namespace),
    ...fieldIf('Display Name', method.DisplayName),
    field('Description', method.Description ?? ''),
    ...fieldIf('Max Token TTL', method.MaxTokenTTL),
    field('Token Locality', method.TokenLocality || 'local'),
    field('Create Index', method.CreateIndex),
    field('Modify Index', method.ModifyIndex),
    list(
      'Namespace Rules',
      (method.NamespaceRules ?? []).map(
        ({ Selector, BindNamespace }) => `${Selector || 'every identity'}  ->  ${BindNamespace}`,
      ),
    ),
    text('Config', jsonText(method.Config)),
  ];
}

export const AUTH_METHOD_COLUMNS: readonly Column<ListItem<'auth-method.list'>>[] = [
  { heading: 'Name', cell: ({ Name }) => Name },
  { heading: 'Type', cell: ({ Type }) => Type },
  { heading: 'Tokens', cell: ({ TokenLocality }) => TokenLocality || 'local' },
  { heading: 'Max TTL', cell: ({ MaxTokenTTL }) => MaxTokenTTL ?? '' },
  { heading: 'Display Name', cell: ({ DisplayName }) => DisplayName ?? '' },
  { heading: 'Description', cell: ({ Description }) => Description },
];

export function bindingRuleParts(rule: BindingRule): readonly Part[] {
  return [
    field('ID', rule.ID),
    ...fieldIf('Namespace', rule.Namespace),
    field('Description', rule.Description),
    field('Auth Method', rule.AuthMethod),
    field('Bind Type', rule.BindType),
    field('Bind Name', rule.BindName),
    ...fieldIf('Bind Vars', rule.BindVars && `name=${rule.BindVars.name}`),
    field('Selector', rule.Selector || '(every identity)'),
    ...stampParts(rule),
  ];
}

export const BINDING_RULE_COLUMNS: readonly Column<BindingRule>[] = [
  { heading: 'ID', cell: ({ ID }) => ID },
  { heading: 'Auth Method', cell: ({ AuthMethod }) => AuthMethod },
  { heading: 'Binds', cell: ({ BindType, BindName }) => `${BindType} ${BindName}` },
  { heading: 'Selector', cell: ({ Selector }) => Selector || '(every identity)' },
  { heading: 'Description', cell: ({ Description }) => Description },
];
