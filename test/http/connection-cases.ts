// What tests of connections share.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PolicyView, ReadResult } from '../../src/service/views.ts';
import { listOf, policyView, readMeta, type Server, tokenView } from './support.ts';

export const found = (index: number, modifyIndex = index): ReadResult<PolicyView> => ({
  value: policyView({ modifyIndex }),
  meta: readMeta(index),
});

/** Gives one answer after the other, and the last one for ever. */
export function inTurn<T>(...answers: readonly T[]): () => T {
  let turn = 0;
  return () => answers[Math.min(turn++, answers.length - 1)] as T;
}

export async function listening(
  t: { teardown(action: () => Promise<void>): void },
  made: Server,
): Promise<number> {
  await made.app.listen({ port: 0, host: '127.0.0.1' });
  t.teardown(async () => {
    await made.app.close();
  });
  return (made.app.server.address() as AddressInfo).port;
}

export function get(
  port: number,
  path: string,
  headers: Record<string, string | string[]> = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest({ port, path, headers, host: '127.0.0.1', agent: false }, resolve)
      .on('error', reject)
      .end();
  });
}

export async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Slices of tokens; counts how many were asked for. */
export function manyTokens(slices: number, failAt = Number.POSITIVE_INFINITY) {
  const seen = { asked: 0, returned: false };
  const slice = Array.from({ length: 100 }, () => tokenView({ description: 'd'.repeat(200) }));
  async function* generate() {
    try {
      for (; seen.asked < slices; seen.asked += 1) {
        if (seen.asked === failAt) throw new Error('the disk is gone');
        yield slice;
      }
    } finally {
      seen.returned = true;
    }
  }
  return { seen, list: () => ({ ...listOf<never>([]), slices: generate() }) };
}
