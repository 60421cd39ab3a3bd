// Servers on the loopback and surroundings over them, for the tests of auth methods.

import { randomBytes, randomUUID } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { AuthMethod, AuthMethodType } from '../../src/acl/auth-method.ts';
import type { NamespaceName } from '../../src/acl/ids.ts';
import type { Surroundings } from '../../src/auth-methods/outside/surroundings.ts';
import { NodeHttpsClient } from '../../src/platform-node/net/https-client.ts';
import type { Certified } from '../support/certificates.ts';
import { FakeClock } from '../support/fake-clock.ts';

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body: unknown;
}

export interface Loopback {
  readonly url: string;
  readonly seen: Seen[];
  /** Replaced by tests; an undefined reply leaves the request unanswered. */
  reply: (request: Seen) => Reply | undefined;
}

interface Owner {
  teardown(action: () => Promise<unknown>): void;
}

/** A server on a free port that ends with the test. */
export async function startLoopback(owner: Owner, tls?: Certified): Promise<Loopback> {
  const loopback: Loopback = { url: '', seen: [], reply: () => ({ status: 404, body: '' }) };
  const server = tls === undefined ? createHttpServer() : createHttpsServer({ ...tls });
  server.on('request', (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const seen = { method, path, headers, body: Buffer.concat(chunks).toString() };
      loopback.seen.push(seen);
      const reply = loopback.reply(seen);
      if (reply === undefined) return;
      response.writeHead(reply.status ?? 200, reply.headers);
      response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  owner.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return Object.assign(loopback, {
    url: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
  });
}

export const START_MS = Date.UTC(2026, 10, 21, 12);

export interface TestSurroundings extends Surroundings {
  /** Moves the clock. */
  advance(ms: number): void;
  /** Every log line as JSON. */
  readonly lines: string[];
}

export function testSurroundings(): TestSurroundings {
  const clock = new FakeClock(START_MS);
  const lines: string[] = [];
  const line = (fields: object, message: string) => {
    lines.push(JSON.stringify({ ...fields, message }));
  };
  return {
    http: new NodeHttpsClient(),
    clock,
    advance: (ms) => clock.advance(ms),
    random: { uuid: () => randomUUID(), bytes: (count) => randomBytes(count), fraction: () => 0.5 },
    logger: { debug: line, info: line, warn: line, error: line },
    lines,
  };
}

export function authMethod(type: AuthMethodType, config: AuthMethod['config']): AuthMethod {
  return {
    name: 'm',
    namespace: 'default' as NamespaceName,
    type,
    displayName: '',
    description: '',
    maxTokenTtlNs: 600_000_000_000n,
    tokenLocality: '',
    config,
    namespaceRules: [],
    createIndex: 7,
    modifyIndex: 7,
  };
}
