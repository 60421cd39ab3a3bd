// Why a token may or may not do something, in the order that a person asks: may it, because of what,
// written where, and what else was in the running.

import type { Colors } from 'picocolors/types.js';
import type { CallOutput } from '../../client/call-types.ts';
import { field, fieldIf, list, type Part } from './block.ts';

type Authorization = CallOutput<'authorize'>[number];
type Explanation = NonNullable<Authorization['Explanation']>;

/** The decision and the way to it: token, role or identity, policy, rule. */
export function explanationParts(answer: Authorization, colors: Colors): readonly Part[] {
  const segment = answer.Segment ? ` ${JSON.stringify(answer.Segment)}` : '';
  const decision = answer.Allow ? colors.green('ALLOWED') : colors.red('DENIED');
  const question = `${answer.Access} on ${answer.Resource}${segment}`;
  const why = answer.Explanation;
  return [
    { kind: 'styled', name: 'Decision', value: decision, rest: question },
    ...(why === undefined ? [] : reasonParts(why)),
  ];
}

function reasonParts(why: Explanation): readonly Part[] {
  const { Token, Role, Identity, Policy, Rule } = why;
  return [
    field('Because', why.Summary),
    ...fieldIf('Token', Token && described(Token.AccessorID, Token.Description)),
    ...fieldIf('Role', Role && `${Role.ID}  ${Role.Name}`),
    ...fieldIf('Identity', Identity),
    ...fieldIf('Policy', Policy && `${Policy.ID}  ${Policy.Name}${inNamespace(Policy.Namespace)}`),
    ...fieldIf('Rule', Rule && `${Rule.Text}  (${placeText(Rule.Line, Rule.Column)})`),
    list(
      'Also matched, without effect',
      (why.Overruled ?? []).map(
        ({ Policy: name, Rule: rule, Why }) => `${name}: ${rule}  (${Why})`,
      ),
    ),
  ];
}

function described(id: string, description: string): string {
  return description === '' ? id : `${id}  ${description}`;
}

function inNamespace(name: string | undefined): string {
  return name === undefined || name === 'default' ? '' : ` (namespace ${name})`;
}

/** Rules that are made from an identity stand in no text, so they have no place. */
function placeText(line: number, column: number): string {
  return line < 1 ? 'made from the identity' : `line ${line}, column ${column} of the rules`;
}
