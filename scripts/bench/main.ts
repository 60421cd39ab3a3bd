// `npm run bench`: how fast the server answers on small and on large data, beside ceilings measured
// in the same run. Prints a table and, as the last line, the same figures as JSON.

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { scriptProgram, wholeNumber, wholeNumbers } from '../script-program.ts';
import { type Child, startChild } from './child.ts';
import { benchDatacenters } from './datacenters/bench-datacenters.ts';
import { benchFeed } from './feed.ts';
import { median, shown, table } from './figures.ts';
import { benchGroup } from './group.ts';
import { type LoadResult, runLoad } from './load.ts';
import { seededFolder } from './seeded-folder.ts';
import { accessorOf, BENCH_POLICY, MANAGEMENT_SECRET, secretOf } from './seed.ts';
import { settle } from './settle.ts';

interface Options {
  readonly sizes: readonly number[];
  readonly seconds: number;
  readonly rounds: number;
  readonly servers: number;
  readonly datacenters: number;
  readonly delays: readonly number[];
  readonly rates: readonly number[];
  readonly entries: number;
  readonly tokens: number;
  readonly feed?: true;
  readonly data?: string;
}

const options = scriptProgram(
  'npm run bench --',
  'Measures one server; with --servers 3 a group; with --datacenters 2 two datacenters; with --feed the feed between two, in one process.',
)
  .option('--seconds <count>', 'of each measurement', wholeNumber, 4)
  .option('--rounds <count>', 'of all of them', wholeNumber, 3)
  .option('--servers <count>', 'of each datacenter', wholeNumber, 1)
  .option('--datacenters <count>', '1 or 2', datacentersIn, 1)
  .option('--feed', 'the feed alone')
  .option('--sizes <counts>', 'one server: tokens that it holds', wholeNumbers, [10_000, 1_000_000])
  .option(
    '--data <folder>',
    'one server: keeps what it fills, and takes what is kept; measures copies',
  )
  .option('--delays <ms>', 'two datacenters: between them, one way', wholeNumbers, [0, 50, 150])
  .option('--rates <counts>', 'two datacenters: writes a second', wholeNumbers, [1, 100, 1_000])
  .option(
    '--entries <count>',
    'two datacenters: missed during a cut; 0: none',
    wholeNumber,
    100_000,
  )
  .option('--tokens <count>', 'two datacenters: in a snapshot; 0: none', wholeNumber, 100_000)
  .parse()
  .opts<Options>();
const { sizes, seconds: secondsEach, rounds, servers: serverCount } = options;

const here = import.meta.dirname;
const mainScript = join(dirname(dirname(here)), 'src', 'main.js');
const workFolder = mkdtempSync(join(tmpdir(), 'conclave-bench-'));
const SERIALS_OF_A_ROUND = 1_000_003;
/** None of those that are measured. */
const SETTLING_ROUND = 1_000;
const CONNECTIONS = 64;
const NODE_OPTIONS = ['--max-semi-space-size=16'];
const TOKEN_HEADER = `X-Service-Token: ${MANAGEMENT_SECRET}\r\n`;

interface Row {
  readonly what: string;
  readonly tokens: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of the server, microseconds a request. Of all figures a busy machine disturbs it least. */
  readonly processorUs: number;
  /** The same on the ceiling server, and the median of the ratios of paired rounds. */
  readonly ceilingPerSecond?: number;
  readonly ratio?: number;
  readonly ceilingProcessorUs?: number;
  /** Of the processor time of the ceiling to that of the server, paired likewise. */
  readonly processorRatio?: number;
  /** Of the processor time to that with the size that was named first, paired likewise. */
  readonly dearness: number;
}

/** A server that holds so many tokens. */
interface Sized {
  readonly tokens: number;
  readonly server: Child;
  readonly startMs: number;
  readonly settledSeconds: number;
  readonly seedPerSecond: number;
}

interface ServerFigures {
  readonly tokens: number;
  readonly startMs: number;
  /** Of reads, until its tables were in order. */
  readonly settledSeconds: number;
  readonly anonymousMib: number;
  /** NaN where an earlier run made them. */
  readonly seedPerSecond: number;
}

const rows: Row[] = [];
const servers: ServerFigures[] = [];
try {
  if (options.feed) await benchFeed({ secondsEach, rounds });
  else if (options.datacenters === 2)
    await benchDatacenters({
      servers: serverCount,
      secondsEach,
      delaysMs: options.delays,
      ratesPerSecond: options.rates,
      entries: options.entries,
      tokens: options.tokens,
      workFolder,
    });
  else if (serverCount > 1)
    await benchGroup({ servers: serverCount, secondsEach, rounds, workFolder });
  else {
    await measureSizes();
    print();
  }
} finally {
  rmSync(workFolder, { recursive: true, force: true });
}

function datacentersIn(text: string): number {
  const count = wholeNumber(text);
  if (count === 1 || count === 2) return count;
  throw new InvalidArgumentError('The benchmark knows one datacenter, or two.');
}

/** All sizes stand beside each other: what is said of two of them is of the same minutes. */
async function measureSizes(): Promise<void> {
  const all: Sized[] = [];
  try {
    for (const tokens of sizes) all.push(await startSized(tokens));
    await measureReads(all);
    await measureCreates(all);
    for (const { server, ...figures } of all) {
      servers.push({ ...figures, anonymousMib: server.anonymousMib() });
    }
  } finally {
    for (const { server } of all) await server.stop();
  }
}

async function startSized(tokens: number): Promise<Sized> {
  const kept = options.data;
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
    request: ofRound(SETTLING_ROUND, (serial) => readByAccessor(serial, tokens)),
  });
  return { tokens, server, startMs, settledSeconds, seedPerSecond: createsPerSecond };
}

function startServer(folder: string): Promise<Child> {
  return startChild({
    script: mainScript,
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
    portOf: (output) => numberIn(/listening\s+http:\/\/[^:]+:(\d+)/.exec(output)),
  });
}

function numberIn(match: RegExpExecArray | null): number | undefined {
  return match === null ? undefined : Number(match[1]);
}

/** The request with this number to a server of so many tokens. */
type RequestOf = (serial: number, tokens: number) => string;

function scattered(serial: number, tokens: number): number {
  return (Math.imul(serial, 2_654_435_761) >>> 0) % tokens;
}

function get(path: string, headers = TOKEN_HEADER): string {
  return `GET ${path} HTTP/1.1\r\nHost: bench\r\n${headers}\r\n`;
}

function readByAccessor(serial: number, tokens: number): string {
  return get(`/v1/acl/token/${accessorOf(scattered(serial, tokens))}`);
}

async function measureReads(all: readonly Sized[]): Promise<void> {
  const secretHeader = (serial: number, tokens: number): string =>
    `X-Service-Token: ${secretOf(scattered(serial, tokens))}\r\n`;
  await againstBareHttp('token read by accessor', all, readByAccessor);
  await againstBareHttp('token read self', all, (serial, tokens) =>
    get('/v1/acl/token/self', secretHeader(serial, tokens)),
  );
  const question = JSON.stringify([{ Resource: 'service', Access: 'write', Segment: 'web' }]);
  const asked = `Content-Length: ${question.length}\r\n\r\n${question}`;
  await againstBareHttp(
    'authorize',
    all,
    (serial, tokens) =>
      `POST /v1/internal/acl/authorize HTTP/1.1\r\nHost: bench\r\n${secretHeader(serial, tokens)}${asked}`,
  );
  const page: RequestOf = (serial, tokens) => {
    const next = Buffer.from(accessorOf(scattered(serial, tokens))).toString('base64url');
    return get(`/v1/acl/tokens?limit=100&next=${next}`);
  };
  await inTurn('list page of 100', all, { request: page, connections: 8 });
  await inTurn('list page of 100, one client', all, { request: page, connections: 1 });
}

async function measureCreates(all: readonly Sized[]): Promise<void> {
  const policyIds = new Map<number, string>();
  for (const { tokens, server } of all) policyIds.set(tokens, await benchPolicyOf(server));
  const create: RequestOf = (_serial, tokens) => {
    const links = [{ ID: policyIds.get(tokens) }];
    const body = JSON.stringify({ Description: 'made by the benchmark', Policies: links });
    return `PUT /v1/acl/token HTTP/1.1\r\nHost: bench\r\n${TOKEN_HEADER}Content-Length: ${body.length}\r\n\r\n${body}`;
  };
  const ceiling = await startChild({
    script: join(here, 'append-server', 'main.js'),
    nodeOptions: NODE_OPTIONS,
    arguments: [join(workFolder, 'append')],
    portOf: (output) => numberIn(/^(\d+)\n/.exec(output)),
  });
  try {
    await inTurn('token create', all, { request: create, connections: CONNECTIONS, ceiling });
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
  request: RequestOf,
): Promise<void> {
  const [first] = all;
  if (first === undefined) return;
  const ceiling = await startChild({
    script: join(here, 'bare-http', 'main.js'),
    arguments: [],
    input: JSON.stringify(await answerOf(first.server.port, request(1, first.tokens))),
    portOf: (output) => numberIn(/^(\d+)\n/.exec(output)),
  });
  try {
    await inTurn(what, all, { request, connections: CONNECTIONS, ceiling });
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

/**
 * The ceiling, where there is one, and all sizes in turn, round by round, so that all see the same noise. The
 * first round, in which what is hot is compiled, does not count.
 */
async function inTurn(
  what: string,
  all: readonly Sized[],
  load: {
    readonly request: RequestOf;
    readonly connections: number;
    readonly ceiling?: Child;
  },
): Promise<void> {
  const { request, connections, ceiling } = load;
  const ours: Loaded[][] = all.map(() => []);
  const theirs: Loaded[] = [];
  for (let round = 0; round <= rounds; round++) {
    const toThem = ofRound(round, (serial) => request(serial, all[0]?.tokens ?? 0));
    const their = ceiling && (await loaded(ceiling, toThem, connections));
    if (their !== undefined && round > 0) theirs.push(their);
    for (const [place, { server, tokens }] of all.entries()) {
      const toUs = ofRound(round, (serial) => request(serial, tokens));
      const our = await loaded(server, toUs, connections);
      if (round > 0) ours[place]?.push(our);
    }
  }
  for (const [place, { tokens }] of all.entries()) {
    const results = ours[place] ?? [];
    const dearness = medianOfPairs(
      results,
      ours[0] ?? [],
      (our, first) => our.processorUs / first.processorUs,
    );
    add(what, tokens, results, {
      dearness,
      ...(ceiling !== undefined && besideCeiling(results, theirs)),
    });
  }
}

function besideCeiling(ours: readonly Loaded[], theirs: readonly Loaded[]): Partial<Row> {
  return {
    ceilingPerSecond: median(theirs.map(({ requestsPerSecond }) => requestsPerSecond)),
    ratio: medianOfPairs(
      ours,
      theirs,
      (our, their) => our.requestsPerSecond / their.requestsPerSecond,
    ),
    ceilingProcessorUs: median(theirs.map(({ processorUs }) => processorUs)),
    processorRatio: medianOfPairs(
      ours,
      theirs,
      (our, their) => their.processorUs / our.processorUs,
    ),
  };
}

function medianOfPairs(
  ours: readonly Loaded[],
  theirs: readonly Loaded[],
  ratioOf: (our: Loaded, their: Loaded) => number,
): number {
  return median(ours.map((our, round) => ratioOf(our, theirs[round] as Loaded)));
}

/** Every round asks for others: what is asked again in the next one would flatter what is kept in memory. */
function ofRound(round: number, request: (serial: number) => string): (serial: number) => string {
  return (serial) => request(round * SERIALS_OF_A_ROUND + serial);
}

interface Loaded extends LoadResult {
  readonly processorUs: number;
}

async function loaded(
  server: Child,
  request: (serial: number) => string,
  connections: number,
): Promise<Loaded> {
  const startedAtMs = server.processorMs();
  const result = await runLoad({
    host: '127.0.0.1',
    ports: [server.port],
    connections,
    warmUpMs: 1_000,
    durationMs: secondsEach * 1_000,
    expectedStatus: 200,
    request,
    isSleepless: true,
  });
  if (result.unexpected > 0) {
    throw new Error(
      `${result.unexpected} answers were not 200, the first: ${result.firstUnexpected}`,
    );
  }
  const processorUs = ((server.processorMs() - startedAtMs) * 1_000) / result.answered;
  return { ...result, processorUs };
}

function add(
  what: string,
  tokens: number,
  results: readonly Loaded[],
  beside: Pick<Row, 'dearness'> & Partial<Row>,
): void {
  const row: Row = {
    what,
    tokens,
    perSecond: median(results.map(({ requestsPerSecond }) => requestsPerSecond)),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
    processorUs: median(results.map(({ processorUs }) => processorUs)),
    ...beside,
  };
  rows.push(row);
  process.stderr.write(
    `bench: ${what}, ${tokens}: ${shown(row.perSecond)}/s, ratio ${row.ratio?.toFixed(2) ?? '-'}; ` +
      `${shown(row.processorUs)} µs of processor, ratio ${row.processorRatio?.toFixed(2) ?? '-'}; ` +
      `${row.dearness.toFixed(2)} of ${sizes[0]} tokens\n`,
  );
}

function print(): void {
  const cells = rows.map((row) => [
    row.what,
    row.tokens.toLocaleString('en-US'),
    shown(row.perSecond),
    shown(row.p50Ms),
    shown(row.p99Ms),
    shown(row.ceilingPerSecond ?? Number.NaN),
    row.ratio === undefined ? '-' : row.ratio.toFixed(2),
    shown(row.processorUs),
    shown(row.ceilingProcessorUs ?? Number.NaN),
    row.processorRatio === undefined ? '-' : row.processorRatio.toFixed(2),
    row.dearness.toFixed(2),
  ]);
  const toFirst = `of ${sizes[0]?.toLocaleString('en-US')}`;
  const ofProcessor = ['processor µs', 'ceiling µs', 'ratio', toFirst];
  process.stdout.write(
    table(
      ['', 'tokens', 'per s', 'p50 ms', 'p99 ms', 'ceiling per s', 'ratio', ...ofProcessor],
      cells,
    ),
  );
  const processes = servers.map((server) => [
    'server process',
    server.tokens.toLocaleString('en-US'),
    shown(server.startMs),
    shown(server.settledSeconds),
    shown(server.anonymousMib),
    shown(server.seedPerSecond),
  ]);
  process.stdout.write(
    `\n${table(['', 'tokens', 'start ms', 'settled s', 'anonymous MiB', 'made per s'], processes)}`,
  );
  const machine = {
    node: process.version,
    cores: cpus().length,
    connections: CONNECTIONS,
    rounds,
    secondsEach,
  };
  process.stdout.write(`\n${JSON.stringify({ machine, rows, servers })}\n`);
}
