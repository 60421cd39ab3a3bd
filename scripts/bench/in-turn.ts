// Loads that are compared: a ceiling, where there is one, and servers of several sizes, in turn and round by
// round, so that all see the same noise. What a row says is the median over the rounds, or over their pairs.

import type { Child } from './child.ts';
import { median, shown } from './figures.ts';
import { asExpected, type LoadResult, runLoad } from './load.ts';

export interface Row {
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
export interface Sized {
  readonly tokens: number;
  readonly server: Child;
}

/** The request with this number to a server of so many tokens. */
export type RequestOf = (serial: number, tokens: number) => string;

export interface Rounds {
  readonly rounds: number;
  readonly secondsEach: number;
}

/** Apart from each other by more requests than a round has. */
const SERIALS_OF_A_ROUND = 1_000_003;

/** A row for each size, in their order. The first round, in which what is hot is compiled, does not count. */
export async function inTurn(
  what: string,
  all: readonly Sized[],
  load: Rounds & {
    readonly request: RequestOf;
    readonly connections: number;
    readonly ceiling?: Child;
  },
): Promise<readonly Row[]> {
  const { ours, theirs } = await measured(all, load);
  return all.map(({ tokens }, place) => {
    const results = ours[place] ?? [];
    const dearness = medianOfPairs(
      results,
      ours[0] ?? [],
      (our, first) => our.processorUs / first.processorUs,
    );
    const beside = theirs.length === 0 ? {} : besideCeiling(results, theirs);
    const row = rowOf({ what, tokens, dearness }, results, beside);
    tell(row, all[0]?.tokens);
    return row;
  });
}

/** What each size did in each round that counts, and the ceiling. */
async function measured(
  all: readonly Sized[],
  {
    rounds,
    secondsEach,
    request,
    connections,
    ceiling,
  }: Rounds & {
    readonly request: RequestOf;
    readonly connections: number;
    readonly ceiling?: Child;
  },
): Promise<{ readonly ours: readonly Loaded[][]; readonly theirs: readonly Loaded[] }> {
  const ours: Loaded[][] = all.map(() => []);
  const theirs: Loaded[] = [];
  for (let round = 0; round <= rounds; round++) {
    const loadOf = (tokens: number) => ({
      request: ofRound(round, (serial) => request(serial, tokens)),
      ...{ connections, secondsEach },
    });
    const their = ceiling && (await loaded(ceiling, loadOf(all[0]?.tokens ?? 0)));
    if (their !== undefined && round > 0) theirs.push(their);
    for (const [place, { server, tokens }] of all.entries()) {
      const our = await loaded(server, loadOf(tokens));
      if (round > 0) ours[place]?.push(our);
    }
  }
  return { ours, theirs };
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
export function ofRound(
  round: number,
  request: (serial: number) => string,
): (serial: number) => string {
  return (serial) => request(round * SERIALS_OF_A_ROUND + serial);
}

interface Loaded extends LoadResult {
  readonly processorUs: number;
}

async function loaded(
  server: Child,
  {
    request,
    connections,
    secondsEach,
  }: {
    readonly request: (serial: number) => string;
    readonly connections: number;
    readonly secondsEach: number;
  },
): Promise<Loaded> {
  const startedAtMs = server.processorMs();
  const result = asExpected(
    await runLoad({
      host: '127.0.0.1',
      ports: [server.port],
      connections,
      warmUpMs: 1_000,
      durationMs: secondsEach * 1_000,
      expectedStatus: 200,
      request,
      isSleepless: true,
    }),
  );
  const processorUs = ((server.processorMs() - startedAtMs) * 1_000) / result.answered;
  return { ...result, processorUs };
}

function rowOf(
  load: Pick<Row, 'what' | 'tokens' | 'dearness'>,
  results: readonly Loaded[],
  beside: Partial<Row>,
): Row {
  return {
    what: load.what,
    tokens: load.tokens,
    perSecond: median(results.map(({ requestsPerSecond }) => requestsPerSecond)),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
    processorUs: median(results.map(({ processorUs }) => processorUs)),
    dearness: load.dearness,
    ...beside,
  };
}

/** So that whoever waits sees how far it is. */
function tell(row: Row, firstTokens: number | undefined): void {
  process.stderr.write(
    `bench: ${row.what}, ${row.tokens}: ${shown(row.perSecond)}/s, ratio ${row.ratio?.toFixed(2) ?? '-'}; ` +
      `${shown(row.processorUs)} µs of processor, ratio ${row.processorRatio?.toFixed(2) ?? '-'}; ` +
      `${row.dearness.toFixed(2)} of ${firstTokens} tokens\n`,
  );
}
