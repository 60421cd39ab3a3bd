// Why a token may or may not do something, in the order that a person asks: may it, because of what,
// written where, and what else was in the running.

import type { Colors } from 'picocolors/types.js';
import type { CallOutput } from '../../client/call-types.ts';
import { field, fieldIf, list, type Part } from './block.ts';
import { isSynthetic, withShortNames } from './common.ts';

type Authorization = CallOutput<'authorize'>[number];
type Explanation = NonNullable<Authorization['Explanation']>;

/** The decision and the way to it: token, role or identity, policy, rule. */
export function explanationParts(answer: Authorization, colors: Colors): readonly Part[] {
  const segment = answer.Segment ? ` ${JSON.stringify(answer.Segment)}` : '';
  const decision = answer.Allow ? colors.green('ALLOWED') : colors.red('DENIED');
  const question = `${answer.Access} on ${answer.Resource}${segment}${inNamespace(answer.Namespace)}`;
  const why = answer.Explanation;
  return [
    { kind: 'styled', name: 'Decision', value: decision, rest: question },
    ...(why === undefined ? [] : reasonParts(why)),
  ];
}

function reasonParts(why: Explanation): readonly Part[] {
  const { Token, Role, Identity, Policy, Rule } = why;
  return [
    field('Because', withShortNames(why.Summary)),
    ...fieldIf('Token', Token && described(Token.AccessorID, Token.Description)),
    ...fieldIf('Role', Role && `${Role.ID}  ${Role.Name}`),
    ...fieldIf('Identity', Identity),
    ...fieldIf('Policy', Policy && policyText(Policy)),
    ...fieldIf('Rule', Rule && `${Rule.Text}  (${placeText(why)})`),
    list(
      'Also matched, without effect',
      // One policy may reach a token in two ways, and then its rules are listed twice.
      [...new Set((why.Overruled ?? []).map(overruledText))],
    ),
  ];
}

function policyText({ ID, Name, Namespace }: NonNullable<Explanation['Policy']>): string {
  const id = isSynthetic(Name) ? '' : `${ID}  `;
  return `${id}${withShortNames(Name)}${inNamespace(Namespace)}`;
}

function overruledText(other: NonNullable<Explanation['Overruled']>[number]): string {
  return `${withShortNames(other.Policy)}: ${other.Rule}  (${other.Why})`;
}

function described(id: string, description: string): string {
  return description === '' ? id : `${id}  ${description}`;
}

function inNamespace(name: string | undefined): string {
  return name === undefined || name === 'default' ? '' : ` (namespace ${name})`;
}

/** Where the rule can be read; what an identity stands for is written nowhere. */
function placeText({ Identity, Rule }: Explanation): string {
  if (Identity !== undefined) return 'what the identity stands for';
  return `line ${Rule?.Line}, column ${Rule?.Column} of the rules`;
}
