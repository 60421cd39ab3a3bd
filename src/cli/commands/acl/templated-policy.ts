// `conclave acl templated-policy …`: list, read, preview.

import type { Command } from 'commander';
import { addGroup, addLeaf, addRepeatable, exactlyOne, mapOf } from '../../command-line.ts';
import { fileInput, objectInput } from '../../flags/text-input.ts';
import type { Session } from '../../session.ts';
import { previewParts, TEMPLATE_COLUMNS, templateParts } from '../../show/policy.ts';
import type { Surroundings } from '../../surroundings.ts';
import { UsageError } from '../../usage-error.ts';

interface WhichTemplate {
  readonly name?: string;
}

interface PreviewOptions extends WhichTemplate {
  readonly var?: readonly string[];
  readonly file?: string;
}

const WHICH = ['[template]', 'name, such as builtin/service'] as const;

/** Adds `templated-policy` and its commands to `conclave acl`. */
export function addTemplatedPolicyCommands(acl: Command, surroundings: Surroundings): void {
  const template = addGroup(acl, 'templated-policy', 'look at the templates of policies');
  addLeaf(template, surroundings, {
    name: 'list',
    says: 'list the templates, by name',
    run: listTemplates,
  });
  addLeaf<WhichTemplate>(template, surroundings, {
    name: 'read',
    says: 'show a template',
    argument: WHICH,
    flags: addNameFlag,
    run: readTemplate,
  });
  addLeaf<PreviewOptions>(template, surroundings, {
    name: 'preview',
    says: 'show the policy that a template gives',
    argument: WHICH,
    flags: (command) => {
      addNameFlag(command);
      addRepeatable(command, '--var <name:value>', 'a variable');
      command.option('--file <path|->', 'the variables as a JSON object');
    },
    run: previewTemplate,
  });
}

function addNameFlag(command: Command): void {
  command.option('--name <name>', WHICH[1]);
}

async function listTemplates(session: Session): Promise<void> {
  const { value } = await session.client.templatedPolicy.list();
  await session.showAll(Object.values(value), TEMPLATE_COLUMNS, 'templates');
}

async function readTemplate(
  session: Session,
  options: WhichTemplate,
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const { value } = await session.client.templatedPolicy.read({ path: { name } });
  await session.show(value, () => templateParts(value));
}

async function previewTemplate(
  session: Session,
  options: PreviewOptions,
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const { value } = await session.client.templatedPolicy.preview({
    path: { name },
    body: variablesOf(session, options),
  });
  await session.show(value, () => previewParts(value));
}

/** The service refuses variables that it does not know, so they are passed on as they are. */
function variablesOf(session: Session, options: PreviewOptions): { readonly name?: string } {
  if (options.file === undefined) return mapOf('--var', options.var, ':') ?? {};
  if (options.var !== undefined) throw new UsageError('give only one of --var and --file');
  return objectInput(
    session.surroundings,
    '--file',
    fileInput(session.surroundings, '--file', options.file),
  );
}

function nameOf(options: WhichTemplate, argument: string | undefined): string {
  return exactlyOne([
    ['a name', argument],
    ['--name', options.name],
  ]);
}
