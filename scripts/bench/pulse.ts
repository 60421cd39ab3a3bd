// Clients that never stop asking, and remember when they were answered: what a stop of the leader
// looks like from outside. Each client has one request in flight; whose server is gone or refuses
// goes on with the next one, as a load balancer would.

import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

export interface PulsePlan {
  readonly ports: readonly number[];
  readonly clients: number;
  readonly method: 'GET' | 'PUT';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface PulseFigures {
  /** The longest time without any good answer, in milliseconds. */
  readonly longestGapMs: number;
  readonly goodCount: number;
  /** Answers of another status than 200, and requests that broke. */
  readonly failedCount: number;
  /** The text of the first one. */
  readonly firstFailure: string | undefined;
}

/** A server that does not answer at all is left after so long. */
const PATIENCE_MS = 1_000;
/** A refusal is not answered by a storm of the same request. */
const REFUSED_PAUSE_MS = 5;

/** Starts the clients; `end` stops them and tells what they saw since the start. */
export function startPulse(plan: PulsePlan): { end(): Promise<PulseFigures> } {
  const agent = new Agent({ keepAlive: true });
  let isOver = false;
  let goodCount = 0;
  let failedCount = 0;
  let firstFailure: string | undefined;
  let longestGapMs = 0;
  let lastGoodAt = performance.now();
  const onGood = (): void => {
    const now = performance.now();
    longestGapMs = Math.max(longestGapMs, now - lastGoodAt);
    lastGoodAt = now;
    goodCount += 1;
  };
  const runClient = async (serial: number): Promise<void> => {
    for (let place = serial; !isOver; ) {
      const port = plan.ports[place % plan.ports.length] ?? 0;
      const failure = await ask(plan, agent, port);
      if (failure === undefined) onGood();
      else if (!isOver) {
        failedCount += 1;
        firstFailure ??= failure;
        place += 1;
        await pause(REFUSED_PAUSE_MS);
      }
    }
  };
  const clients = Array.from({ length: plan.clients }, (_, serial) => runClient(serial));
  return {
    async end() {
      isOver = true;
      longestGapMs = Math.max(longestGapMs, performance.now() - lastGoodAt);
      await Promise.all(clients);
      agent.destroy();
      return { longestGapMs, goodCount, failedCount, firstFailure };
    },
  };
}

/** Undefined when the answer was 200, else what was wrong. */
function ask(plan: PulsePlan, agent: Agent, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const { method, path, headers, body } = plan;
    const sent = httpRequest(
      { host: '127.0.0.1', port, method, path, headers, agent, timeout: PATIENCE_MS },
      (answer) => {
        const pieces: Buffer[] = [];
        answer.on('data', (piece: Buffer) => pieces.push(piece));
        answer.on('error', (error) => resolve(error.message));
        answer.on('end', () => {
          const text = `${answer.statusCode} ${Buffer.concat(pieces).toString()}`;
          resolve(answer.statusCode === 200 ? undefined : text);
        });
      },
    );
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)));
    sent.on('error', (error) => resolve(error.message));
    sent.end(body);
  });
}
