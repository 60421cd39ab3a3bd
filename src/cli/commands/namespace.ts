// `conclave namespace …`: create, read, update, delete, list.

import type { Command } from 'commander';
import type { CallInput, CallOutput } from '../../client/call-types.ts';
import {
  addCasFlag,
  addClearFlag,
  addGroup,
  addLeaf,
  addRepeatable,
  type ClearOptions,
  casOf,
  exactlyOne,
  isCleared,
  mapOf,
} from '../command-line.ts';
import { addDeleteFlags, type DeleteOptions, deleteQuery, sayDeleted } from '../deletions.ts';
import { linksOf } from '../flags/links.ts';
import { policyId, roleId } from '../flags/references.ts';
import type { Session } from '../session.ts';
import { NAMESPACE_COLUMNS, namespaceParts } from '../show/namespace.ts';
import type { Surroundings } from '../surroundings.ts';
import { type AckOptions, addAckFlag, unknownBeside, unknownIn, writeAndShow } from '../writes.ts';

type Body = CallInput<'namespace.update'>['body'];
type Namespace = CallOutput<'namespace.read'>;

interface WhichNamespace {
  readonly name?: string;
}

interface ContentOptions extends WhichNamespace, ClearOptions, AckOptions {
  readonly description?: string;
  readonly defaultPolicyId?: readonly string[];
  readonly defaultPolicyName?: readonly string[];
  readonly defaultRoleId?: readonly string[];
  readonly defaultRoleName?: readonly string[];
  readonly meta?: readonly string[];
}

const WHICH = ['[name]', 'name of the namespace'] as const;

/** Adds `namespace` and its commands to the program. */
export function addNamespaceCommands(program: Command, surroundings: Surroundings): void {
  const namespace = addGroup(program, 'namespace', 'create, read and change namespaces');
  addLeaf<ContentOptions>(namespace, surroundings, {
    name: 'create',
    says: 'create a namespace',
    argument: WHICH,
    flags: addContentFlags,
    run: createNamespace,
  });
  addLeaf<WhichNamespace>(namespace, surroundings, {
    name: 'read',
    says: 'show a namespace',
    argument: WHICH,
    flags: addNameFlag,
    run: readNamespace,
  });
  addLeaf<ContentOptions & { readonly cas?: number }>(namespace, surroundings, {
    name: 'update',
    says: 'change a namespace; what no flag mentions stays as it is',
    argument: WHICH,
    flags: (command) => {
      addContentFlags(command);
      addClearFlag(command, ['default-policies', 'default-roles', 'meta']);
      addCasFlag(command);
    },
    run: updateNamespace,
  });
  addLeaf<WhichNamespace & { readonly cas?: number }>(namespace, surroundings, {
    name: 'delete',
    says: 'delete a namespace that holds nothing',
    argument: WHICH,
    flags: (command) => {
      addNameFlag(command);
      addDeleteFlags(command);
    },
    run: deleteNamespace,
  });
  addLeaf(namespace, surroundings, {
    name: 'list',
    says: 'list namespaces, by name',
    run: (session) =>
      session.showList(
        session.client.pages('namespace.list'),
        NAMESPACE_COLUMNS,
        'namespaces that this token may see',
      ),
  });
}

function addNameFlag(command: Command): void {
  command.option('--name <name>', WHICH[1]);
}

function addContentFlags(command: Command): void {
  addNameFlag(command);
  command.option('--description <text>', 'free text');
  addRepeatable(command, '--default-policy-id <id>', 'policy of every token of the namespace');
  addRepeatable(command, '--default-policy-name <name>', 'the same by name');
  addRepeatable(command, '--default-role-id <id>', 'role of every token of the namespace');
  addRepeatable(command, '--default-role-name <name>', 'the same by name');
  addRepeatable(command, '--meta <name=value>', 'free data');
  addAckFlag(command);
}

/** What the flags say on top of `current`; a list that is given replaces, `--clear` empties one. */
async function contentOf(
  session: Session,
  options: ContentOptions,
  current: Pick<Namespace, 'Description' | 'ACLs' | 'Meta'>,
): Promise<Body> {
  const { defaultPolicyId, defaultPolicyName, defaultRoleId, defaultRoleName } = options;
  const PolicyDefaults =
    (await linksOf(session, policyId, defaultPolicyId, defaultPolicyName)) ??
    (isCleared(options, 'default-policies') ? [] : current.ACLs.PolicyDefaults);
  const RoleDefaults =
    (await linksOf(session, roleId, defaultRoleId, defaultRoleName)) ??
    (isCleared(options, 'default-roles') ? [] : current.ACLs.RoleDefaults);
  return {
    Description: options.description ?? current.Description,
    ACLs: {
      ...unknownBeside({ PolicyDefaults, RoleDefaults }, current.ACLs),
      ...(PolicyDefaults === undefined ? {} : { PolicyDefaults }),
      ...(RoleDefaults === undefined ? {} : { RoleDefaults }),
    },
    Meta: mapOf('--meta', options.meta) ?? (isCleared(options, 'meta') ? {} : current.Meta),
  };
}

async function createNamespace(
  session: Session,
  options: ContentOptions,
  argument: string | undefined,
): Promise<void> {
  const Name = nameOf(options, argument);
  const content = await contentOf(session, options, { Description: '', ACLs: {} });
  await writeAndShow(
    session,
    options,
    (asked) => session.client.namespace.create({ ...asked, body: { Name, ...content } }),
    (value) => session.show(value, () => namespaceParts(value)),
  );
}

async function readNamespace(
  session: Session,
  options: WhichNamespace,
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const { value } = await session.client.namespace.read({ path: { name } });
  await session.show(value, () => namespaceParts(value));
}

async function updateNamespace(
  session: Session,
  options: ContentOptions & { readonly cas?: number },
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const { value: current } = await session.client.namespace.read({ path: { name } });
  const content = await contentOf(session, options, current);
  const body = { ...unknownIn('namespace.read', current), ...content };
  const cas = casOf(options, current);
  await writeAndShow(
    session,
    options,
    ({ query, headers }) =>
      session.client.namespace.update({ path: { name }, query: { cas, ...query }, headers, body }),
    (value) => session.show(value, () => namespaceParts(value)),
  );
}

async function deleteNamespace(
  session: Session,
  options: WhichNamespace & DeleteOptions,
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const query = deleteQuery(options);
  const answer = await session.client.namespace.delete({ path: { name }, query });
  await sayDeleted(session, answer, { what: `namespace ${name}`, isNamespaced: false });
}

function nameOf(options: WhichNamespace, argument: string | undefined): string {
  return exactlyOne([
    ['a name', argument],
    ['--name', options.name],
  ]);
}
