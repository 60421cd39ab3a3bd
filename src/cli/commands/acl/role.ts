// `conclave acl role …`: create, read, update, delete, list.

import type { Command } from 'commander';
import {
  addCasFlag,
  addGroup,
  addLeaf,
  addShowingLeaf,
  casOf,
  type MetaOptions,
} from '../../command-line.ts';
import { addDeleteFlags, type DeleteOptions, deleteQuery, sayDeleted } from '../../deletions.ts';
import {
  addPolicyFlags,
  addRoleUpdateFlags,
  type GrantOptions,
  grantsOf,
} from '../../flags/grants.ts';
import { policyId, roleId } from '../../flags/references.ts';
import type { Session } from '../../session.ts';
import { metaColumns, namespaceColumn } from '../../show/common.ts';
import { ROLE_COLUMNS, roleParts } from '../../show/policy.ts';
import type { Surroundings } from '../../surroundings.ts';
import { notBlank, UsageError } from '../../usage-error.ts';
import { type AckOptions, addAckFlag, unknownIn, writeAndShow } from '../../writes.ts';
import { addNamedFlags, type NamedOptions, namedOf, newNameOf } from './named.ts';

interface CreateOptions extends GrantOptions, AckOptions {
  readonly name?: string;
  readonly description?: string;
}

interface UpdateOptions extends CreateOptions, NamedOptions {
  readonly newName?: string;
  readonly cas?: number;
}

const WHICH = ['[role]', 'id, the beginning of it, or name'] as const;

/** Adds `role` and its commands to `conclave acl`. */
export function addRoleCommands(acl: Command, surroundings: Surroundings): void {
  const role = addGroup(acl, 'role', 'create, read and change roles');
  addShowingLeaf<CreateOptions>(role, surroundings, {
    name: 'create',
    says: 'create a role',
    flags: (command) => {
      command
        .option('--name <name>', 'letters, digits, - and _')
        .option('--description <text>', 'free text');
      addPolicyFlags(command);
      addAckFlag(command);
    },
    run: createRole,
  });
  addShowingLeaf<NamedOptions>(role, surroundings, {
    name: 'read',
    says: 'show a role',
    argument: WHICH,
    flags: addNamedFlags,
    run: readRole,
  });
  addShowingLeaf<UpdateOptions>(role, surroundings, {
    name: 'update',
    says: 'change a role; what no flag mentions stays, a list that is given replaces',
    argument: WHICH,
    flags: addUpdateFlags,
    run: updateRole,
  });
  addLeaf<NamedOptions & { readonly cas?: number }>(role, surroundings, {
    name: 'delete',
    says: 'delete a role',
    argument: WHICH,
    flags: (command) => {
      addNamedFlags(command);
      addDeleteFlags(command);
    },
    run: deleteRole,
  });
  addShowingLeaf<{ readonly policy?: string }>(role, surroundings, {
    name: 'list',
    says: 'list roles, by name',
    flags: (command) => {
      command.option('--policy <policy>', 'only roles linked to this policy');
    },
    run: listRoles,
  });
}

function addUpdateFlags(command: Command): void {
  addNamedFlags(command);
  command.option('--new-name <name>', 'rename it').option('--description <text>', 'free text');
  addRoleUpdateFlags(command);
  addCasFlag(command);
  addAckFlag(command);
}

async function createRole(session: Session, options: CreateOptions): Promise<void> {
  if (!options.name) throw new UsageError('--name is required');
  const { Roles: _, ...grants } = await grantsOf(session, options, {});
  const body = { Name: options.name, Description: options.description, ...grants };
  await writeAndShow(
    session,
    options,
    (asked) => session.client.role.create({ ...asked, body }),
    (value) => session.show(value, () => roleParts(value)),
  );
}

async function readRole(
  session: Session,
  options: NamedOptions,
  argument: string | undefined,
): Promise<void> {
  const value = await roleOf(session, options, argument);
  await session.show(value, () => roleParts(value));
}

async function updateRole(
  session: Session,
  options: UpdateOptions,
  argument: string | undefined,
): Promise<void> {
  const renamed = newNameOf(options, argument);
  const current = await roleOf(session, renamed.which, argument);
  const { Roles: _, ...grants } = await grantsOf(session, options, current);
  const body = {
    ...unknownIn('role.read', current),
    Name: renamed.newName ?? current.Name,
    Description: options.description ?? current.Description,
    ...grants,
  };
  const path = { id: current.ID };
  const cas = casOf(options, current);
  await writeAndShow(
    session,
    options,
    ({ query, headers }) =>
      session.client.role.update({ path, query: { cas, ...query }, headers, body }),
    (value) => session.show(value, () => roleParts(value)),
  );
}

async function deleteRole(
  session: Session,
  options: NamedOptions & DeleteOptions,
  argument: string | undefined,
): Promise<void> {
  const found = namedOf(options, argument);
  const id =
    found.by === 'name'
      ? (await roleOf(session, options, argument)).ID
      : await roleId(session, found.given);
  const answer = await session.client.role.delete({ path: { id }, query: deleteQuery(options) });
  await sayDeleted(session, answer, { what: `role ${id}` });
}

async function listRoles(
  session: Session,
  options: MetaOptions & { readonly policy?: string },
): Promise<void> {
  const given = notBlank('--policy', options.policy);
  const policy = given && (await policyId(session, given));
  await session.showList(
    session.client.pages('role.list', { query: { policy } }),
    [...namespaceColumn(session.connection), ...ROLE_COLUMNS, ...metaColumns(options)],
    'roles that this token may see',
  );
}

async function roleOf(session: Session, options: NamedOptions, argument: string | undefined) {
  const found = namedOf(options, argument);
  const { value } =
    found.by === 'name'
      ? await session.client.role.readByName({ path: { name: found.given } })
      : await session.client.role.read({ path: { id: await roleId(session, found.given) } });
  return value;
}
