// `conclave acl token …`: create, read, update, clone, delete, list.

import type { Command } from 'commander';
import {
  addCasFlag,
  addGroup,
  addLeaf,
  addShowingLeaf,
  casOf,
  exactlyOne,
  type MetaOptions,
} from '../../command-line.ts';
import { addDeleteFlags, type DeleteOptions, deleteQuery, sayDeleted } from '../../deletions.ts';
import {
  addPolicyFlags,
  addRoleFlags,
  addTokenUpdateFlags,
  type GrantOptions,
  grantsOf,
} from '../../flags/grants.ts';
import { policyId, roleId, tokenId } from '../../flags/references.ts';
import type { Session } from '../../session.ts';
import { metaColumns, namespaceColumn } from '../../show/common.ts';
import { TOKEN_COLUMNS, tokenParts } from '../../show/token.ts';
import type { Surroundings } from '../../surroundings.ts';
import { notBlank, UsageError } from '../../usage-error.ts';
import { type AckOptions, addAckFlag, unknownIn, writeAndShow } from '../../writes.ts';

interface WhichToken {
  readonly accessorId?: string;
}

interface CreateOptions extends GrantOptions, AckOptions {
  readonly accessor?: string;
  readonly secret?: string;
  readonly description?: string;
  readonly local?: boolean;
  readonly expiresTtl?: string;
}

interface ReadOptions extends WhichToken {
  readonly self?: boolean;
  readonly expanded?: boolean;
}

interface CloneOptions extends WhichToken, AckOptions {
  readonly description?: string;
}

interface UpdateOptions extends WhichToken, GrantOptions, AckOptions {
  readonly description?: string;
  readonly cas?: number;
}

interface ListOptions extends MetaOptions {
  readonly policy?: string;
  readonly role?: string;
  readonly serviceName?: string;
  readonly authMethod?: string;
}

const WHICH = ['[token]', 'accessor id, the beginning of it, or "anonymous"'] as const;

/** Adds `token` and its commands to `conclave acl`. */
export function addTokenCommands(acl: Command, surroundings: Surroundings): void {
  const token = addGroup(acl, 'token', 'create, read and change tokens');
  addShowingLeaf<CreateOptions>(token, surroundings, {
    name: 'create',
    says: 'create a token and print it with its secret',
    flags: addCreateFlags,
    run: createToken,
  });
  addShowingLeaf<ReadOptions>(token, surroundings, {
    name: 'read',
    says: 'show a token',
    argument: WHICH,
    flags: (command) => {
      addAccessorFlag(command);
      command
        .option('--self', 'the token of this request itself')
        .option('--expanded', 'with every policy and role behind it');
    },
    run: readToken,
  });
  addShowingLeaf<UpdateOptions>(token, surroundings, {
    name: 'update',
    says: 'change a token; what no flag mentions stays, a list that is given replaces',
    argument: WHICH,
    flags: addUpdateFlags,
    run: updateToken,
  });
  addShowingLeaf<CloneOptions>(token, surroundings, {
    name: 'clone',
    says: 'create a token with the links of another',
    argument: WHICH,
    flags: (command) => {
      addAccessorFlag(command);
      command.option('--description <text>', 'description of the new token');
      addAckFlag(command);
    },
    run: cloneToken,
  });
  addLeaf<WhichToken & { readonly cas?: number }>(token, surroundings, {
    name: 'delete',
    says: 'delete a token; it stops working at once where that has arrived',
    argument: WHICH,
    flags: (command) => {
      addAccessorFlag(command);
      addDeleteFlags(command);
    },
    run: deleteToken,
  });
  addShowingLeaf<ListOptions>(token, surroundings, {
    name: 'list',
    says: 'list tokens, by accessor id',
    flags: addListFlags,
    run: listTokens,
  });
}

function addAccessorFlag(command: Command): void {
  command.option('--accessor-id <id>', `the token: ${WHICH[1]}`);
}

function addCreateFlags(command: Command): void {
  command
    .option('--accessor <uuid>', 'accessor id to use; default: a new one')
    .option('--secret <uuid|@file|->', 'secret to use; default: a new one')
    .option('--description <text>', 'free text');
  addPolicyFlags(command);
  addRoleFlags(command);
  command
    .option('--local', 'valid in this datacenter only')
    .option('--expires-ttl <duration>', 'void after so long, such as 30m or 8h');
  addAckFlag(command);
}

function addUpdateFlags(command: Command): void {
  addAccessorFlag(command);
  command.option('--description <text>', 'free text');
  addTokenUpdateFlags(command);
  addCasFlag(command);
  addAckFlag(command);
}

function addListFlags(command: Command): void {
  command
    .option('--policy <policy>', 'only tokens linked to this policy: id, beginning of it, or name')
    .option('--role <role>', 'only tokens linked to this role: id, beginning of it, or name')
    .option('--service-name <name>', 'only tokens with this service identity')
    .option('--auth-method <name>', 'only tokens that this auth method made');
}

async function createToken(session: Session, options: CreateOptions): Promise<void> {
  if (options.local && session.connection.datacenter !== undefined)
    throw new UsageError(
      '--local: the token is made in the datacenter of the server that is asked, whatever --dc says: name a server there with --http-addr, and leave --dc out',
    );
  const body = {
    AccessorID: options.accessor,
    SecretID:
      options.secret === undefined ? undefined : session.secretOf('--secret', options.secret),
    Description: options.description,
    ...(await grantsOf(session, options, {})),
    Local: options.local,
    ExpirationTTL: options.expiresTtl,
  };
  await writeAndShow(
    session,
    options,
    (asked) => session.client.token.create({ ...asked, body }),
    (value) => session.show(value, () => tokenParts(value)),
  );
}

async function readToken(
  session: Session,
  options: ReadOptions,
  argument: string | undefined,
): Promise<void> {
  const value = options.self
    ? await readSelf(session, options, argument)
    : await readOther(session, await tokenOf(session, options, argument), options);
  await session.show(value, () => tokenParts(value));
}

async function readOther(session: Session, accessorId: string, { expanded }: ReadOptions) {
  const { value } = await session.client.token.read({ path: { accessorId }, query: { expanded } });
  return value;
}

async function readSelf(session: Session, options: ReadOptions, argument: string | undefined) {
  if (options.accessorId !== undefined || argument !== undefined)
    throw new UsageError('--self: names the token already, so give no id');
  const { value } = await session.client.token.readSelf();
  return options.expanded ? readOther(session, value.AccessorID, options) : value;
}

/** The service replaces the whole token, so this reads it first, and fails if it changes meanwhile. */
async function updateToken(
  session: Session,
  options: UpdateOptions,
  argument: string | undefined,
): Promise<void> {
  const accessorId = await tokenOf(session, options, argument);
  const { value: current } = await session.client.token.read({ path: { accessorId } });
  const body = {
    ...unknownIn('token.read', current),
    Description: options.description ?? current.Description,
    ...(await grantsOf(session, options, current)),
    Local: current.Local,
  };
  const cas = casOf(options, current);
  await writeAndShow(
    session,
    options,
    ({ query, headers }) =>
      session.client.token.update({
        path: { accessorId },
        query: { cas, ...query },
        headers,
        body,
      }),
    (value) => session.show(value, () => tokenParts(value)),
  );
}

async function cloneToken(
  session: Session,
  options: CloneOptions,
  argument: string | undefined,
): Promise<void> {
  const accessorId = await tokenOf(session, options, argument);
  const body = { Description: options.description };
  await writeAndShow(
    session,
    options,
    (asked) => session.client.token.clone({ path: { accessorId }, ...asked, body }),
    (value) => session.show(value, () => tokenParts(value)),
  );
}

async function deleteToken(
  session: Session,
  options: WhichToken & DeleteOptions,
  argument: string | undefined,
): Promise<void> {
  const accessorId = await tokenOf(session, options, argument);
  const query = deleteQuery(options);
  const answer = await session.client.token.delete({ path: { accessorId }, query });
  await sayDeleted(session, answer, { what: `token ${accessorId}` });
}

async function listTokens(session: Session, options: ListOptions): Promise<void> {
  const policy = notBlank('--policy', options.policy);
  const role = notBlank('--role', options.role);
  const pages = session.client.pages('token.list', {
    query: {
      policy: policy && (await policyId(session, policy)),
      role: role && (await roleId(session, role)),
      servicename: notBlank('--service-name', options.serviceName),
      authmethod: notBlank('--auth-method', options.authMethod),
    },
  });
  await session.showList(
    pages,
    [...namespaceColumn(session.connection), ...TOKEN_COLUMNS, ...metaColumns(options)],
    'tokens that this token may see',
  );
}

function tokenOf(
  session: Session,
  options: WhichToken,
  argument: string | undefined,
): Promise<string> {
  const given = exactlyOne([
    ['a token id', argument],
    ['--accessor-id', options.accessorId],
  ]);
  return tokenId(session, given);
}
