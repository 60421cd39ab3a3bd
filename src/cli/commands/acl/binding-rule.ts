// `conclave acl binding-rule …`: create, read, update, delete, list.

import type { Command } from 'commander';
import type { CallInput } from '../../../client/call-types.ts';
import {
  addCasFlag,
  addClearFlag,
  addGroup,
  addLeaf,
  addShowingLeaf,
  type ClearOptions,
  casOf,
  exactlyOne,
  isCleared,
  type MetaOptions,
  pairOf,
} from '../../command-line.ts';
import { addDeleteFlags, type DeleteOptions, deleteQuery, sayDeleted } from '../../deletions.ts';
import { bindingRuleId } from '../../flags/references.ts';
import type { Session } from '../../session.ts';
import { BINDING_RULE_COLUMNS, bindingRuleParts } from '../../show/auth-method.ts';
import { metaColumns, namespaceColumn } from '../../show/common.ts';
import type { Surroundings } from '../../surroundings.ts';
import { notBlank, UsageError } from '../../usage-error.ts';
import { type AckOptions, addAckFlag, unknownIn, writeAndShow } from '../../writes.ts';

type Body = CallInput<'binding-rule.update'>['body'];

interface WhichRule {
  readonly id?: string;
}

interface ContentOptions extends AckOptions {
  readonly description?: string;
  readonly selector?: string;
  readonly bindType?: string;
  readonly bindName?: string;
  readonly bindVars?: string;
}

interface CreateOptions extends ContentOptions {
  readonly method?: string;
}

interface UpdateOptions extends ContentOptions, ClearOptions, WhichRule {
  readonly allIdentities?: true;
  readonly cas?: number;
}

const WHICH = ['[rule]', 'id of the binding rule, or the beginning of it'] as const;

/** Adds `binding-rule` and its commands to `conclave acl`. */
export function addBindingRuleCommands(acl: Command, surroundings: Surroundings): void {
  const rule = addGroup(acl, 'binding-rule', 'create, read and change binding rules');
  addShowingLeaf<CreateOptions>(rule, surroundings, {
    name: 'create',
    says: 'create a binding rule: what an identity gets when it logs in',
    flags: (command) => {
      command.option('--method <name>', 'the auth method it belongs to');
      addContentFlags(command);
    },
    run: createRule,
  });
  addShowingLeaf<WhichRule>(rule, surroundings, {
    name: 'read',
    says: 'show a binding rule',
    argument: WHICH,
    flags: addIdFlag,
    run: readRule,
  });
  addShowingLeaf<UpdateOptions>(rule, surroundings, {
    name: 'update',
    says: 'change a binding rule; what no flag mentions stays as it is',
    argument: WHICH,
    flags: (command) => {
      addIdFlag(command);
      addContentFlags(command);
      command.option('--all-identities', 'every one again, in place of a selector');
      addClearFlag(command, ['bind-vars']);
      addCasFlag(command);
    },
    run: updateRule,
  });
  addLeaf<WhichRule & { readonly cas?: number }>(rule, surroundings, {
    name: 'delete',
    says: 'delete a binding rule; tokens that it helped to make stay',
    argument: WHICH,
    flags: (command) => {
      addIdFlag(command);
      addDeleteFlags(command);
    },
    run: deleteRule,
  });
  addShowingLeaf<{ readonly method?: string }>(rule, surroundings, {
    name: 'list',
    says: 'list binding rules, by id',
    flags: (command) => {
      command.option('--method <name>', 'only the rules of this auth method');
    },
    run: listRules,
  });
}

function addIdFlag(command: Command): void {
  command.option('--id <id>', WHICH[1]);
}

function addContentFlags(command: Command): void {
  command
    .option('--description <text>', 'free text')
    .option('--selector <expression>', 'which identities; default: every one')
    .option('--bind-type <type>', 'service, node, role, policy or templated-policy')
    .option('--bind-name <name>', 'what is bound; attributes of the identity may be put in')
    .option('--bind-vars <name=value>', 'variable of a templated policy');
  addAckFlag(command);
}

function bindVarsOf({ bindVars: value }: ContentOptions): Body['BindVars'] {
  if (value === undefined) return undefined;
  const [name, text] = pairOf('--bind-vars', value, '=');
  if (name !== 'name')
    throw new UsageError(`--bind-vars: expected name=value, not ${JSON.stringify(value)}`);
  return { name: text };
}

async function createRule(session: Session, options: CreateOptions): Promise<void> {
  for (const flag of ['method', 'bindType', 'bindName'] as const)
    if (!options[flag])
      throw new UsageError(`--${flag.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)} is required`);
  const body = {
    AuthMethod: options.method,
    Description: options.description,
    Selector: notBlank('--selector', options.selector),
    BindType: options.bindType,
    BindName: options.bindName,
    BindVars: bindVarsOf(options),
  };
  await writeAndShow(
    session,
    options,
    (asked) => session.client.bindingRule.create({ ...asked, body }),
    (value) => session.show(value, () => bindingRuleParts(value)),
  );
}

async function readRule(
  session: Session,
  options: WhichRule,
  argument: string | undefined,
): Promise<void> {
  const id = await ruleOf(session, options, argument);
  const { value } = await session.client.bindingRule.read({ path: { id } });
  await session.show(value, () => bindingRuleParts(value));
}

async function updateRule(
  session: Session,
  options: UpdateOptions,
  argument: string | undefined,
): Promise<void> {
  const selector = selectorOf(options);
  const bindVars = bindVarsOf(options);
  const id = await ruleOf(session, options, argument);
  const { value: current } = await session.client.bindingRule.read({ path: { id } });
  const body = {
    ...unknownIn('binding-rule.read', current),
    AuthMethod: current.AuthMethod,
    Description: options.description ?? current.Description,
    Selector: selector ?? current.Selector,
    BindType: options.bindType ?? current.BindType,
    BindName: options.bindName ?? current.BindName,
    BindVars: bindVars ?? (isCleared(options, 'bind-vars') ? {} : current.BindVars),
  };
  const cas = casOf(options, current);
  await writeAndShow(
    session,
    options,
    ({ query, headers }) =>
      session.client.bindingRule.update({ path: { id }, query: { cas, ...query }, headers, body }),
    (value) => session.show(value, () => bindingRuleParts(value)),
  );
}

/** The empty selector, which selects everybody, is asked for in a word of its own. */
function selectorOf({ allIdentities, selector }: UpdateOptions): string | undefined {
  if (allIdentities !== true)
    return notBlank('--selector', selector, '--all-identities stands for every one');
  if (selector === undefined) return '';
  throw new UsageError('give only one of --selector and --all-identities');
}

async function deleteRule(
  session: Session,
  options: WhichRule & DeleteOptions,
  argument: string | undefined,
): Promise<void> {
  const id = await ruleOf(session, options, argument);
  const query = deleteQuery(options);
  const answer = await session.client.bindingRule.delete({ path: { id }, query });
  await sayDeleted(session, answer, { what: `binding rule ${id}` });
}

async function listRules(
  session: Session,
  options: MetaOptions & { readonly method?: string },
): Promise<void> {
  const authmethod = notBlank('--method', options.method);
  await session.showList(
    session.client.pages('binding-rule.list', { query: { authmethod } }),
    [...namespaceColumn(session.connection), ...BINDING_RULE_COLUMNS, ...metaColumns(options)],
    'binding rules that this token may see',
  );
}

function ruleOf(
  session: Session,
  options: WhichRule,
  argument: string | undefined,
): Promise<string> {
  const given = exactlyOne([
    ['an id', argument],
    ['--id', options.id],
  ]);
  return bindingRuleId(session, given);
}
