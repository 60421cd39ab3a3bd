// A closed-loop HTTP load generator on bare sockets: each connection has one request in flight and
// sends the next when the answer is complete. Written small because on two cores the generator
// competes with what it measures. It reads answers by Content-Length or by chunks, and checks each
// status.

import { connect, type Socket } from 'node:net';

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
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly requests: number;
  /** Answers with another status than expected; the first of them in full. */
  readonly unexpected: number;
  readonly firstUnexpected: string | undefined;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/** Runs the plan and resolves with its figures. Rejects when a connection breaks. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const latencies: number[] = [];
  let serial = 0;
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
        if (statusOf(received) !== plan.expectedStatus) {
          unexpected++;
          firstUnexpected ??= received.subarray(0, size).toString('utf8');
        }
        if (sentAt >= countFrom && now <= endAt) latencies.push(now - sentAt);
        received = received.subarray(size);
        send();
      });
      guardClosing(socket, reject, () => performance.now() >= endAt);
    });

  await Promise.all(Array.from({ length: plan.connections }, (_, place) => runOne(place)));
  latencies.sort((a, b) => a - b);
  return {
    requestsPerSecond: latencies.length / (plan.durationMs / 1000),
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    requests: latencies.length,
    unexpected,
    firstUnexpected,
  };
}

function guardClosing(socket: Socket, reject: (error: Error) => void, isOver: () => boolean): void {
  socket.on('close', () => {
    if (!isOver()) reject(new Error('the server closed a connection'));
  });
}

/** Bytes of the first answer in `received`, or undefined while that is not known yet. */
function answerSize(received: Buffer): number | undefined {
  const headEnd = received.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const head = received.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head);
  if (length !== null) return headEnd + 4 + Number(length[1]);
  const end = received.indexOf('0\r\n\r\n', headEnd + 4, 'latin1');
  return end < 0 ? undefined : end + 5;
}

function statusOf(received: Buffer): number {
  return Number(received.toString('latin1', 9, 12));
}

function quantile(sorted: readonly number[], fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
}
