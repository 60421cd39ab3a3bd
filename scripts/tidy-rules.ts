// The rules of the house that the source check enforces, as data. docs/ARCHITECTURE.md says why.

/** Rooms by floor; a file imports lower floors only, and within a floor only what `neighbours` names. */
const ROOMS: readonly {
  readonly prefix: string;
  readonly floor: number;
  readonly neighbours?: readonly string[];
}[] = [
  { prefix: 'cluster/base/', floor: 0 },
  { prefix: 'cluster/platform/', floor: 0, neighbours: ['cluster/base/'] },
  { prefix: 'cluster/raft/', floor: 1 },
  { prefix: 'src/acl/', floor: 1 },
  { prefix: 'src/rules/', floor: 1, neighbours: ['src/acl/'] },
  { prefix: 'cluster/wire/', floor: 2 },
  { prefix: 'cluster/log/', floor: 2 },
  { prefix: 'src/authz/', floor: 2 },
  { prefix: 'cluster/transport/', floor: 3 },
  { prefix: 'src/state/', floor: 3 },
  { prefix: 'src/api/', floor: 3 },
  { prefix: 'src/auth-methods/', floor: 3 },
  { prefix: 'cluster/replica/', floor: 4 },
  { prefix: 'cluster/federation/', floor: 4 },
  { prefix: 'src/service/', floor: 4 },
  { prefix: 'src/client/', floor: 4 },
  { prefix: 'cluster/member/', floor: 5 },
  { prefix: 'cluster/member.ts', floor: 5, neighbours: ['cluster/member/'] },
  { prefix: 'src/http/', floor: 5 },
  { prefix: 'src/audit/', floor: 5 },
  { prefix: 'src/platform-node/', floor: 6, neighbours: ['src/node/'] },
  { prefix: 'src/node/', floor: 6 },
  { prefix: 'src/cli/', floor: 7 },
  { prefix: 'src/program.ts', floor: 7, neighbours: ['src/cli/'] },
  { prefix: 'src/main.ts', floor: 7, neighbours: ['src/program.ts'] },
  { prefix: 'src/packed-main.ts', floor: 7 },
  { prefix: 'scripts/', floor: 8, neighbours: ['test/'] },
  { prefix: 'test/', floor: 8, neighbours: ['scripts/'] },
];

export interface Floor {
  readonly room: string;
  readonly floor: number;
  readonly neighbours: readonly string[];
}

/** Where a file lives. Throws for a file in no room, so that a new folder gets its place on purpose. */
export function floorOf(path: string): Floor {
  const room = ROOMS.find(({ prefix }) => path.startsWith(prefix));
  if (room === undefined) throw new Error(`${path} is in no room of scripts/tidy-rules.ts`);
  return { room: room.prefix, floor: room.floor, neighbours: room.neighbours ?? [] };
}

/** Whether the file belongs to tests and scripts, which nothing in the product may import. */
export function isOutside(path: string): boolean {
  return path.startsWith('test/') || path.startsWith('scripts/');
}

/** Rules without clock, randomness, I/O, logger or `async`. */
export const PURE_FOLDERS: readonly string[] = [
  'cluster/raft/',
  'src/acl/',
  'src/rules/',
  'src/authz/',
  'src/state/apply/',
];

/** The only place that touches the real clock, disk, sockets and randomness. */
export const REAL_WORLD_FOLDERS: readonly string[] = ['src/platform-node/'];

export const BANNED_GLOBALS: ReadonlySet<string> = new Set([
  'Date.now',
  'Date()',
  'new Date()',
  'Math.random',
  'performance.now',
  'process.hrtime',
  'crypto.randomUUID',
  'crypto.randomBytes',
  'crypto.getRandomValues',
  'setTimeout()',
  'setInterval()',
  'setImmediate()',
  'fetch()',
]);

/** Of Node's own: they may be named with `node:` before, or without. */
const BANNED_OF_NODE: readonly string[] = [
  'fs',
  'fs/promises',
  'net',
  'http',
  'https',
  'http2',
  'tls',
  'crypto',
  'dgram',
  'dns',
  'timers',
  'timers/promises',
];

export const BANNED_MODULES: ReadonlySet<string> = new Set([
  ...BANNED_OF_NODE,
  ...BANNED_OF_NODE.map((name) => `node:${name}`),
  'ws',
  'level',
  'classic-level',
  'uuid',
]);

/** What the bytes of the log mean is not cluster's business. */
export const CLUSTER_WORDS = /\b(?:tokens?|polic(?:y|ies)|roles?)\b/gi;

/** Characters of a line of a comment; code has the formatter. */
export const COMMENT_LINE_MAX = 120;

/** Files that lie side by side in a folder of the product: more than can be taken in at a look want rooms. */
export const FOLDER_FILES_MAX = 32;

/** Files that may re-export: the client SDK's public entry. */
export const BARREL_ALLOWED: ReadonlySet<string> = new Set(['src/client/entry.ts']);

/** Files that are started, not imported. */
export const ENTRY_FILES: readonly RegExp[] = [
  /^src\/(?:packed-)?main\.ts$/,
  /^src\/client\/entry\.ts$/,
  /^scripts\/tidy\.ts$/,
  /^scripts\/.+\/main\.ts$/,
  // Begun as a process of its own.
  /^scripts\/sim\/worker\.ts$/,
  /^test\/sim\/leaking-worker\.ts$/,
  /\.test\.ts$/,
];

/** Words of the glossary's last column that an exported name must not use, with the word to use. */
export const DO_NOT_SAY: ReadonlyMap<string, string> = new Map([
  ['dc', 'datacenter'],
  ['region', 'datacenter'],
  ['master', 'primary'],
  ['slave', 'secondary'],
  ['credential', 'token'],
  ['observer', 'learner'],
  ['watermark', 'cursor'],
  ['revision', 'modifyIndex'],
  ['etag', 'contentHash'],
  ['sync', 'read barrier or federation'],
  ['fsm', 'state machine'],
]);
