// `conclave acl …`: bootstrap and explain, and the groups of commands for each kind of object.

import type { Command } from 'commander';
import type { Answer, CallInput, CallOutput } from '../../../client/call-types.ts';
import { addGroup, addLeaf, exactlyOne } from '../../command-line.ts';
import { tokenId } from '../../flags/references.ts';
import type { Session } from '../../session.ts';
import { explanationParts } from '../../show/explanation.ts';
import { tokenParts } from '../../show/token.ts';
import type { Surroundings } from '../../surroundings.ts';
import { UsageError } from '../../usage-error.ts';
import { addAuthMethodCommands } from './auth-method.ts';
import { addBindingRuleCommands } from './binding-rule.ts';
import { addPolicyCommands } from './policy.ts';
import { addRoleCommands } from './role.ts';
import { addTemplatedPolicyCommands } from './templated-policy.ts';
import { addTokenCommands } from './token.ts';

interface ExplainOptions {
  readonly resource?: string;
  readonly segment?: string;
  readonly access?: string;
  readonly tokenOf?: string;
  readonly accessorId?: string;
}

/** Adds `acl` and everything below it to the program. */
export function addAclCommands(program: Command, surroundings: Surroundings): void {
  const acl = addGroup(program, 'acl', 'tokens, policies, roles, auth methods, binding rules');
  addLeaf(acl, surroundings, {
    name: 'bootstrap',
    says: 'create the first management token; works once',
    argument: ['[secret]', 'secret to give it: a UUID, @file, or - for standard input'],
    run: (session, _, argument) => bootstrap(session, argument),
  });
  addTokenCommands(acl, surroundings);
  addPolicyCommands(acl, surroundings);
  addRoleCommands(acl, surroundings);
  addAuthMethodCommands(acl, surroundings);
  addBindingRuleCommands(acl, surroundings);
  addTemplatedPolicyCommands(acl, surroundings);
  addLeaf<ExplainOptions>(acl, surroundings, {
    name: 'explain',
    says: 'show why a token may or may not do something',
    flags: (command) => {
      command
        .option('--resource <resource>', 'such as service, key, node, acl, operator')
        .option('--segment <name>', 'the name that is asked about, such as web')
        .option('--access <level>', 'read or write; for keys also list and write-prefix')
        .option(
          '--token-of <secret|@file|->',
          'ask for this token; default: the one of the request',
        )
        .option(
          '--accessor-id <id>',
          'ask for this token: its accessor id, the beginning of one, or anonymous',
        );
    },
    run: explain,
  });
}

async function bootstrap(session: Session, argument: string | undefined): Promise<void> {
  const secret = argument === undefined ? undefined : session.secretOf('secret', argument);
  const { value } = await session.client.bootstrap({
    body: secret === undefined ? undefined : { BootstrapSecret: secret },
  });
  await session.show(value, () => tokenParts(value));
  // Scripts look for the line with the word SecretID: this remark must not be a second one.
  await session.note(
    'Next: keep the secret safe; commands take it from CONCLAVE_TOKEN or --token-file.',
  );
}

async function explain(session: Session, options: ExplainOptions): Promise<void> {
  if (!options.resource) throw new UsageError('--resource is required');
  if (!options.access) throw new UsageError('--access is required');
  const { namespace } = session.connection;
  const question = {
    Resource: options.resource,
    Access: options.access,
    ...(options.segment === undefined ? {} : { Segment: options.segment }),
    ...(namespace === undefined ? {} : { Namespace: namespace }),
  };
  const { value } = await answersFor(session, options, {
    query: { explain: true },
    body: [question],
  });
  for (const answer of value)
    await session.show(answer, (colors) => explanationParts(answer, colors));
}

/** Of the token that the options name. */
async function answersFor(
  session: Session,
  { tokenOf, accessorId }: Pick<ExplainOptions, 'tokenOf' | 'accessorId'>,
  questions: CallInput<'authorize'>,
): Promise<Answer<CallOutput<'authorize'>>> {
  if (tokenOf === undefined && accessorId === undefined) return session.client.authorize(questions);
  const named = exactlyOne([
    ['--token-of', tokenOf],
    ['--accessor-id', accessorId],
  ]);
  if (accessorId === undefined) {
    return session.clientFor(session.secretOf('--token-of', named)).authorize(questions);
  }
  const path = { accessorId: await tokenId(session, named) };
  return session.client.token.authorize({ ...questions, path });
}
