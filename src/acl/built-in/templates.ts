// The catalogue of templated policies and how they become rules. Rules are built as data and then
// written out, and whatever comes from a caller is quoted so that no text can leave its quotes.
// Which template a token or role may use, and in which words it is refused, says checks/identity-checks.ts.

import { isIdentityName } from '../values/names.ts';

export type TemplateName =
  | 'builtin/service'
  | 'builtin/node'
  | 'builtin/dns'
  | 'builtin/nomad-server'
  | 'builtin/api-gateway'
  | 'builtin/nomad-client';

export interface Template {
  readonly templateId: string;
  readonly templateName: TemplateName;
  /** JSON Schema of the variables; '' when the template has none. */
  readonly schema: string;
  /** The rules, with `{{.Name}}` where the variable goes. */
  readonly template: string;
  readonly description: string;
}

/** What a caller gives for the variables; a name that is absent or empty was not given. */
export type TemplateVariables = { readonly name?: string | undefined } | undefined;

type Level = 'read' | 'write';
type Rule =
  | { readonly keyword: 'acl' | 'mesh'; readonly level: Level }
  | {
      readonly keyword: 'agent' | 'key' | 'node' | 'query' | 'service';
      readonly match: 'exact' | 'prefix';
      /** The label's text for a value of the variable. */
      readonly label: (name: string) => string;
      readonly level: Level;
    };
type LabelledKeyword = Extract<Rule, { readonly match: string }>['keyword'];

const ID_PREFIX = '00000000-0000-0000-0000-00000000000';
const PLACEHOLDER = '{{.Name}}';
const NAME_SCHEMA = JSON.stringify({
  type: 'object',
  properties: { name: { type: 'string', minLength: 1 } },
  required: ['name'],
});

// The digits are part of the interface. 7 belonged to a template that is gone and stays unused.
const DEFINITIONS: Readonly<
  Record<
    TemplateName,
    {
      readonly digit: number;
      readonly variable: 'identity-name' | 'none';
      readonly rules: readonly Rule[];
      readonly description: string;
    }
  >
> = {
  'builtin/service': {
    digit: 3,
    variable: 'identity-name',
    rules: [
      exact('service', (name) => name, 'write'),
      exact('service', (name) => `${name}-sidecar-proxy`, 'write'),
      everything('service', 'read'),
      everything('node', 'read'),
    ],
    description: 'Lets a service register itself and its sidecar proxy, and find other services.',
  },
  'builtin/node': {
    digit: 4,
    variable: 'identity-name',
    rules: [exact('node', (name) => name, 'write'), everything('service', 'read')],
    description: 'Lets a node register itself and find services.',
  },
  'builtin/dns': {
    digit: 5,
    variable: 'none',
    rules: [everything('node', 'read'), everything('service', 'read'), everything('query', 'read')],
    description: 'Lets a DNS server answer for every node, service and prepared query.',
  },
  'builtin/nomad-server': {
    digit: 6,
    variable: 'none',
    rules: [
      { keyword: 'acl', level: 'write' },
      everything('agent', 'read'),
      everything('node', 'read'),
      everything('service', 'write'),
    ],
    description: 'Lets a Nomad server register services and make tokens for its workloads.',
  },
  'builtin/api-gateway': {
    digit: 8,
    variable: 'identity-name',
    rules: [
      { keyword: 'mesh', level: 'read' },
      everything('node', 'read'),
      everything('service', 'read'),
      exact('service', (name) => name, 'write'),
    ],
    description: 'Lets an API gateway register itself and find the services that it routes to.',
  },
  'builtin/nomad-client': {
    digit: 9,
    variable: 'none',
    rules: [
      everything('agent', 'read'),
      everything('node', 'read'),
      everything('key', 'read'),
      everything('service', 'write'),
    ],
    description: 'Lets a Nomad client register services and read what its workloads are set up by.',
  },
};

function exact(keyword: LabelledKeyword, label: (name: string) => string, level: Level): Rule {
  return { keyword, match: 'exact', label, level };
}

function everything(keyword: LabelledKeyword, level: Level): Rule {
  return { keyword, match: 'prefix', label: () => '', level };
}

/** All templates, by name. */
export const TEMPLATES: readonly Template[] = (Object.keys(DEFINITIONS) as TemplateName[])
  .sort((left, right) => (left < right ? -1 : 1))
  .map((templateName) => {
    const { digit, variable, rules, description } = DEFINITIONS[templateName];
    return {
      templateId: `${ID_PREFIX}${digit}`,
      templateName,
      schema: variable === 'none' ? '' : NAME_SCHEMA,
      template: renderRules(rules, PLACEHOLDER, (label) => `"${label}"`),
      description,
    };
  });

const TEMPLATE_BY_NAME: ReadonlyMap<string, Template> = new Map(
  TEMPLATES.map((template) => [template.templateName, template]),
);

/** The template of that very name, or undefined. */
export function templateNamed(name: string): Template | undefined {
  return TEMPLATE_BY_NAME.get(name);
}

/** Why these variables do not fit the template, in the words of compatibility 5.7; else undefined. */
export function templateProblem(
  templateName: TemplateName,
  variables: TemplateVariables,
): string | undefined {
  const { variable } = DEFINITIONS[templateName];
  if (variable === 'none') return undefined;
  if (variables === undefined) return oneError('Invalid type. Expected: object, given: null');
  const name = variables.name ?? '';
  if (isIdentityName(name)) return undefined;
  if (templateName === 'builtin/api-gateway' && name === '') return oneError('name is required');
  const whose = `${HOLDER_WORDS[templateName] ?? 'service identity'} "${name}"`;
  // The second blank of node identities is a wire text that deployed clients know.
  const gap = templateName === 'builtin/node' ? '  ' : ' ';
  return `${whose}${gap}has an invalid name. Only lowercase alphanumeric characters, '-' and '_' are allowed`;
}

/** What a refusal calls the name of a template, where it is not a service identity's. */
const HOLDER_WORDS: Partial<Record<TemplateName, string>> = {
  'builtin/node': 'node identity',
  'builtin/api-gateway': 'api gateway',
};

function oneError(problem: string): string {
  return `1 error occurred:\n\t* ${problem}\n\n`;
}

/** The rule text of a template for one value of its variable. The value must have been checked. */
export function renderTemplate(templateName: TemplateName, name: string): string {
  return renderRules(DEFINITIONS[templateName].rules, name, quote);
}

function renderRules(
  rules: readonly Rule[],
  name: string,
  quoteLabel: (label: string) => string,
): string {
  return rules.map((rule) => renderRule(rule, name, quoteLabel)).join('');
}

function renderRule(rule: Rule, name: string, quoteLabel: (label: string) => string): string {
  if (!('match' in rule)) return `${rule.keyword} = "${rule.level}"\n`;
  const keyword = rule.match === 'prefix' ? `${rule.keyword}_prefix` : rule.keyword;
  return `${keyword} ${quoteLabel(rule.label(name))} {\n  policy = "${rule.level}"\n}\n`;
}

/**
 * A quoted string of the rule language for any text. All but a few harmless characters are written
 * as escapes: quotes and backslashes, and also `$` and `{`, since `${` opens a part of a string in
 * which quotes mean something else.
 */
function quote(text: string): string {
  let quoted = '"';
  for (const character of text) {
    quoted += /[A-Za-z0-9_.:/-]/.test(character) ? character : escapeOf(character);
  }
  return `${quoted}"`;
}

function escapeOf(character: string): string {
  // Half of a surrogate pair is no character and would not survive UTF-8.
  const code = character.toWellFormed().codePointAt(0) ?? 0;
  const hex = code.toString(16).toUpperCase();
  return code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`;
}
