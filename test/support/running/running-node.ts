// The real node in this process: system clock, databases in a temporary folder, HTTP on a free port;
// and a client that sends what it is told to send, byte for byte, and shows what came back. A node
// ends with the test that owns it, and its folder with it.

import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../../cluster/platform/clock.ts';
import { openNode } from '../../../src/node/node.ts';
import { readSettings } from '../../../src/node/settings/settings.ts';
import { openSystemPlatform } from '../../../src/platform-node/system-platform.ts';

/** The secret of the management token of nodes that are not told otherwise. */
export const ROOT = 'root';

export interface NodeUnderTest {
  readonly port: number;
  readonly agent: Agent;
  /** Where a bootstrap reset file would be put. */
  readonly dataFolder: string;
}

interface Owner {
  teardown(action: () => Promise<void>): void;
}

/** Opens a node with these flags; those of the test environment are filled in. On that clock, if one is given. */
export async function runNode(
  owner: Owner,
  flags: Readonly<Record<string, string>> = {},
  clock?: Clock,
): Promise<NodeUnderTest> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'node-under-test-'));
  // Also where it does not start; teardowns go from the last to the first.
  owner.teardown(async () => rmSync(dataFolder, { recursive: true }));
  const settings = readSettings({
    flags: {
      'data-dir': dataFolder,
      'node-name': 'node-1',
      'ports-http': '0',
      'ports-cluster': '-1',
      'log-level': 'error',
      'acl-tokens-initial-management': ROOT,
      ...flags,
    },
    files: [],
    environment: {},
  });
  const system = openSystemPlatform(settings);
  const platform = clock === undefined ? system : { ...system, clock };
  // The timers of a node do not keep a process alive, and a test waits for them.
  const awake = setInterval(() => undefined, 1_000);
  owner.teardown(async () => clearInterval(awake));
  const node = await openNode({ settings, platform, version: 'test' });
  const agent = new Agent({ keepAlive: true });
  owner.teardown(async () => {
    agent.destroy();
    await node.close();
  });
  return { port: node.addresses[0]?.port ?? 0, agent, dataFolder };
}

/** An object of an answer. */
export type Fields = Readonly<Record<string, unknown>>;

export interface Reply {
  readonly status: number;
  /** By lower-cased name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** The body as an object, or as a list of them. Both throw when it is no JSON. */
  readonly json: Fields;
  readonly list: readonly Fields[];
}

interface Checker {
  same(found: unknown, wanted: unknown): boolean;
  match(found: unknown, wanted: unknown): boolean;
}

/** The status and the whole text of an answer, or the pattern of the text. */
export function answers(
  t: Checker,
  { status, text }: Reply,
  wantedStatus: number,
  wantedText: string | RegExp,
): void {
  if (typeof wantedText === 'string') t.same([status, text], [wantedStatus, wantedText]);
  else t.match({ status, text }, { status: wantedStatus, text: wantedText });
}

export type Prefix = 'X-Consul-' | 'X-Service-';

export interface Sent {
  /** Text is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client that speaks one dialect and presents one secret; the empty one presents none. */
export class Client {
  readonly #node: NodeUnderTest;
  readonly #prefix: Prefix;
  readonly #secret: string;

  constructor(node: NodeUnderTest, prefix: Prefix, secret: string = ROOT) {
    this.#node = node;
    this.#prefix = prefix;
    this.#secret = secret;
  }

  /** The same client with another secret. */
  as(secret: unknown): Client {
    return new Client(this.#node, this.#prefix, String(secret));
  }

  get(path: string, sent: Sent = {}): Promise<Reply> {
    return this.send('GET', path, sent);
  }

  put(path: string, body?: unknown, sent: Sent = {}): Promise<Reply> {
    return this.send('PUT', path, { ...sent, body });
  }

  post(path: string, body?: unknown, sent: Sent = {}): Promise<Reply> {
    return this.send('POST', path, { ...sent, body });
  }

  delete(path: string, sent: Sent = {}): Promise<Reply> {
    return this.send('DELETE', path, sent);
  }

  /** The JSON of an answer that must be 200. */
  async made(method: 'PUT' | 'POST', path: string, body: unknown): Promise<Fields> {
    const reply = await this.send(method, path, { body });
    if (reply.status !== 200) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
    return reply.json;
  }

  /** Sends one request. `path` is below `/v1` and goes out as it is written. */
  send(method: string, path: string, { body, headers }: Sent = {}): Promise<Reply> {
    return send(this.#node, {
      method,
      path: `/v1${path}`,
      headers: { ...this.#ownHeaders(), ...headers },
      body,
    });
  }

  /** Without a secret a header of the prefix still tells the dialect. */
  #ownHeaders(): Readonly<Record<string, string>> {
    return this.#secret === ''
      ? { [`${this.#prefix}Client`]: 'test' }
      : { [`${this.#prefix}Token`]: this.#secret };
  }
}

/** Sends one request with no header but those named here. Resolves with every answer there is. */
export function send(
  { port, agent }: NodeUnderTest,
  { method, path, headers, body }: Sent & { readonly method: string; readonly path: string },
): Promise<Reply> {
  const bytes =
    body === undefined
      ? undefined
      : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const length = bytes === undefined ? {} : { 'Content-Length': String(bytes.length) };
  return new Promise((resolve, reject) => {
    const options = { agent, port, method, path, headers: { ...length, ...headers } };
    const request = httpRequest({ host: '127.0.0.1', ...options }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Reply['headers'],
          text,
          get json() {
            return JSON.parse(text) as Fields;
          },
          get list() {
            return JSON.parse(text) as readonly Fields[];
          },
        });
      });
    });
    request.on('error', reject);
    request.end(bytes);
  });
}
