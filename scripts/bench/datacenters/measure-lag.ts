// How long an entry takes from the answer that the primary gave to the moment in which it can be read in
// the secondary, at a steady rate; and how long a write takes that is sent to the secondary.

import { Agent } from 'node:http';
import { quantile } from '../figures.ts';
import { processorMs } from '../process-figures.ts';
import { MANAGEMENT_SECRET } from '../seed.ts';
import {
  type DatacentersUnderLoad,
  PRIMARY,
  reached,
  SECONDARY,
} from './datacenters-under-load.ts';
import { steadyWrites } from './steady-writes.ts';

export interface LagFigures {
  readonly delayMs: number;
  readonly wantedPerSecond: number;
  /** What it came to: less, where the machine is too slow. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The 99th of a hundred lags, over the delay. */
  readonly p99OverDelayMs: number;
  /** Processor time of the leaders of the primary and of the secondary for one write. */
  readonly primaryMsPerWrite: number;
  readonly secondaryMsPerWrite: number;
}

export interface ForwardedFigures {
  readonly delayMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the middle one, over the way there and back. */
  readonly p50OverDelayMs: number;
}

const HOST = '127.0.0.1';
const CONNECTIONS = 64;
/** So many lags a second are measured: each is a question of its own. */
const SAMPLES_PER_SECOND = 100;
/** Before what counts: the feed finds out how much is coming. */
const WARM_UP_MS = 1_500;
const FORWARDED_PER_SECOND = 20;
const FORWARDED_CONNECTIONS = 32;

const body = JSON.stringify({ Description: 'made by the benchmark'.padEnd(260, '.') });
export const CREATE_REQUEST =
  `PUT /v1/acl/token HTTP/1.1\r\nHost: bench\r\nX-Service-Token: ${MANAGEMENT_SECRET}\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

export async function measureLag(
  datacenters: DatacentersUnderLoad,
  {
    delayMs,
    perSecond,
    seconds,
  }: { readonly delayMs: number; readonly perSecond: number; readonly seconds: number },
): Promise<LagFigures> {
  datacenters.delay(delayMs);
  const [primary, secondary] = [
    datacenters.pid(await datacenters.leader(PRIMARY)),
    datacenters.pid(await datacenters.leader(SECONDARY)),
  ];
  const ports = (await datacenters.ports(PRIMARY)).slice(0, 1);
  const write = { host: HOST, ports, connections: CONNECTIONS, request: CREATE_REQUEST, perSecond };
  await steadyWrites({ ...write, durationMs: WARM_UP_MS });
  const arrivals = new Arrivals(await datacenters.ports(SECONDARY), perSecond);
  const before = [processorMs(primary), processorMs(secondary)];
  const result = await steadyWrites({
    ...write,
    durationMs: seconds * 1000,
    onWritten: (position) => arrivals.onWritten(position),
  });
  const lagsMs = await arrivals.all();
  const after = [processorMs(primary), processorMs(secondary)];
  const p99Ms = quantile(lagsMs, 0.99);
  const perWrite = (place: number): number =>
    (after[place]! - before[place]!) / result.latenciesMs.length;
  return {
    delayMs,
    wantedPerSecond: perSecond,
    perSecond: result.perSecond,
    p50Ms: quantile(lagsMs, 0.5),
    p99Ms,
    p99OverDelayMs: p99Ms - delayMs,
    primaryMsPerWrite: perWrite(0),
    secondaryMsPerWrite: perWrite(1),
  };
}

export async function measureForwarded(
  datacenters: DatacentersUnderLoad,
  delayMs: number,
  seconds: number,
): Promise<ForwardedFigures> {
  datacenters.delay(delayMs);
  const { latenciesMs } = await steadyWrites({
    host: HOST,
    ports: await datacenters.ports(SECONDARY),
    connections: FORWARDED_CONNECTIONS,
    perSecond: FORWARDED_PER_SECOND,
    durationMs: seconds * 1000,
    request: CREATE_REQUEST,
  });
  const p50Ms = quantile(latenciesMs, 0.5);
  return {
    delayMs,
    p50Ms,
    p99Ms: quantile(latenciesMs, 0.99),
    p50OverDelayMs: p50Ms - 2 * delayMs,
  };
}

/** Asks the servers of the secondary in turn for what was just written. */
class Arrivals {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #ports: readonly number[];
  readonly #everyNth: number;
  readonly #lags: Promise<number>[] = [];
  #writtenCount = 0;

  constructor(ports: readonly number[], perSecond: number) {
    this.#ports = ports;
    this.#everyNth = Math.max(1, Math.round(perSecond / SAMPLES_PER_SECOND));
  }

  onWritten(position: string): void {
    this.#writtenCount += 1;
    if (this.#writtenCount % this.#everyNth !== 0) return;
    const lag = this.#lag(position);
    // It is waited for at the end.
    lag.catch(() => undefined);
    this.#lags.push(lag);
  }

  /** Milliseconds, ascending. */
  async all(): Promise<readonly number[]> {
    const lagsMs = await Promise.all(this.#lags);
    this.#agent.destroy();
    return lagsMs.sort((one, other) => one - other);
  }

  async #lag(position: string): Promise<number> {
    const writtenMs = performance.now();
    await reached(this.#ports[this.#lags.length % this.#ports.length] ?? 0, position, this.#agent);
    return performance.now() - writtenMs;
  }
}
