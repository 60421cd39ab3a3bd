// `conclave acl auth-method …`: create, read, update, delete, list.

import type { Command } from 'commander';
import type { CallInput } from '../../../client/call-types.ts';
import {
  addCasFlag,
  addClearFlag,
  addGroup,
  addLeaf,
  addRepeatable,
  addShowingLeaf,
  type ClearOptions,
  casOf,
  exactlyOne,
  isCleared,
  type MetaOptions,
} from '../../command-line.ts';
import { addDeleteFlags, type DeleteOptions, deleteQuery, sayDeleted } from '../../deletions.ts';
import { objectInput } from '../../flags/text-input.ts';
import type { Session } from '../../session.ts';
import { AUTH_METHOD_COLUMNS, authMethodParts } from '../../show/auth-method.ts';
import { metaColumns, namespaceColumn } from '../../show/common.ts';
import type { Surroundings } from '../../surroundings.ts';
import { notBlank, UsageError } from '../../usage-error.ts';
import { type AckOptions, addAckFlag, unknownIn, writeAndShow } from '../../writes.ts';

type Body = CallInput<'auth-method.update'>['body'];

interface WhichMethod {
  readonly name?: string;
}

interface ContentOptions extends WhichMethod, AckOptions {
  readonly description?: string;
  readonly displayName?: string;
  readonly maxTokenTtl?: string;
  readonly tokenLocality?: string;
  readonly config?: string;
  readonly namespaceRuleSelector?: readonly string[];
  readonly namespaceRuleBindNamespace?: readonly string[];
}

interface UpdateOptions extends ContentOptions, ClearOptions {
  readonly cas?: number;
}

const WHICH = ['[method]', 'name of the auth method'] as const;
/** In place of a selector; as a selector it would have no operator. */
const ALL_IDENTITIES = 'all-identities';

/** Adds `auth-method` and its commands to `conclave acl`. */
export function addAuthMethodCommands(acl: Command, surroundings: Surroundings): void {
  const method = addGroup(acl, 'auth-method', 'create, read and change auth methods');
  addShowingLeaf<ContentOptions & { readonly type?: string }>(method, surroundings, {
    name: 'create',
    says: 'create an auth method, or replace the one of that name',
    flags: (command) => {
      addNameFlag(command);
      command.option('--type <type>', 'jwt, oidc, kubernetes or aws-iam');
      addContentFlags(command);
    },
    run: createMethod,
  });
  addShowingLeaf<WhichMethod>(method, surroundings, {
    name: 'read',
    says: 'show an auth method with its configuration',
    argument: WHICH,
    flags: addNameFlag,
    run: readMethod,
  });
  addShowingLeaf<UpdateOptions>(method, surroundings, {
    name: 'update',
    says: 'change an auth method; what no flag mentions stays as it is',
    argument: WHICH,
    flags: (command) => {
      addNameFlag(command);
      addContentFlags(command);
      addClearFlag(command, ['namespace-rules']);
      addCasFlag(command);
    },
    run: updateMethod,
  });
  addLeaf<WhichMethod & { readonly cas?: number }>(method, surroundings, {
    name: 'delete',
    says: 'delete an auth method with its binding rules and its tokens',
    argument: WHICH,
    flags: (command) => {
      addNameFlag(command);
      addDeleteFlags(command);
    },
    run: deleteMethod,
  });
  addShowingLeaf(method, surroundings, {
    name: 'list',
    says: 'list auth methods, by name',
    run: (session, options: MetaOptions) =>
      session.showList(
        session.client.pages('auth-method.list'),
        [...namespaceColumn(session.connection), ...AUTH_METHOD_COLUMNS, ...metaColumns(options)],
        'auth methods that this token may see',
      ),
  });
}

function addNameFlag(command: Command): void {
  command.option('--name <name>', 'name of the auth method');
}

function addContentFlags(command: Command): void {
  command
    .option('--description <text>', 'free text')
    .option('--display-name <name>', 'shown in place of the name')
    .option('--max-token-ttl <duration>', 'longest life of its tokens, such as 8h')
    .option('--token-locality <where>', 'local or global')
    .option('--config <json|@file|->', 'configuration as a JSON object; replaces the whole one');
  addRepeatable(
    command,
    '--namespace-rule-selector <selector>',
    `which identities a rule is for; ${ALL_IDENTITIES}: every one`,
  );
  addRepeatable(
    command,
    '--namespace-rule-bind-namespace <name>',
    'namespace of their tokens; one for each selector, in the same order',
  );
  addAckFlag(command);
}

/** What the flags say; fields without a flag are undefined. */
function contentOf(session: Session, options: ContentOptions): Body {
  const { config } = options;
  return {
    Description: options.description,
    DisplayName: options.displayName,
    MaxTokenTTL: options.maxTokenTtl,
    TokenLocality: notBlank('--token-locality', options.tokenLocality),
    Config:
      config === undefined
        ? undefined
        : (objectInput(session.surroundings, '--config', config) as Body['Config']),
    NamespaceRules: namespaceRulesOf(options),
  };
}

function namespaceRulesOf(options: ContentOptions): Body['NamespaceRules'] {
  const { namespaceRuleSelector: selectors, namespaceRuleBindNamespace: namespaces } = options;
  if (selectors === undefined && namespaces === undefined) return undefined;
  const isOneForAll = selectors === undefined && namespaces?.length === 1;
  if (!isOneForAll && selectors?.length !== namespaces?.length)
    throw new UsageError(
      `give one --namespace-rule-bind-namespace for each --namespace-rule-selector (${ALL_IDENTITIES} stands for every identity)`,
    );
  return namespaces?.map((namespace, place) => ({
    Selector: selectorOf(selectors?.[place] ?? ALL_IDENTITIES),
    BindNamespace: namespace,
  }));
}

/** To the service an empty selector means everybody; here a word of its own says so. */
function selectorOf(given: string): string {
  return given === ALL_IDENTITIES ? '' : given;
}

async function createMethod(
  session: Session,
  options: ContentOptions & { readonly type?: string },
): Promise<void> {
  if (!options.name) throw new UsageError('--name is required');
  if (!options.type) throw new UsageError('--type is required');
  const body = { Name: options.name, Type: options.type, ...contentOf(session, options) };
  await writeAndShow(
    session,
    options,
    (asked) => session.client.authMethod.create({ ...asked, body }),
    (value) => session.show(value, () => authMethodParts(value)),
  );
}

async function readMethod(
  session: Session,
  options: WhichMethod,
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const { value } = await session.client.authMethod.read({ path: { name } });
  await session.show(value, () => authMethodParts(value));
}

async function updateMethod(
  session: Session,
  options: UpdateOptions,
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const content = contentOf(session, options);
  const { value: current } = await session.client.authMethod.read({ path: { name } });
  const body = {
    ...unknownIn('auth-method.read', current),
    Type: current.Type,
    Description: content.Description ?? current.Description,
    DisplayName: content.DisplayName ?? current.DisplayName,
    MaxTokenTTL: content.MaxTokenTTL ?? current.MaxTokenTTL,
    TokenLocality: content.TokenLocality ?? current.TokenLocality,
    Config: content.Config ?? current.Config,
    NamespaceRules:
      content.NamespaceRules ??
      (isCleared(options, 'namespace-rules') ? [] : current.NamespaceRules),
  };
  const cas = casOf(options, current);
  await writeAndShow(
    session,
    options,
    ({ query, headers }) =>
      session.client.authMethod.update({ path: { name }, query: { cas, ...query }, headers, body }),
    (value) => session.show(value, () => authMethodParts(value)),
  );
}

async function deleteMethod(
  session: Session,
  options: WhichMethod & DeleteOptions,
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(options, argument);
  const query = deleteQuery(options);
  const answer = await session.client.authMethod.delete({ path: { name }, query });
  const also = ', its binding rules and its tokens';
  await sayDeleted(session, answer, { what: `auth method ${name}`, also });
}

function nameOf(options: WhichMethod, argument: string | undefined): string {
  return exactlyOne([
    ['a name', argument],
    ['--name', options.name],
  ]);
}
