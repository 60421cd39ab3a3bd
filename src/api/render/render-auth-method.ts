// Auth methods and their binding rules as JSON. Lists never show a method's Config.

import type { AuthMethod } from '../../acl/auth-method.ts';
import { formatDuration } from '../../acl/values/duration.ts';
import { quote, quoteValue } from './quote.ts';
import { optionalText, renderEnd } from './render-parts.ts';
import type { ShownAuthMethod, ShownBindingRule, WireStyle } from './shown.ts';

/** A method alone, with its Config as it was given. */
export function renderAuthMethod(shown: ShownAuthMethod, style: WireStyle): string {
  const { method } = shown;
  return (
    `{${methodHead(method)}${optionalText('Description', method.description)}` +
    optionalText('TokenLocality', method.tokenLocality) +
    `,"Config":${quoteValue(method.config)}` +
    namespaceRules(method) +
    renderEnd(method, style)
  );
}

/** In lists the description is always there, and never the Config. */
export function renderAuthMethodListEntry(shown: ShownAuthMethod, style: WireStyle): string {
  const { method } = shown;
  return (
    `{${methodHead(method)},"Description":${quote(method.description)}` +
    optionalText('TokenLocality', method.tokenLocality) +
    renderEnd(method, style)
  );
}

function methodHead(method: AuthMethod): string {
  const ttl =
    method.maxTokenTtlNs === 0n
      ? ''
      : `"MaxTokenTTL":${quote(formatDuration(method.maxTokenTtlNs))},`;
  const names = `"Name":${quote(method.name)},"Type":${quote(method.type)}`;
  return `${ttl}${names}${optionalText('DisplayName', method.displayName)}`;
}

function namespaceRules(method: AuthMethod): string {
  if (method.namespaceRules.length === 0) return '';
  const rules = method.namespaceRules.map(
    (rule) => `{"Selector":${quote(rule.selector)},"BindNamespace":${quote(rule.bindNamespace)}}`,
  );
  return `,"NamespaceRules":[${rules.join()}]`;
}

/** A binding rule, alone and in lists. */
export function renderBindingRule(shown: ShownBindingRule, style: WireStyle): string {
  const { rule } = shown;
  const vars =
    rule.bindVars === undefined ? '' : `,"BindVars":{"name":${quote(rule.bindVars.name)}}`;
  return (
    `{"ID":${quote(rule.id)},"Description":${quote(rule.description)}` +
    `,"AuthMethod":${quote(rule.authMethod)},"Selector":${quote(rule.selector)}` +
    `,"BindType":${quote(rule.bindType)},"BindName":${quote(rule.bindName)}${vars}` +
    renderEnd(rule, style)
  );
}
