// What a command says when it cannot do what it was asked: what was tried, where, what came back, and
// what to do next. The server's own text stands alone on its line, so that scripts can find it.

import { ClientError } from '../client/client-error.ts';
import { TransportError, type TransportFailure } from '../client/transport.ts';
import { manyLines, oneLine } from './show/safe-text.ts';

/** A command that was understood and did not succeed, in words of our own. Exit status 1. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
}

/** Whoever read the output has seen enough, as in `conclave … | head`. */
export function isClosedPipe(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'EPIPE';
}

/** What a refusal or a silence of the server at `address` means, or undefined for other errors. */
export function failureText(error: unknown, address: string): string | undefined {
  if (error instanceof TransportError)
    return `no answer from ${address}: ${oneLine(error.message.trim())}\nNext: ${TRANSPORT_HINTS[error.failure]}`;
  if (isOfAnswer(error))
    return `${address} does not say what is to be shown: ${oneLine(error.message)}\nNext: ${TRANSPORT_HINTS.unreadable}`;
  if (!(error instanceof ClientError)) return undefined;
  const { method, path } = error.asked;
  const word = error.code === undefined ? '' : ` ${error.code}`;
  const heading = `${address} refused ${method} ${path} (${error.status}${word}):`;
  const hint = hintOf(error);
  const next = hint === undefined ? '' : `\nNext: ${hint}`;
  return `${heading}\n${manyLines(error.message)}${next}`;
}

/** What another release leaves out, or sends in another form, was looked for in the answer. */
function isOfAnswer(error: unknown): error is TypeError {
  return error instanceof TypeError && !('code' in error);
}

const TRANSPORT_HINTS: Readonly<Record<TransportFailure, string>> = {
  refused:
    'is the server running? `npm start` starts one; --http-addr or CONCLAVE_HTTP_ADDR names another address.',
  'no-such-host': 'check the host name in --http-addr or CONCLAVE_HTTP_ADDR.',
  tls: 'check http:// or https:// in the address, name the certificate authority with --ca-file or CONCLAVE_CACERT, and an own certificate with --client-cert and --client-key where the server asks for one.',
  timeout:
    'look at the log of the server. If this was a write, it may have taken effect: read before you try again.',
  broken:
    'check http:// or https:// in the address, and that the server trusts the authority of --client-cert (tls.ca_file there); then look at the log of the server. If this was a write, it may have taken effect: read before you try again.',
  unreadable:
    'check the address: is this a Conclave server? If this was a write, it may have taken effect: read before you try again.',
};

const NO_TOKEN_SENT =
  'no token was sent: name one with --token-file, CONCLAVE_TOKEN or CONCLAVE_TOKEN_FILE.';

const WRITE_RESET_FILE =
  'write the number at the end of the message, a blank and a new UUID into the file acl-bootstrap-reset in the data folder of the leader, and run this again with that UUID.';

const UPGRADE =
  'upgrade the servers that run the older release, and try again then; nothing was changed.';

/** The first row whose words the server's text holds, else the row of the status. */
const TEXT_HINTS: readonly (readonly [words: string, hint: string])[] = [
  [
    'from the federation; `conclave operator datacenter allow',
    'nothing was changed. Let it come back as the message says, or stop its servers; do not promote it: it would be a second primary beside that of the others.',
  ],
  ['is a witness: it votes', 'ask a server of another datacenter (--http-addr).'],
  [
    'was removed from the cluster',
    'ask another server of the datacenter (--http-addr): this one serves nobody any more.',
  ],
  [
    'ACL not found: auth method ',
    'check the name and the namespace of the auth method; `conclave acl auth-method list` shows what there is.',
  ],
  [
    'needs the OIDC login flow',
    'it is no login by a bearer token: a browser asks the provider, and what sends it there asks /v1/acl/oidc/auth-url and /v1/acl/oidc/callback.',
  ],
  ['must be bootstrapped', 'run `conclave acl bootstrap` to create the first management token.'],
  [
    'ACL bootstrap no longer allowed',
    `use the management token that exists. If it is lost, ${WRITE_RESET_FILE}`,
  ],
  ['Invalid bootstrap reset index', WRITE_RESET_FILE],
  ['runs a release without this operation', UPGRADE],
  ['runs a release that does not know this', UPGRADE],
  ['ACL support disabled', 'set acl.enabled in the configuration of the server.'],
  ['anonymous token lacks permission', NO_TOKEN_SENT],
  [
    'outside its namespace',
    'use a token that may do this; `conclave acl explain` with the --ns that was meant shows which rule decides.',
  ],
  [
    'lacks permission',
    'use a token that may do this; `conclave acl explain` shows which rule decides.',
  ],
  [
    'name that index with cas',
    'look at the object; --cas with that index puts the entry over it, `divergence discard` leaves it as it is.',
  ],
  [
    'name cas=0 to make it anew',
    'it was taken away for a reason: --cas 0 brings it back, `divergence discard` leaves it deleted.',
  ],
  [
    'but in time it was acknowledged by',
    'nothing is to be repeated: it goes to the others as soon as they can be reached; `conclave operator datacenters` shows them.',
  ],
  [
    'There is no divergent entry',
    '`conclave operator divergence list` shows what there is, at the datacenter that has it.',
  ],
  [
    'was not found in the Raft configuration',
    '`conclave operator raft list-peers` shows who belongs to the group.',
  ],
  [
    "wasn't created via login",
    'only tokens of a login can log out; `conclave acl token delete` deletes any token.',
  ],
  ['Supplied token does not exist', NO_TOKEN_SENT],
  ['and does not exist in', 'use a global token, or ask in the datacenter of this one.'],
  [
    'Cannot find token',
    'check the accessor id; it may have expired or been deleted, or live in another namespace (--namespace). One that is local to another datacenter is changed at a server there (--http-addr), whatever --dc says.',
  ],
  ['name it (ns) to delete it', 'say so with --namespace; nothing was deleted.'],
  [
    'there is no majority: ',
    'try again when one of them answers. Where a majority of the datacenters is gone for good, `conclave operator primary` shows the promised epoch, and `conclave operator promote --force --epoch … --accept-loss` with the one after it begins a reign.',
  ],
  [
    'behind a restore, and nothing of what was restored',
    'nothing was changed. Start whoever may still have it; where nobody has, do as the message says, in that order, and start the witness again before the restore.',
  ],
  ['and the same command goes on with the others', 'run the same command again.'],
  [
    'Requested ',
    'check the name and the namespace; `list` in place of `read` shows what there is.',
  ],
];

/** Trying again brings nothing where something is to be done first. */
const NAMES_THE_WAY = /`conclave operator /;

const WHY_NO_LOGIN = 'the same with --dry-run, and a token that has acl:read, shows why.';

const WHETHER_DONE = 'a write may have taken effect: read before you try again.';

const TOKEN_UNKNOWN =
  'the token is unknown to the server or has expired: check --token-file, CONCLAVE_TOKEN or CONCLAVE_TOKEN_FILE.';

function hintOf(error: ClientError): string | undefined {
  const byText = TEXT_HINTS.find(([words]) => error.message.includes(words));
  if (byText !== undefined) return byText[1];
  if (error.code === 'duplicate')
    return 'choose another name or id, or change the one that exists with `update`.';
  if (error.code === 'template-not-found')
    return '`conclave acl templated-policy list` shows which there are.';
  if (error.code === 'cas-mismatch')
    return 'somebody else changed it meanwhile: look at it again, then repeat the command.';
  if (error.code === 'not-primary' && error.asked.path.startsWith('/v1/snapshot'))
    return 'restore at the primary, with an archive that was saved there; the other datacenters take it over from it. Nothing was changed.';
  if (error.message.includes('token does not exist'))
    return isOwn(error)
      ? TOKEN_UNKNOWN
      : 'check the accessor id; it may have expired or been deleted, live in another namespace (--namespace), or be local to another datacenter.';
  if (error.code === 'outcome-unknown' || error.code === 'wait-timeout') return WHETHER_DONE;
  switch (error.status) {
    case 403:
      if (/^\/v1\/acl\/login(\?|$)/.test(error.asked.path)) return WHY_NO_LOGIN;
      if (error.code !== 'token-unknown' && error.message !== 'ACL not found') return undefined;
      return TOKEN_UNKNOWN;
    case 404:
      // Whoever has a word for it is one.
      if (error.code !== undefined && error.code !== 'no-such-endpoint') return undefined;
      return 'check the address: is this a Conclave server of this version?';
    case 429:
    case 503:
      if (NAMES_THE_WAY.test(error.message))
        return 'nothing was changed; the message names the way on.';
      return `try again ${whenOf(error)}; ${whatWasDone(error)}${ifItLasts(error)}`;
    default:
      return error.code === undefined ? hintOfStrange(error) : undefined;
  }
}

/** What has no word of ours for it may come from something between here and the server. */
function hintOfStrange({ message, status }: ClientError): string | undefined {
  if (status >= 300 && status < 400)
    return 'check http:// or https:// in the address: it leads elsewhere, and no token is sent after it.';
  // A path that cannot be looked at is refused so, without a word.
  if (message === 'status 400 without a text')
    return 'check the name or id: it is very long, or has characters that no path can have.';
  return status >= 500 ? WHETHER_DONE : undefined;
}

/** Whether it is about the token of the request itself. */
function isOwn({ asked }: ClientError): boolean {
  return asked.path.startsWith('/v1/acl/token/self');
}

/** What no trying again mends. */
function ifItLasts({ asked, message }: ClientError): string {
  if (message === 'No cluster leader')
    return ' If it lasts: more than half of the servers must run; `conclave operator raft list-peers --stale` shows them.';
  if (message.startsWith('No cluster leader in datacenter '))
    return ' If it lasts: more than half of the servers there must run; `conclave operator raft list-peers --stale`, asked at one of them, shows them.';
  if (message.includes('but has not heard a majority of the '))
    return ' Where so many are lost for good that no majority is left: `conclave operator datacenter remove … --force` for one of these.';
  if (!message.startsWith('Remote DC has no server currently reachable')) return '';
  return asked.method === 'PUT' && asked.path.startsWith('/v1/operator/primary')
    ? ' Where the primary is gone: `conclave operator promote --election` at the one that shall take over.'
    : ' If it lasts: `conclave operator datacenters` says why, and `conclave operator promote` moves the primary.';
}

/** A proxy says 503, too, where it had passed on what was asked, and heard no more. */
function whatWasDone({ code, status }: ClientError): string {
  return code === undefined && status !== 429 ? `but ${WHETHER_DONE}` : 'nothing was changed.';
}

function whenOf({ retryAfterSeconds }: ClientError): string {
  return retryAfterSeconds === undefined ? 'in a moment' : `in ${retryAfterSeconds} s`;
}
