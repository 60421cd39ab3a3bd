// `npm run bench`: how fast one server answers on small and on large data, beside ceilings measured in the same
// run.

import { dirname, join } from 'node:path';
import { type Child, portOfAgent, portOfFirstLine, startChild } from './child.ts';
import { median } from './figures.ts';
import { inTurn, ofRound, type RequestOf, type Rounds, type Row, type Sized } from './in-turn.ts';
import { runLoad } from './load.ts';
import { printOneServer, type ServerFigures } from './one-server-tables.ts';
import { accessorOf, BENCH_POLICY, MANAGEMENT_SECRET, secretOf } from './seed.ts';
import { seededFolder } from './seeded-folder.ts';
import { settle } from './settle.ts';

export interface OneServerBenchOptions extends Rounds {
  /** Tokens that a server holds; the first size is what others are compared with. */
  readonly sizes: readonly number[];
  /** Where filled folders are kept between runs; undefined: nowhere. */
  readonly kept: string | undefined;
  /** Empty, for the data; whoever asks deletes it. */
  readonly workFolder: string;
}

const here = import.meta.dirname;
const MAIN_SCRIPT = join(dirname(dirname(here)), 'src', 'main.js');
/** None of those that are measured. */
const SETTLING_ROUND = 1_000;
const CONNECTIONS = 64;
const NODE_OPTIONS = ['--max-semi-space-size=16'];
const TOKEN_HEADER = `X-Service-Token: ${MANAGEMENT_SECRET}\r\n`;

interface Started extends Sized {
  readonly figures: Omit<ServerFigures, 'tokens' | 'anonymousMib'>;
}

/**
 * Prints tables and one JSON line. All sizes stand beside each other: what is said of two of them is of the same
 * minutes.
 */
export async function benchOneServer(options: OneServerBenchOptions): Promise<void> {
  const { sizes, rounds, secondsEach } = options;
  const all: Started[] = [];
  const rows: Row[] = [];
  const servers: ServerFigures[] = [];
  try {
    for (const tokens of sizes) all.push(await startSized(options, tokens));
    rows.push(...(await measureReads(options, all)), ...(await measureCreates(options, all)));
    for (const { tokens, server, figures } of all) {
      servers.push({ tokens, ...figures, anonymousMib: server.anonymousMib() });
    }
  } finally {
    for (const { server } of all) await server.stop();
  }
  printOneServer(rows, servers, { connections: CONNECTIONS, rounds, secondsEach });
}

async function startSized(
  { kept, rounds, workFolder }: OneServerBenchOptions,
  tokens: number,
): Promise<Started> {
  const { folder, createsPerSecond } = await seededFolder({ tokens, workFolder, kept });
  process.stderr.write(`bench: starting with ${tokens} tokens\n`);
  const startTimes: number[] = [];
  for (let round = 1; round < rounds; round++) {
    const server = await startServer(folder);
    startTimes.push(server.startedInMs);
    await server.stop();
  }
  const server = await startServer(folder);
  const startMs = median([...startTimes, server.startedInMs]);
  const settledSeconds = await settle({
    ...{ port: server.port, folder },
    request: ofRound(SETTLING_ROUND, (serial) => readByAccessor(scattered)(serial, tokens)),
  });
  return { tokens, server, figures: { startMs, settledSeconds, seedPerSecond: createsPerSecond } };
}

function startServer(folder: string): Promise<Child> {
  return startChild({
    script: MAIN_SCRIPT,
    nodeOptions: NODE_OPTIONS,
    arguments: [
      'agent',
      '--data-dir',
      folder,
      '--ports-http',
      '0',
      '--ports-cluster',
      '-1',
      '--log-level',
      'error',
      '--node-name',
      'bench',
    ],
    portOf: portOfAgent,
  });
}

/** Which of its tokens a server is asked for. */
type Choice = (serial: number, tokens: number) => number;

function scattered(serial: number, tokens: number): number {
  return (Math.imul(serial, 2_654_435_761) >>> 0) % tokens;
}

/** Always the same `few`, which lie all over the tokens. */
function scatteredAmong(few: number): Choice {
  return (serial, tokens) => scattered(serial, few) * Math.floor(tokens / few);
}

function get(path: string, headers = TOKEN_HEADER): string {
  return `GET ${path} HTTP/1.1\r\nHost: bench\r\n${headers}\r\n`;
}

function readByAccessor(choice: Choice): RequestOf {
  return (serial, tokens) => get(`/v1/acl/token/${accessorOf(choice(serial, tokens))}`);
}

function readSelf(choice: Choice): RequestOf {
  return (serial, tokens) => get('/v1/acl/token/self', secretHeader(choice(serial, tokens)));
}

function authorize(choice: Choice): RequestOf {
  const question = JSON.stringify([{ Resource: 'service', Access: 'write', Segment: 'web' }]);
  const asked = `Content-Length: ${question.length}\r\n\r\n${question}`;
  return (serial, tokens) =>
    `POST /v1/internal/acl/authorize HTTP/1.1\r\nHost: bench\r\n${secretHeader(choice(serial, tokens))}${asked}`;
}

function secretHeader(token: number): string {
  return `X-Service-Token: ${secretOf(token)}\r\n`;
}

const SINGLE_READS = [
  { what: 'token read by accessor', requestTo: readByAccessor },
  { what: 'token read self', requestTo: readSelf },
  { what: 'authorize', requestTo: authorize },
];

/**
 * Single reads of any token, and where there are several sizes of as many tokens as the smallest one has: the first
 * tell what it costs to ask for more of them, the second what it costs that there are more.
 */
async function measureReads(
  options: OneServerBenchOptions,
  all: readonly Sized[],
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const few = Math.min(...options.sizes);
  for (const { what, requestTo } of SINGLE_READS) {
    rows.push(...(await againstBareHttp(what, all, { ...options, request: requestTo(scattered) })));
    if (all.length === 1) continue;
    const request = requestTo(scatteredAmong(few));
    rows.push(...(await againstBareHttp(`${what}, of ${few}`, all, { ...options, request })));
  }
  const request: RequestOf = (serial, tokens) => {
    const next = Buffer.from(accessorOf(scattered(serial, tokens))).toString('base64url');
    return get(`/v1/acl/tokens?limit=100&next=${next}`);
  };
  const page = { ...options, request };
  rows.push(...(await inTurn('list page of 100', all, { ...page, connections: 8 })));
  rows.push(...(await inTurn('list page of 100, one client', all, { ...page, connections: 1 })));
  return rows;
}

async function measureCreates(
  options: OneServerBenchOptions,
  all: readonly Sized[],
): Promise<readonly Row[]> {
  const policyIds = new Map<number, string>();
  for (const { tokens, server } of all) policyIds.set(tokens, await benchPolicyOf(server));
  const request: RequestOf = (_serial, tokens) => {
    const links = [{ ID: policyIds.get(tokens) }];
    const body = JSON.stringify({ Description: 'made by the benchmark', Policies: links });
    return `PUT /v1/acl/token HTTP/1.1\r\nHost: bench\r\n${TOKEN_HEADER}Content-Length: ${body.length}\r\n\r\n${body}`;
  };
  const ceiling = await startChild({
    script: join(here, 'append-server', 'main.js'),
    nodeOptions: NODE_OPTIONS,
    arguments: [join(options.workFolder, 'append')],
    portOf: portOfFirstLine,
  });
  try {
    const load = { ...options, request, connections: CONNECTIONS, ceiling };
    return await inTurn('token create', all, load);
  } finally {
    await ceiling.stop();
  }
}

async function benchPolicyOf({ port }: Child): Promise<string> {
  const request = `GET /v1/acl/policy/name/${BENCH_POLICY} HTTP/1.1\r\nHost: bench\r\n${TOKEN_HEADER}\r\n`;
  const policy = JSON.parse((await answerOf(port, request)).body) as { readonly ID: string };
  return policy.ID;
}

/** Measures beside a bare node:http server that answers with the bytes of one answer of the first size. */
async function againstBareHttp(
  what: string,
  all: readonly Sized[],
  load: Rounds & { readonly request: RequestOf },
): Promise<readonly Row[]> {
  const [first] = all;
  if (first === undefined) return [];
  const ceiling = await startChild({
    script: join(here, 'bare-http', 'main.js'),
    arguments: [],
    input: JSON.stringify(await answerOf(first.server.port, load.request(1, first.tokens))),
    portOf: portOfFirstLine,
  });
  try {
    return await inTurn(what, all, { ...load, connections: CONNECTIONS, ceiling });
  } finally {
    await ceiling.stop();
  }
}

/** One answer of the server, taken apart, so that the bare server can repeat it. */
async function answerOf(
  port: number,
  request: string,
): Promise<{
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
}> {
  const [head = '', body = ''] = (await rawAnswer(port, request)).split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const pairs = lines.map((line) => [
    line.slice(0, line.indexOf(':')),
    line.slice(line.indexOf(':') + 1).trim(),
  ]);
  const kept = pairs.filter(([name]) => !/^(connection|keep-alive)$/i.test(name ?? ''));
  return { status: Number(statusLine.split(' ')[1]), headers: kept.flat() as string[], body };
}

async function rawAnswer(port: number, request: string): Promise<string> {
  const { firstUnexpected } = await runLoad({
    host: '127.0.0.1',
    ports: [port],
    connections: 1,
    warmUpMs: 0,
    durationMs: 50,
    // No answer has this status, so the first one comes back whole.
    expectedStatus: -1,
    request: () => request,
  });
  return firstUnexpected ?? '';
}
