// `conclave acl …`: bootstrap and explain, and the groups of commands for each kind of object.

import type { Command } from 'commander';
import { addGroup, addLeaf } from '../command-line.ts';
import type { Session } from '../session.ts';
import { explanationParts } from '../show/explanation.ts';
import { tokenParts } from '../show/token.ts';
import type { Surroundings } from '../surroundings.ts';
import { UsageError } from '../usage-error.ts';
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
  const client =
    options.tokenOf === undefined
      ? session.client
      : session.clientFor(session.secretOf('--token-of', options.tokenOf));
  const { namespace } = session.connection;
  const { value } = await client.authorize({
    query: { explain: true },
    body: [
      {
        Resource: options.resource,
        Access: options.access,
        ...(options.segment === undefined ? {} : { Segment: options.segment }),
        ...(namespace === undefined ? {} : { Namespace: namespace }),
      },
    ],
  });
  for (const answer of value)
    await session.show(answer, (colors) => explanationParts(answer, colors));
}
