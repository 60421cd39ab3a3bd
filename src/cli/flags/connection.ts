// The flags that every command has in common, and what they and the environment add up to: where the
// server is, which token is sent, which namespace and datacenter are meant, how output looks.

import { type Command, Option } from 'commander';
import { certificatesFault, keyFault } from '../../platform-node/net/pem-certificates.ts';
import type { Format } from '../printer.ts';
import type { Surroundings, TransportOptions } from '../surroundings.ts';
import { notBlank, UsageError } from '../usage-error.ts';
import { fileInput, secretInput } from './text-input.ts';

const DEFAULT_ADDRESS = 'http://127.0.0.1:8500';
const OWN_CERTIFICATE = '--client-cert (or CONCLAVE_CLIENT_CERT)';

export interface ConnectionOptions {
  readonly httpAddr?: string;
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly namespace?: string;
  readonly datacenter?: string;
  readonly stale?: boolean;
  readonly consistent?: boolean;
  readonly format?: Format;
}

export interface Connection {
  /** As it is shown to people. */
  readonly address: string;
  /** What URLs begin with. */
  readonly baseUrl: string;
  readonly socketPath: string | undefined;
  readonly tls: TransportOptions['tls'];
  readonly token: string | undefined;
  readonly namespace: string | undefined;
  readonly datacenter: string | undefined;
  readonly consistency: 'stale' | 'default' | 'consistent';
}

/** Adds the common flags to a command, in groups of their own at the end of its help. */
export function addConnectionFlags(command: Command): void {
  command
    .optionsGroup('Connection:')
    .option('--http-addr <address>', `the server (CONCLAVE_HTTP_ADDR; default ${DEFAULT_ADDRESS})`)
    .option('--ca-file <path>', 'PEM file of the authority behind https:// (CONCLAVE_CACERT)')
    .option('--client-cert <path>', 'PEM file of the own certificate (CONCLAVE_CLIENT_CERT)')
    .option('--client-key <path>', 'PEM file of its key (CONCLAVE_CLIENT_KEY)')
    .option('--token <secret>', 'secret of the token to use (CONCLAVE_TOKEN)')
    .option('--token-file <path>', 'file that holds the secret (CONCLAVE_TOKEN_FILE)')
    .option('--ns, --namespace <name>', 'namespace (CONCLAVE_NAMESPACE)')
    .option('--dc, --datacenter <name>', 'datacenter to ask')
    .addOption(
      new Option('--stale', 'reads: any server may answer, even one that lags').conflicts(
        'consistent',
      ),
    )
    .option('--consistent', 'reads: the leader proves itself first');
  addFormatFlag(command);
}

/** `--format`, for commands that print what they found. */
export function addFormatFlag(command: Command): void {
  command.addOption(
    new Option('--format <format>', 'how to print')
      .choices(['table', 'json', 'pretty'])
      .default('table'),
  );
}

/** What flags and environment say together; flags go first. Throws UsageError naming the source. */
export function connectionOf(options: ConnectionOptions, surroundings: Surroundings): Connection {
  const { environment } = surroundings;
  const address = options.httpAddr ?? (environment.CONCLAVE_HTTP_ADDR || DEFAULT_ADDRESS);
  const socketPath = socketPathOf(address);
  return {
    address,
    baseUrl: socketPath === undefined ? baseUrlOf(address) : 'http://localhost',
    socketPath,
    tls: tlsOf(options, surroundings),
    token: tokenOf(options, surroundings),
    namespace:
      notBlank('--namespace', options.namespace) ?? (environment.CONCLAVE_NAMESPACE || undefined),
    datacenter: notBlank('--datacenter', options.datacenter),
    consistency: options.stale ? 'stale' : options.consistent ? 'consistent' : 'default',
  };
}

/** Throws UsageError naming the flag, or the variable, of a file that cannot be read, or is not what it should be. */
function tlsOf(options: ConnectionOptions, surroundings: Surroundings): TransportOptions['tls'] {
  const { environment } = surroundings;
  const pemOf = (flag: string, path: string | undefined, variable: string): string | undefined => {
    if (path !== undefined) return fileInput(surroundings, flag, path);
    const other = environment[variable];
    return other ? fileInput(surroundings, variable, other) : undefined;
  };
  const ca = pemOf('--ca-file', options.caFile, 'CONCLAVE_CACERT');
  if (ca !== undefined) requireCertificates('--ca-file (or CONCLAVE_CACERT)', ca);
  const cert = pemOf('--client-cert', options.clientCert, 'CONCLAVE_CLIENT_CERT');
  const key = pemOf('--client-key', options.clientKey, 'CONCLAVE_CLIENT_KEY');
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError('--client-cert and --client-key belong together: name both');
  }
  if (cert !== undefined && key !== undefined) requireOwn(cert, key);
  return { ca, cert, key };
}

function requireOwn(cert: string, key: string): void {
  requireCertificates(OWN_CERTIFICATE, cert);
  const fault = keyFault({ cert, key });
  if (fault === undefined) return;
  throw new UsageError(
    `--client-key (or CONCLAVE_CLIENT_KEY): the file does not hold the key of ${OWN_CERTIFICATE}: ${fault}`,
  );
}

function requireCertificates(source: string, pem: string): void {
  const fault = certificatesFault(pem);
  if (fault !== undefined) throw new UsageError(`${source}: the file ${fault}`);
}

/** Without a path, Node would connect to the port of HTTP: `unix://` alone is refused as an address. */
function socketPathOf(address: string): string | undefined {
  const path = address.startsWith('unix://') ? address.slice('unix://'.length) : '';
  return path === '' ? undefined : path;
}

function baseUrlOf(address: string): string {
  const url = /^https?:\/\//.test(address) ? address : `http://${address}`;
  const { href, origin } = URL.canParse(url) ? new URL(url) : { href: '', origin: '' };
  // Without a path, a query, a fragment, or the name of somebody.
  if (href === `${origin}/`) return origin;
  throw new UsageError(
    `--http-addr (or CONCLAVE_HTTP_ADDR): expected host:port, http://…, https://… or unix:///path, not ${JSON.stringify(withoutSecrets(address))}`,
  );
}

/** Before an `@`, and behind a `?` or a `#`, a secret may stand. Where both are there, nobody can tell which it is. */
function withoutSecrets(address: string): string {
  const at = address.lastIndexOf('@');
  const end = address.search(/[?#]/);
  if (end !== -1 && end < at) return '<hidden>';
  const shown = end === -1 ? address : `${address.slice(0, end + 1)}<hidden>`;
  return at === -1 ? shown : `<hidden>${shown.slice(at)}`;
}

function tokenOf(options: ConnectionOptions, surroundings: Surroundings): string | undefined {
  const { environment } = surroundings;
  if (options.token !== undefined)
    return sendable('--token', secretInput(surroundings, '--token', options.token));
  if (options.tokenFile !== undefined) return ofFile('--token-file', options.tokenFile);
  if (environment.CONCLAVE_TOKEN) return sendable('CONCLAVE_TOKEN', environment.CONCLAVE_TOKEN);
  if (environment.CONCLAVE_TOKEN_FILE)
    return ofFile('CONCLAVE_TOKEN_FILE', environment.CONCLAVE_TOKEN_FILE);
  return undefined;

  function ofFile(source: string, path: string): string {
    const secret = fileInput(surroundings, source, path).trim();
    if (secret === '') throw new UsageError(`${source}: the file ${path} is empty`);
    return sendable(source, secret);
  }
}

/** A secret travels in a header: anything but printable ASCII is a file of another kind. */
function sendable(source: string, secret: string): string {
  if (/^[\u0021-\u007e]+$/.test(secret)) return secret;
  throw new UsageError(`${source}: this is no secret: it holds blanks or special characters`);
}
