// Requests of the command line over HTTP, HTTPS with an authority of its own, or a Unix socket. The
// global fetch knows neither of the last two without another package, so this uses Node's own client.

import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { messageOf } from '../../../cluster/base/message-of.ts';
import { textOfChunks } from '../../client/answer-text.ts';
import {
  type StreamRequest,
  type StreamResponse,
  type Transport,
  TransportError,
  type TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from '../../client/transport.ts';
import { CERTIFICATES_CHECKED } from './tls-context.ts';

export interface HttpTransportOptions {
  /** Path of a Unix socket to connect to in place of the host of the address. */
  readonly socketPath?: string | undefined;
  /** Texts of PEM; what is left out is Node's own. */
  readonly tls?: {
    readonly ca?: string | undefined;
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
  };
  /** So long nothing may arrive before the request is given up. */
  readonly timeoutMs: number;
  /** So long all of an answer may take that is no stream, however it comes: a byte now and then is none. */
  readonly wholeMs?: number;
}

/** Longer than any wait that a request can ask for. */
const WHOLE_MS = 660_000;
/** So long a server may think about a whole body that it was sent chunk by chunk. */
const AFTER_BODY_MS = 600_000;

type Headers = TransportRequest['headers'];

/** A transport over Node's HTTP client. */
export function httpTransport(options: HttpTransportOptions): Transport {
  return {
    send: (request) => send(request, options),
    stream: (request) => stream(request, options),
  };
}

async function send(
  request: TransportRequest,
  options: HttpTransportOptions,
): Promise<TransportResponse> {
  const body = request.body === undefined ? undefined : Buffer.from(request.body);
  const headers = { ...request.headers, 'content-length': String(body?.length ?? 0) };
  const begun = begin({ ...request, headers }, options);
  const { wholeMs = WHOLE_MS } = options;
  const timer = setTimeout(() => giveUp(begun, 'no whole answer', wholeMs), wholeMs);
  try {
    begun.outgoing.end(body);
    const incoming = await begun.answer;
    return { ...headOf(incoming), text: await textOfChunks(chunksOf(incoming, begun)) };
  } finally {
    clearTimeout(timer);
  }
}

async function stream(
  request: StreamRequest,
  options: HttpTransportOptions,
): Promise<StreamResponse> {
  const begun = begin(request, options);
  if (request.body === undefined) begun.outgoing.end();
  else void sendBody(request.body, begun);
  const incoming = await begun.answer;
  return { ...headOf(incoming), body: chunksOf(incoming, begun) };
}

/** A request on its way. */
interface Begun {
  readonly outgoing: ClientRequest;
  /** Rejects with TransportError, or with what the body threw. */
  readonly answer: Promise<IncomingMessage>;
  /** Why this side gave up, if it did. */
  givenUp: Error | undefined;
  hasAnswer: boolean;
  /** How long it waits at present. */
  timeoutMs: number;
}

function begin(
  request: { readonly method: string; readonly url: string; readonly headers: Headers },
  options: HttpTransportOptions,
): Begun {
  const settings: RequestOptions & HttpTransportOptions['tls'] = {
    method: request.method,
    headers: request.headers,
    timeout: options.timeoutMs,
    ...(options.socketPath === undefined ? {} : { socketPath: options.socketPath }),
    ...options.tls,
    ...CERTIFICATES_CHECKED,
  };
  const start = request.url.startsWith('https:') ? httpsRequest : httpRequest;
  const outgoing = startedWith(() => start(request.url, settings));
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', (incoming) => {
      begun.hasAnswer = true;
      resolve(incoming);
    });
    outgoing.on('error', (error) => reject(begun.givenUp ?? failureOf(error)));
    outgoing.once('upgrade', ({ statusCode }, socket) => {
      socket.destroy();
      reject(new TransportError('unreadable', `status ${statusCode}, and no answer behind it`));
    });
    // However it ends, whoever waits hears of it: a process that waits for nothing else would be over.
    outgoing.once('close', () =>
      reject(new TransportError('broken', 'it ended without an answer')),
    );
  });
  const { timeoutMs } = options;
  const begun: Begun = { outgoing, answer, givenUp: undefined, hasAnswer: false, timeoutMs };
  outgoing.on('timeout', () => giveUp(begun, 'no answer', begun.timeoutMs));
  return begun;
}

function giveUp(begun: Begun, what: string, afterMs: number): void {
  const seconds = Math.round(afterMs / 1000);
  begun.givenUp = new TransportError('timeout', `${what} within ${seconds} seconds`);
  begun.outgoing.destroy(begun.givenUp);
}

/** A certificate and a key that do not fit are seen before anything is sent. */
function startedWith(start: () => ClientRequest): ClientRequest {
  try {
    return start();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!code.startsWith('ERR_OSSL')) throw error;
    const says = `the own certificate and its key cannot be used: ${messageOf(error)}`;
    throw new TransportError('tls', says, { cause: error });
  }
}

/** Sends the body as fast as it is read; a server that has answered reads no further. */
async function sendBody(body: AsyncIterable<Uint8Array>, begun: Begun): Promise<void> {
  const { outgoing } = begun;
  try {
    for await (const chunk of body) {
      if (begun.hasAnswer || outgoing.destroyed) break;
      if (!outgoing.write(chunk)) await drained(begun);
    }
    // What was cut short must not look whole.
    if (begun.hasAnswer) return;
    begun.timeoutMs = AFTER_BODY_MS;
    outgoing.setTimeout(AFTER_BODY_MS);
    outgoing.end();
  } catch (error) {
    begun.givenUp = error instanceof Error ? error : new Error(String(error));
    outgoing.destroy(begun.givenUp);
  }
}

function drained({ outgoing }: Begun): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of ['drain', 'close', 'response']) outgoing.off(event, done);
      resolve();
    };
    for (const event of ['drain', 'close', 'response']) outgoing.once(event, done);
  });
}

async function* chunksOf(incoming: IncomingMessage, begun: Begun): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of incoming) yield chunk as Uint8Array;
  } catch (error) {
    throw begun.givenUp ?? failureOf(error);
  } finally {
    // A body that is only half sent holds the connection for nothing.
    if (!begun.outgoing.writableFinished) begun.outgoing.destroy();
  }
}

function headOf(incoming: IncomingMessage): Pick<TransportResponse, 'status' | 'headers'> {
  const headers = Object.entries(incoming.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ]);
  const byName = Object.fromEntries(headers) as Record<string, string>;
  return { status: incoming.statusCode ?? 0, headers: byName };
}

/** What ended in the middle may have been cut off: that is no fault of what speaks there. */
const HPE_CUT_OFF = 'HPE_INVALID_EOF_STATE';

const FAILURES: ReadonlyMap<string, TransportFailure> = new Map([
  ['ECONNREFUSED', 'refused'],
  ['ENOENT', 'refused'],
  ['EACCES', 'refused'],
  ['ENOTFOUND', 'no-such-host'],
  ['EAI_AGAIN', 'no-such-host'],
  ['EHOSTUNREACH', 'no-such-host'],
  ['ENETUNREACH', 'no-such-host'],
  ['ETIMEDOUT', 'timeout'],
  ['EPROTO', 'tls'],
  ['HPE_INVALID_CONSTANT', 'tls'],
]);

function failureOf(error: unknown): TransportError {
  if (error instanceof TransportError) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  const isTls = /^(ERR_(TLS|SSL)|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED)/.test(code);
  const isStrange = code.startsWith('HPE_') && code !== HPE_CUT_OFF;
  const failure = isTls ? 'tls' : (FAILURES.get(code) ?? (isStrange ? 'unreadable' : 'broken'));
  return new TransportError(failure, message === '' ? code : message, { cause: error });
}
