// The rarer answers as JSON: namespaces, templates, authorization answers, the state of replication.

import { quote, quoteValue } from './quote.ts';
import { optionalText, renderLinks, renderStamps } from './render-parts.ts';
import type {
  ShownAuthorization,
  ShownExplanation,
  ShownNamespace,
  ShownReplication,
  ShownTemplate,
} from './shown.ts';

const ZERO_TIME = '0001-01-01T00:00:00Z';

export function renderNamespace(shown: ShownNamespace): string {
  const { namespace } = shown;
  const defaults: string[] = [];
  if (shown.policyDefaults.length > 0) {
    defaults.push(`"PolicyDefaults":${renderLinks(shown.policyDefaults)}`);
  }
  if (shown.roleDefaults.length > 0)
    defaults.push(`"RoleDefaults":${renderLinks(shown.roleDefaults)}`);
  const acls = defaults.length === 0 ? '' : `,"ACLs":{${defaults.join()}}`;
  const hasMeta = Object.keys(namespace.meta).length > 0;
  const meta = hasMeta ? `,"Meta":${quoteValue(namespace.meta)}` : '';
  const head = `{"Name":${quote(namespace.name)},"Description":${quote(namespace.description)}`;
  return `${head}${acls}${meta}${renderStamps(namespace)}}`;
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

export function renderReplication(status: ShownReplication): string {
  return quoteValue({
    Enabled: status.enabled,
    Running: status.running,
    SourceDatacenter: status.sourceDatacenter,
    ReplicationType: status.replicationType,
    ReplicatedIndex: status.replicatedIndex,
    ReplicatedRoleIndex: status.replicatedRoleIndex,
    ReplicatedTokenIndex: status.replicatedTokenIndex,
    LastSuccess: wholeSecond(status.lastSuccessMs),
    LastError: wholeSecond(status.lastErrorMs),
    LastErrorMessage: status.lastErrorMessage,
  });
}

/** UTC without a fraction; the zero time for never. */
function wholeSecond(ms: number | undefined): string {
  return ms === undefined ? ZERO_TIME : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
