// Why a login would be granted or refused, in the order of its steps: who it is, what each binding rule comes to,
// what the token would have.

import type { Colors } from 'picocolors/types.js';
import type { CallOutput } from '../../client/call-types.ts';
import { field, fieldIf, list, type Part } from './block.ts';
import { grantParts } from './common.ts';

type Explanation = CallOutput<'explain-login'>;

export function loginExplanationParts(answer: Explanation, colors: Colors): readonly Part[] {
  const decision = answer.Granted ? colors.green('GRANTED') : colors.red('REFUSED');
  return [
    { kind: 'styled', name: 'Login', value: decision, rest: 'no token was made' },
    field('Because', answer.Summary),
    ...fieldIf('Namespace', answer.Namespace),
    ...fieldIf('Namespace rule', answer.NamespaceSelector),
    ...tokenFields(answer.Token),
    list('Identity', (answer.Attributes ?? []).map(attributeText)),
    list('Binding rules', answer.BindingRules.map(ruleText)),
    ...grantParts(answer.Token ?? {}),
  ];
}

function tokenFields(token: Explanation['Token']): readonly Part[] {
  if (token === undefined) return [];
  return [field('Local', token.Local), field('Expires after', token.ExpirationTTL ?? 'never')];
}

function attributeText({ Name, Value }: NonNullable<Explanation['Attributes']>[number]): string {
  return `${Name} = ${JSON.stringify(Value)}`;
}

function ruleText(rule: Explanation['BindingRules'][number]): string {
  const name = rule.Name === undefined ? rule.BindName : rule.Name;
  const selector = rule.Selector === '' ? '' : `  [${rule.Selector}]`;
  return `${rule.Result}  ${rule.ID}  ${rule.BindType} ${JSON.stringify(name)}: ${rule.Why}${selector}`;
}
