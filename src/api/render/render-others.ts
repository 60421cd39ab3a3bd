// The rarer answers as JSON: namespaces, templates, authorization answers.

import { quote, quoteValue } from './quote.ts';
import { optionalText, renderLinks, renderStamps } from './render-parts.ts';
import type {
  ShownAuthorization,
  ShownExplanation,
  ShownNamespace,
  ShownTemplate,
} from './shown.ts';

export function renderNamespace(shown: ShownNamespace): string {
  const { namespace } = shown;
  const defaults: string[] = [];
  if (shown.policyDefaults.length > 0) {
    defaults.push(`"PolicyDefaults":${renderLinks(shown.policyDefaults)}`);
  }
  if (shown.roleDefaults.length > 0)
    defaults.push(`"RoleDefaults":${renderLinks(shown.roleDefaults)}`);
  const hasMeta = Object.keys(namespace.meta).length > 0;
  const meta = hasMeta ? `,"Meta":${quoteValue(namespace.meta)}` : '';
  const head = `{"Name":${quote(namespace.name)},"Description":${quote(namespace.description)}`;
  // Deployed clients look into it without asking whether it is there.
  return `${head},"ACLs":{${defaults.join()}}${meta}${renderStamps(namespace)}}`;
}

export function renderTemplate(template: ShownTemplate): string {
  return (
    `{"TemplateName":${quote(template.templateName)},"Schema":${quote(template.schema)}` +
    `,"Template":${quote(template.template)},"Description":${quote(template.description)}}`
  );
}

/** The catalogue is an object keyed by the templates' names. */
export function renderTemplates(templates: readonly ShownTemplate[]): string {
  const entries = templates.map(
    (template) => `${quote(template.templateName)}:${renderTemplate(template)}`,
  );
  return `{${entries.join()}}`;
}

export function renderAuthorizations(answers: readonly ShownAuthorization[]): string {
  return `[${answers.map(authorization).join()}]`;
}

function authorization(answer: ShownAuthorization): string {
  const { namespace, explanation } = answer;
  return (
    `{"Resource":${quote(answer.resource)}${optionalText('Segment', answer.segment)}` +
    `,"Access":${quote(answer.access)}` +
    (namespace === undefined ? '' : `,"Namespace":${quote(namespace)}`) +
    `,"Allow":${answer.allow ? 'true' : 'false'}` +
    (explanation === undefined ? '' : `,"Explanation":${quoteValue(explained(explanation))}`) +
    '}'
  );
}

function explained(shown: ShownExplanation): object {
  const { token, role, policy, rule } = shown;
  return {
    Decision: shown.decision,
    Summary: shown.summary,
    DecidedBy: shown.decidedBy,
    Token: token && { AccessorID: token.accessorId, Description: token.description },
    Role: role && { ID: role.id, Name: role.name },
    Identity: shown.identity,
    Policy: policy && { ID: policy.id, Name: policy.name, Namespace: policy.namespace },
    Rule: rule && { Text: rule.text, Line: rule.line, Column: rule.column },
    Overruled:
      shown.overruled.length === 0
        ? undefined
        : shown.overruled.map((other) => ({
            Policy: other.policy,
            Rule: other.rule,
            Why: other.why,
          })),
  };
}
