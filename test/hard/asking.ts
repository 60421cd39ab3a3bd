// Requests as a careless, a broken or a hostile client sends them. `ask` goes through Node's client and
// keeps its connections; `sendRaw` writes bytes of any kind to a socket and gives what came back.

import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

/** The secret of the management token that every server of these tests is started with. */
export const MANAGEMENT = '11111111-2222-4333-8444-555555555555';

export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes and text go as they are, everything else as JSON. */
  readonly body?: unknown;
  /** `''` sends none. Default: the management token. */
  readonly secret?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Sends one request. Rejects when the connection breaks before the whole answer is there. */
export function ask(port: number, asked: Asked): Promise<Answer> {
  const { method = 'GET', path, body, secret = MANAGEMENT } = asked;
  const bytes = bytesOf(body);
  const own = {
    ...(secret === '' ? {} : { 'X-Service-Token': secret }),
    // Node leaves it out where a method usually has no body.
    ...(bytes === undefined ? {} : { 'Content-Length': String(bytes.length) }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, method, path, agent, headers: { ...own, ...asked.headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      },
    );
    sent.on('error', reject);
    sent.end(bytes);
  });
}

function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** As `ask`, and the answer must be a 200 with JSON. */
export async function askJson<T>(port: number, asked: Asked): Promise<T> {
  const { status, text } = await ask(port, asked);
  if (status !== 200) throw new Error(`${asked.method ?? 'GET'} ${asked.path}: ${status} ${text}`);
  return JSON.parse(text) as T;
}

export interface RawOptions {
  /** Closes the sending half behind the bytes. */
  readonly isEnded?: boolean;
  /** Resolves as soon as the answer so far is enough; default: when the server closes. */
  readonly isEnough?: (answer: string) => boolean;
}

/** Writes bytes to a fresh connection; resolves with all that came back, as latin-1. */
export function sendRaw(
  port: number,
  bytes: string | Buffer,
  { isEnded = false, isEnough = () => false }: RawOptions = {},
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let answer = '';
    socket.setEncoding('latin1');
    socket.on('connect', () => {
      if (isEnded) socket.end(bytes);
      else socket.write(bytes);
    });
    socket.on('data', (part: string) => {
      answer += part;
      if (isEnough(answer)) socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });
}

/** Sends the beginning of a request and goes away. */
export function abandon(port: number, bytes: string | Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.write(bytes, () => socket.destroy());
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
  });
}

/** The digests and the index of a server's state, as one text: equal texts, equal states. */
export async function stateOf(port: number): Promise<string> {
  const self = await askJson<{ readonly Stats: { readonly state: Record<string, string> } }>(port, {
    path: '/v1/agent/self',
  });
  return JSON.stringify(self.Stats.state);
}
