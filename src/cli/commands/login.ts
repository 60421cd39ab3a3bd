// `conclave login` and `conclave logout`: a token for an outside identity, and the end of it.

import type { Command } from 'commander';
import { messageOf } from '../../../cluster/base/message-of.ts';
import { addLeaf, addRepeatable, mapOf } from '../command-line.ts';
import { deleteQuery, sayEnded } from '../deletions.ts';
import { CommandFailed } from '../failed.ts';
import { fileInput } from '../flags/text-input.ts';
import type { Session } from '../session.ts';
import { timeText } from '../show/common.ts';
import { loginExplanationParts } from '../show/login-explanation.ts';
import type { Surroundings } from '../surroundings.ts';
import { UsageError } from '../usage-error.ts';
import { type AckOptions, addAckFlag, writeAndShow } from '../writes.ts';

interface LoginOptions extends AckOptions {
  readonly method?: string;
  readonly bearerTokenFile?: string;
  readonly meta?: readonly string[];
  readonly tokenSinkFile?: string;
  readonly dryRun?: boolean;
}

/** Adds `login` and `logout` to the program. */
export function addLoginCommands(program: Command, surroundings: Surroundings): void {
  addLeaf<LoginOptions>(program, surroundings, {
    name: 'login',
    says: 'exchange an outside identity for a token',
    flags: (command) => {
      command
        .option('--method <name>', 'auth method')
        .option('--bearer-token-file <path|->', 'file with what the auth method validates')
        .option('--token-sink-file <path>', 'where to write the secret; only you can read the file')
        .option('--dry-run', 'say why it is granted or refused, and make no token; needs acl:read');
      addRepeatable(command, '--meta <name=value>', 'shown in the description of the token');
      addAckFlag(command);
    },
    run: login,
  });
  addLeaf<AckOptions>(program, surroundings, {
    name: 'logout',
    says: 'destroy the token of this request, which a login made',
    flags: addAckFlag,
    run: logout,
  });
}

async function login(session: Session, options: LoginOptions): Promise<void> {
  const { method, bearerTokenFile, tokenSinkFile } = options;
  if (!method) throw new UsageError('--method is required');
  if (!bearerTokenFile) throw new UsageError('--bearer-token-file is required');
  if (options.dryRun === true)
    return dryRun(session, bodyOf(session, method, bearerTokenFile, options));
  if (!tokenSinkFile) throw new UsageError('--token-sink-file is required');
  const body = bodyOf(session, method, bearerTokenFile, options);
  await writeAndShow(
    session,
    options,
    (asked) => session.client.login({ ...asked, body }),
    async (value) => {
      await writeSink(session, tokenSinkFile, value.SecretID);
      const end = value.ExpirationTime;
      await session.done(
        { ...value, SecretID: '<hidden>' },
        `Logged in as token ${value.AccessorID}${end === undefined ? '' : `, valid until ${timeText(end)}`}. The secret is in ${tokenSinkFile}.`,
      );
    },
  );
}

function bodyOf(
  { surroundings }: Session,
  method: string,
  bearerTokenFile: string,
  { meta }: LoginOptions,
) {
  const bearer = fileInput(surroundings, '--bearer-token-file', bearerTokenFile).trim();
  if (bearer === '') throw new UsageError(`--bearer-token-file: ${bearerTokenFile} is empty`);
  return { AuthMethod: method, BearerToken: bearer, Meta: mapOf('--meta', meta) };
}

/** Scripts must be able to tell by the status whether the login would be granted. */
async function dryRun(session: Session, body: ReturnType<typeof bodyOf>): Promise<void> {
  const { value } = await session.client.explainLogin({ body });
  await session.show(value, (colors) => loginExplanationParts(value, colors));
  if (!value.Granted) throw new CommandFailed('the login would be refused');
}

/** A token whose secret nobody gets is given back. */
async function writeSink(session: Session, path: string, secret: string): Promise<void> {
  try {
    session.surroundings.writeSecretFile(path, secret);
  } catch (error) {
    const client = session.clientFor(secret);
    const end = await client.logout().then(
      () => 'the token is destroyed again',
      () => 'and the token could not be destroyed: it lives until it expires or is deleted',
    );
    const says = `the secret could not be written to ${path}: ${messageOf(error)}`;
    throw new CommandFailed(`logged in, but ${says}; ${end}`);
  }
}

async function logout(session: Session, options: AckOptions): Promise<void> {
  const answer = await session.client.logout({ query: deleteQuery(options) });
  await sayEnded(session, answer, 'Logged out: the token is destroyed.');
}
