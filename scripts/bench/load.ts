// A closed-loop HTTP load generator on bare sockets: each connection has one request in flight and
// sends the next when the answer is complete. Written small because on two cores the generator
// competes with what it measures. It checks the status of each answer.

import { connect, type Socket } from 'node:net';
import { quantile } from './figures.ts';
import { answerSize, statusOf } from './http-answer.ts';

export interface LoadPlan {
  readonly host: string;
  /** Connections are spread over these in turn. */
  readonly ports: readonly number[];
  readonly connections: number;
  /** Ends after so many milliseconds of measuring, preceded by `warmUpMs` that do not count. */
  readonly durationMs: number;
  readonly warmUpMs: number;
  readonly expectedStatus: number;
  /** The whole request as bytes, made anew for each. */
  readonly request: (serial: number) => string;
  /**
   * Looks for answers all the time, and has a core to itself. Otherwise it sleeps while there are none, and to
   * wake a process on another core costs the server more than a fifth of a read, the more so the slower it is.
   */
  readonly isSleepless?: boolean;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  /** Also of those that were under way at the end: it is the slow ones that are. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly requests: number;
  /** Those of the warm-up, and what was still under way at the end, included. */
  readonly answered: number;
  /** Answers with another status than expected; the first of them in full. */
  readonly unexpected: number;
  readonly firstUnexpected: string | undefined;
}

/** Runs the plan and resolves with its figures. Rejects when a connection breaks. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const latencies: number[] = [];
  let serial = 0;
  let answered = 0;
  let inTime = 0;
  let unexpected = 0;
  let firstUnexpected: string | undefined;
  const startedAt = performance.now();
  const countFrom = startedAt + plan.warmUpMs;
  const endAt = countFrom + plan.durationMs;

  const runOne = (place: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const port = plan.ports[place % plan.ports.length] ?? 0;
      const socket = connect({ host: plan.host, port, noDelay: true });
      let received: Buffer = Buffer.alloc(0);
      let sentAt = 0;
      const send = (): void => {
        sentAt = performance.now();
        if (sentAt >= endAt) return void socket.end(resolve);
        socket.write(plan.request(serial++));
      };
      socket.on('connect', send);
      socket.on('error', reject);
      socket.on('data', (piece) => {
        received = received.length === 0 ? piece : Buffer.concat([received, piece]);
        const size = answerSize(received);
        if (size === undefined || received.length < size) return;
        const now = performance.now();
        answered++;
        if (statusOf(received) !== plan.expectedStatus) {
          unexpected++;
          firstUnexpected ??= received.subarray(0, size).toString('utf8');
        }
        if (sentAt >= countFrom) latencies.push(now - sentAt);
        if (sentAt >= countFrom && now <= endAt) inTime++;
        received = received.subarray(size);
        send();
      });
      guardClosing(socket, reject, () => performance.now() >= endAt);
    });

  if (plan.isSleepless === true) stayAwakeUntil(endAt);
  await Promise.all(Array.from({ length: plan.connections }, (_, place) => runOne(place)));
  latencies.sort((a, b) => a - b);
  return {
    requestsPerSecond: inTime / (plan.durationMs / 1000),
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    requests: inTime,
    answered,
    unexpected,
    firstUnexpected,
  };
}

/** Gives it back. Throws where a server answered anything else: that costs it less, and would count for more. */
export function asExpected(result: LoadResult): LoadResult {
  const { unexpected, firstUnexpected } = result;
  if (unexpected === 0) return result;
  throw new Error(`${unexpected} answers were others than expected, the first: ${firstUnexpected}`);
}

/** An event loop with something to do does not wait for its sockets. */
function stayAwakeUntil(endAt: number): void {
  if (performance.now() < endAt) setImmediate(stayAwakeUntil, endAt);
}

function guardClosing(socket: Socket, reject: (error: Error) => void, isOver: () => boolean): void {
  socket.on('close', () => {
    if (!isOver()) reject(new Error('the server closed a connection'));
  });
}
