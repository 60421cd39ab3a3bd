// Why a login is granted or refused, as JSON.

import { quote, quoteValue } from './quote.ts';
import { optionalLinks, optionalText, renderIdentities } from './render-parts.ts';
import type {
  ShownAttribute,
  ShownLoginExplanation,
  ShownRuleExplanation,
  ShownWouldBeToken,
  WireStyle,
} from './shown.ts';

export function renderLoginExplanation(shown: ShownLoginExplanation, style: WireStyle): string {
  const { attributes, token } = shown;
  return (
    `{"Granted":${shown.granted},"Summary":${quote(shown.summary)}` +
    (attributes === undefined ? '' : `,"Attributes":[${attributes.map(attribute).join()}]`) +
    (style.namespaces ? optionalText('Namespace', shown.namespace) : '') +
    optionalText('NamespaceSelector', shown.namespaceSelector) +
    `,"BindingRules":[${shown.rules.map(rule).join()}]` +
    (token === undefined ? '' : `,"Token":${wouldBeToken(token)}`) +
    '}'
  );
}

function attribute({ name, value }: ShownAttribute): string {
  return `{"Name":${quote(name)},"Value":${quoteValue(value)}}`;
}

function rule(shown: ShownRuleExplanation): string {
  return (
    `{"ID":${quote(shown.id)},"BindType":${quote(shown.bindType)}` +
    `,"BindName":${quote(shown.bindName)},"Selector":${quote(shown.selector)}` +
    `,"Result":${quote(shown.result)}` +
    (shown.name === undefined ? '' : `,"Name":${quote(shown.name)}`) +
    `,"Why":${quote(shown.why)}}`
  );
}

function wouldBeToken(token: ShownWouldBeToken): string {
  return (
    `{"Description":${quote(token.description)}` +
    optionalLinks('Policies', token.policies) +
    optionalLinks('Roles', token.roles) +
    renderIdentities(token) +
    `,"Local":${token.local}${optionalText('ExpirationTTL', token.expirationTtl)}}`
  );
}
