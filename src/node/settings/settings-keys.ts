// Every setting of a server, once: its name, type, default and meaning. Files, environment variables
// and flags are all read by this table, and a name that is not in it is refused.

export type SettingType =
  | { readonly kind: 'text'; readonly isNeeded?: true }
  | { readonly kind: 'choice'; readonly of: readonly string[] }
  | { readonly kind: 'flag' }
  | { readonly kind: 'port' }
  | { readonly kind: 'count'; readonly min: number; readonly max: number }
  /** Go duration text such as `1m30s`; above zero, unless zero means that there is none. */
  | { readonly kind: 'duration'; readonly mayBeZero?: true }
  /** Texts: a list in files; one text with commas in flags and variables, and in files too. */
  | { readonly kind: 'list' };

export interface SettingKey {
  /** Dotted name, as in a configuration file. */
  readonly name: string;
  readonly type: SettingType;
  /** As it would be written in a file. */
  readonly default: string | number | boolean | readonly string[];
  readonly says: string;
  /** The value never appears in a log line or an error. */
  readonly secret?: true;
}

/** The usual port between servers: where addresses without one are looked for. */
export const CLUSTER_PORT = 8300;

const text = { kind: 'text' } as const;
const neededText = { kind: 'text', isNeeded: true } as const;
const flag = { kind: 'flag' } as const;

export const SETTING_KEYS = [
  {
    name: 'datacenter',
    type: neededText,
    default: 'dc1',
    says: 'name of the datacenter that this server belongs to',
  },
  {
    name: 'node_name',
    type: text,
    default: '',
    says: 'name of this server; default: the host name',
  },
  {
    name: 'data_dir',
    type: neededText,
    default: './data',
    says: 'folder of the databases; created when missing',
  },
  {
    name: 'bind_addr',
    type: neededText,
    default: '127.0.0.1',
    says: 'address that the port between servers listens on',
  },
  {
    name: 'advertise_addr',
    type: text,
    default: '',
    says: 'address at which the other servers reach this one; default: bind_addr',
  },
  {
    name: 'client_addr',
    type: neededText,
    default: '127.0.0.1',
    says: 'address that the HTTP interface listens on',
  },
  {
    name: 'ports.http',
    type: { kind: 'port' },
    default: 8500,
    says: 'port of the HTTP interface; 0 takes a free one, -1 turns it off',
  },
  {
    name: 'ports.https',
    type: { kind: 'port' },
    default: -1,
    says: 'port of the HTTPS interface; -1 turns it off',
  },
  {
    name: 'ports.cluster',
    type: { kind: 'port' },
    default: CLUSTER_PORT,
    says: 'port between servers; 0 takes a free one, -1 turns it off',
  },
  {
    name: 'bootstrap_expect',
    type: { kind: 'count', min: 1, max: 31 },
    default: 1,
    says: 'how many servers found a new datacenter together; 1 and no retry_join: this one alone',
  },
  {
    name: 'retry_join',
    type: { kind: 'list' },
    default: [],
    says: 'addresses (host or host:port) of other servers of the datacenter',
  },
  {
    name: 'primary_datacenter',
    type: text,
    default: '',
    says: 'datacenter that writes what all share, until it is moved; default: this one',
  },
  {
    name: 'retry_join_wan',
    type: { kind: 'list' },
    default: [],
    says: 'addresses (host or host:port) of servers of other datacenters, the primary first; at the primary, who may have more of the log behind a start',
  },
  {
    name: 'cluster_key',
    type: text,
    default: '',
    says: 'secret that servers prove to each other: 32 bytes in base64, see conclave keygen; while it is replaced, with others behind commas that are taken, too',
    secret: true,
  },
  {
    name: 'raft.heartbeat_interval',
    type: { kind: 'duration' },
    default: '100ms',
    says: 'how often the leader shows that it lives: 10ms or more; the same on all servers',
  },
  {
    name: 'raft.election_timeout',
    type: { kind: 'duration' },
    default: '1500ms',
    says: 'silence of the leader after which another is elected: five heartbeats or more, 1m at most; the same on all servers',
  },
  {
    name: 'raft.trailing_logs',
    type: { kind: 'count', min: 1, max: 131_072 },
    default: 4096,
    says: 'applied entries that a server keeps for others that were away, of at most 16 KiB each on average; who lacks more is sent a snapshot',
  },
  {
    name: 'federation.log_max_bytes',
    type: { kind: 'count', min: 1_048_576, max: 1_099_511_627_776 },
    default: 1_073_741_824,
    says: 'so much of the global log is kept for datacenters that are behind',
  },
  {
    name: 'federation.log_max_age',
    type: { kind: 'duration' },
    default: '24h',
    says: 'so long entries of the global log are kept for datacenters that are behind: 1s or more',
  },
  {
    name: 'federation.default_ack',
    type: { kind: 'choice', of: ['primary', 'majority', 'all'] },
    default: 'primary',
    says: 'who must have a write that does not say so; deletes ask for majority from three datacenters up',
  },
  {
    name: 'federation.ack_timeout',
    type: { kind: 'duration' },
    default: '5s',
    says: 'how long a write waits for datacenters when it does not say so: 10m at most',
  },
  {
    name: 'federation.visible_wait',
    type: { kind: 'duration' },
    default: '2s',
    says: 'how long a write that went to the primary waits until it can be read here: 10m at most',
  },
  {
    name: 'federation.witness',
    type: { kind: 'flag' },
    default: false,
    says: 'this datacenter votes and keeps the tail of the global log: it has no objects, and is never the primary',
  },
  {
    name: 'federation.primary_lease',
    type: { kind: 'duration', mayBeZero: true },
    default: '30s',
    says: 'a primary of three or more datacenters that hears no majority for so long takes no global write: 2s or more; 0s: it goes on',
  },
  {
    name: 'tls.cluster.cert_file',
    type: text,
    default: '',
    says: 'PEM file with the certificate of the port between servers',
  },
  {
    name: 'tls.cluster.key_file',
    type: text,
    default: '',
    says: 'PEM file with its private key',
  },
  {
    name: 'tls.cluster.ca_file',
    type: text,
    default: '',
    says: 'PEM file with the authority that the certificates of all servers come from',
  },
  {
    name: 'tls.cert_file',
    type: text,
    default: '',
    says: 'PEM file with the certificate of the HTTPS interface',
  },
  { name: 'tls.key_file', type: text, default: '', says: 'PEM file with its private key' },
  {
    name: 'tls.ca_file',
    type: text,
    default: '',
    says: 'PEM file with the authority that client certificates must come from',
  },
  {
    name: 'tls.verify_incoming',
    type: flag,
    default: false,
    says: 'refuse HTTPS clients without a certificate of tls.ca_file',
  },
  {
    name: 'acl.enabled',
    type: flag,
    default: true,
    says: 'false: every ACL endpoint answers 401, and what operators may, everybody may: to save the state with every secret in it, too; the same on all servers',
  },
  {
    name: 'acl.default_policy',
    type: { kind: 'choice', of: ['deny', 'allow'] },
    default: 'deny',
    says: 'what happens where no rule speaks; never grants acl rights',
  },
  {
    name: 'acl.token_min_ttl',
    type: { kind: 'duration' },
    default: '1m',
    says: 'shortest life of a token that expires',
  },
  {
    name: 'acl.token_max_ttl',
    type: { kind: 'duration' },
    default: '24h',
    says: 'longest life of a token that expires',
  },
  {
    name: 'acl.tokens.initial_management',
    type: text,
    default: '',
    says: 'secret of a management token; made where there was no bootstrap before, so once',
    secret: true,
  },
  {
    name: 'acl.tokens.default',
    type: text,
    default: '',
    says: 'secret used for requests that carry none',
    secret: true,
  },
  {
    name: 'acl.tokens.replication',
    type: text,
    default: '',
    says: 'taken from configurations of deployed servers and not used: datacenters prove cluster_key to each other',
    secret: true,
  },
  {
    name: 'namespaces.enabled',
    type: flag,
    default: true,
    says: 'false: a namespace parameter is refused, and so are new namespace rules of an auth method',
  },
  {
    name: 'http.dialect',
    type: { kind: 'choice', of: ['auto', 'service', 'consul'] },
    default: 'auto',
    says: 'which status codes errors have; auto decides by the request',
  },
  {
    name: 'limits.http_max_conns_per_client',
    type: { kind: 'count', min: 0, max: 1_000_000 },
    default: 200,
    says: 'open connections of one client address; 0: no limit',
  },
  {
    name: 'limits.blocking_queries_max',
    type: { kind: 'count', min: 1, max: 1_000_000 },
    default: 10_000,
    says: 'blocking queries that may wait at once; beyond it 503',
  },
  {
    name: 'audit.file',
    type: text,
    default: '',
    says: 'file of the audit log, one JSON record a line; - for standard output; empty: none',
  },
  {
    name: 'audit.required',
    type: flag,
    default: false,
    says: 'refuse changes that cannot be recorded: each is on disk in the audit log before it is carried out',
  },
  {
    name: 'audit.rotate_bytes',
    type: { kind: 'count', min: 65_536, max: 1_099_511_627_776 },
    default: 104_857_600,
    says: 'size at which the audit log is put aside as audit.file with .1 behind it',
  },
  {
    name: 'audit.max_files',
    type: { kind: 'count', min: 0, max: 1_000 },
    default: 10,
    says: 'so many files of the audit log that were put aside are kept; the oldest goes first',
  },
  {
    name: 'limits.body_max_bytes',
    type: { kind: 'count', min: 1024, max: 67_108_864 },
    default: 1_048_576,
    says: 'largest request body',
  },
  {
    name: 'limits.snapshot_max_bytes',
    type: { kind: 'count', min: 1_048_576, max: 1_099_511_627_776 },
    default: 4_294_967_296,
    says: 'largest archive that a restore takes in',
  },
  {
    name: 'limits.request_limits.mode',
    type: { kind: 'choice', of: ['disabled', 'permissive', 'enforcing'] },
    default: 'disabled',
    says: 'permissive logs (at debug) what enforcing refuses with 429',
  },
  {
    name: 'limits.request_limits.read_rate',
    type: { kind: 'count', min: 0, max: 1_000_000 },
    default: 0,
    says: 'reads a second of one client address; 0: no limit',
  },
  {
    name: 'limits.request_limits.write_rate',
    type: { kind: 'count', min: 0, max: 1_000_000 },
    default: 0,
    says: 'writes a second of one client address, logins among them; 0: no limit',
  },
  {
    name: 'limits.pending_writes_max',
    type: { kind: 'count', min: 1, max: 1_000_000 },
    default: 8192,
    says: 'writes that may wait for the log; beyond it 503',
  },
  {
    name: 'log_level',
    type: { kind: 'choice', of: ['debug', 'info', 'warn', 'error'] },
    default: 'info',
    says: 'least severity that is logged',
  },
] as const satisfies readonly SettingKey[];

export type SettingName = (typeof SETTING_KEYS)[number]['name'];

/** What a setting takes, in a few words. */
export function takesText(type: SettingType): string {
  switch (type.kind) {
    case 'choice':
      return type.of.join(', ');
    case 'flag':
      return 'true, false';
    case 'port':
      return '-1 to 65535';
    case 'count':
      return `${type.min} to ${type.max}`;
    case 'text':
    case 'duration':
    case 'list':
      return type.kind;
    default:
      return type satisfies never;
  }
}

/** `ports.http` as a command-line flag: `ports-http`. */
export function flagOf(name: string): string {
  return name.replace(/[._]/g, '-');
}

/** `ports.http` as an environment variable: `CONCLAVE_PORTS_HTTP`. */
export function variableOf(name: string): string {
  return `CONCLAVE_${name.replace(/\./g, '_').toUpperCase()}`;
}
