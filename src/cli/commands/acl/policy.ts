// `conclave acl policy …`: create, read, update, delete, list.

import type { Command } from 'commander';
import {
  addCasFlag,
  addClearFlag,
  addGroup,
  addLeaf,
  addRepeatable,
  addShowingLeaf,
  type ClearOptions,
  casOf,
  isCleared,
  type MetaOptions,
} from '../../command-line.ts';
import { addDeleteFlags, type DeleteOptions, deleteQuery, sayDeleted } from '../../deletions.ts';
import { warnOfIgnored } from '../../flags/ignored-rules.ts';
import { policyId } from '../../flags/references.ts';
import { textInput } from '../../flags/text-input.ts';
import type { Session } from '../../session.ts';
import { metaColumns, namespaceColumn } from '../../show/common.ts';
import { POLICY_COLUMNS, policyParts } from '../../show/policy.ts';
import type { Surroundings } from '../../surroundings.ts';
import { notBlank, UsageError } from '../../usage-error.ts';
import { type AckOptions, addAckFlag, unknownIn, writeAndShow } from '../../writes.ts';
import { addNamedFlags, type NamedOptions, namedOf, newNameOf } from './named.ts';

interface ContentOptions extends AckOptions {
  readonly description?: string;
  readonly rules?: string;
  readonly validDatacenter?: string[];
}

interface UpdateOptions extends NamedOptions, ContentOptions, ClearOptions {
  readonly newName?: string;
  readonly allDatacenters?: true;
  readonly cas?: number;
}

const WHICH = ['[policy]', 'id, the beginning of it, or name'] as const;

/** Adds `policy` and its commands to `conclave acl`. */
export function addPolicyCommands(acl: Command, surroundings: Surroundings): void {
  const policy = addGroup(acl, 'policy', 'create, read and change policies');
  addShowingLeaf<ContentOptions & { readonly name?: string }>(policy, surroundings, {
    name: 'create',
    says: 'create a policy',
    flags: (command) => {
      command.option('--name <name>', 'letters, digits, - and _');
      addContentFlags(command);
    },
    run: createPolicy,
  });
  addShowingLeaf<NamedOptions>(policy, surroundings, {
    name: 'read',
    says: 'show a policy with its rules',
    argument: WHICH,
    flags: addNamedFlags,
    run: readPolicy,
  });
  addShowingLeaf<UpdateOptions>(policy, surroundings, {
    name: 'update',
    says: 'change a policy; what no flag mentions stays as it is',
    argument: WHICH,
    flags: (command) => {
      addNamedFlags(command);
      command.option('--new-name <name>', 'rename it');
      addContentFlags(command);
      command.option('--all-datacenters', 'valid in all of them again');
      addClearFlag(command, ['rules']);
      addCasFlag(command);
    },
    run: updatePolicy,
  });
  addLeaf<NamedOptions & { readonly cas?: number }>(policy, surroundings, {
    name: 'delete',
    says: 'delete a policy',
    argument: WHICH,
    flags: (command) => {
      addNamedFlags(command);
      addDeleteFlags(command);
    },
    run: deletePolicy,
  });
  addShowingLeaf(policy, surroundings, {
    name: 'list',
    says: 'list policies, by name',
    run: (session, options: MetaOptions) =>
      session.showList(
        session.client.pages('policy.list'),
        [...namespaceColumn(session.connection), ...POLICY_COLUMNS, ...metaColumns(options)],
        'policies that this token may see',
      ),
  });
}

function addContentFlags(command: Command): void {
  command
    .option('--description <text>', 'free text')
    .option('--rules <text|@file|->', 'the rules: text, a file, or standard input');
  addRepeatable(command, '--valid-datacenter <name>', 'datacenter where it is valid; default: all');
  addAckFlag(command);
}

/**
 * What `--rules` stands for. Throws UsageError where it is empty: what a policy denies would go with what it gives;
 * and says what does that where it can be meant.
 */
function rulesOf(
  { surroundings }: Session,
  { rules }: ContentOptions,
  instead?: string,
): string | undefined {
  if (rules === undefined) return undefined;
  return notBlank('--rules', textInput(surroundings, '--rules', rules), instead);
}

async function createPolicy(
  session: Session,
  options: ContentOptions & { readonly name?: string },
): Promise<void> {
  if (!options.name) throw new UsageError('--name is required');
  const rules = rulesOf(session, options);
  const body = {
    Name: options.name,
    Description: options.description,
    Rules: rules,
    Datacenters: options.validDatacenter,
  };
  await writeAndShow(
    session,
    options,
    (asked) => session.client.policy.create({ ...asked, body }),
    async (value) => {
      await session.show(value, () => policyParts(value));
      await warnOfIgnored(session, rules);
    },
  );
}

async function readPolicy(
  session: Session,
  options: NamedOptions,
  argument: string | undefined,
): Promise<void> {
  const value = await policyOf(session, options, argument);
  await session.show(value, () => policyParts(value));
}

async function updatePolicy(
  session: Session,
  options: UpdateOptions,
  argument: string | undefined,
): Promise<void> {
  const { allDatacenters, validDatacenter: datacenters } = options;
  const rules = rulesOf(session, options, '--clear rules takes them away');
  if (allDatacenters === true && datacenters !== undefined)
    throw new UsageError('give only one of --valid-datacenter and --all-datacenters');
  const renamed = newNameOf(options, argument);
  const current = await policyOf(session, renamed.which, argument);
  const body = {
    ...unknownIn('policy.read', current),
    Name: renamed.newName ?? current.Name,
    Description: options.description ?? current.Description,
    Rules: rules ?? (isCleared(options, 'rules') ? '' : current.Rules),
    // The built-in policies refuse the field even when it is empty.
    Datacenters: allDatacenters ? [] : (datacenters ?? current.Datacenters ?? undefined),
  };
  const path = { id: current.ID };
  const cas = casOf(options, current);
  await writeAndShow(
    session,
    options,
    ({ query, headers }) =>
      session.client.policy.update({ path, query: { cas, ...query }, headers, body }),
    async (value) => {
      await session.show(value, () => policyParts(value));
      await warnOfIgnored(session, rules);
    },
  );
}

async function deletePolicy(
  session: Session,
  options: NamedOptions & DeleteOptions,
  argument: string | undefined,
): Promise<void> {
  const found = namedOf(options, argument);
  const id =
    found.by === 'name'
      ? (await policyOf(session, options, argument)).ID
      : await policyId(session, found.given);
  const answer = await session.client.policy.delete({ path: { id }, query: deleteQuery(options) });
  await sayDeleted(session, answer, { what: `policy ${id}` });
}

async function policyOf(session: Session, options: NamedOptions, argument: string | undefined) {
  const found = namedOf(options, argument);
  const { value } =
    found.by === 'name'
      ? await session.client.policy.readByName({ path: { name: found.given } })
      : await session.client.policy.read({ path: { id: await policyId(session, found.given) } });
  return value;
}
