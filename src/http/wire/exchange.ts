// One request and its answer. Answers are written straight to the socket as ready text, head and body
// in one piece: no serialisation by schema, no hooks behind it. Whatever goes wrong ends in `fail`,
// which is the only place where a refusal becomes a status.

import { constants, gzip } from 'node:zlib';
import { AclError } from '../../acl/error.ts';
import type { ReadMeta, WriteMeta } from '../../service/views.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import type { RouteStats } from '../figures/route-stats.ts';
import type { HttpParts } from '../parts.ts';
import { LIMITS } from '../settings.ts';
import type { ReadyBody } from './description.ts';
import { drained, endsInTime } from './drained.ts';
import { hasDeployedHeader, headerNames, listReader, pushHeader } from './headers.ts';
import { PrettyPrinter } from './pretty.ts';
import { type Query, queryOf } from './query.ts';
import { type Dialect, statusOf, titleOf } from './status.ts';
import type { RawExchange, RawRequest, RawResponse } from './wire-types.ts';

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json';
const acceptsProblem = listReader(PROBLEM_TYPE);
const acceptsGzip = listReader('gzip', 'x-gzip');

const INDEX = headerNames('Index');
const KNOWN_LEADER = headerNames('KnownLeader');
const LAST_CONTACT = headerNames('LastContact');
const QUERY_BACKEND = headerNames('Query-Backend');
const DEFAULT_POLICY = headerNames('Default-ACL-Policy');
const POSITION = headerNames('Position');
const ACK = headerNames('Ack');
const VISIBLE = headerNames('Visible');
const NEXT = headerNames('Next');

/**
 * The headers made last. They change with a write and not with a request, and their texts, once they
 * went over the wire, are also written faster than new ones.
 */
let lastHead = { type: '', defaultPolicy: '', epoch: 0, seq: 0, flat: [] as readonly string[] };
let lastIndex = { index: 0, contactMs: 0, knownLeader: false, flat: [] as readonly string[] };

/** What refusals of blocking reads say about an index that they do not know. */
const UNKNOWN_INDEX: readonly string[] = indexHeaders({
  index: 1,
  knownLeader: false,
  lastContactMs: 0,
});

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** Names and values, flat. */
  readonly headers?: readonly string[];
  readonly position?: Position | undefined;
}

export class Exchange {
  readonly request: RawRequest;
  readonly response: RawResponse;
  readonly parts: HttpParts;
  readonly stats: RouteStats;
  readonly #startedMs: number;
  #query: Query | undefined;

  constructor(parts: HttpParts, stats: RouteStats, raw: RawExchange) {
    this.parts = parts;
    this.stats = stats;
    this.request = raw.request;
    this.response = raw.response;
    this.#startedMs = parts.clock.monotonicMs();
  }

  /** The target as the client sent it, before any cleaning. */
  get target(): string {
    const { originalUrl, url } = this.request as RawRequest & { readonly originalUrl?: string };
    return originalUrl ?? url ?? '/';
  }

  /** Throws 'malformed', with an empty text when an escape is broken. */
  get query(): Query {
    this.#query ??= queryOf(this.target);
    if (this.#query === undefined) throw new UndecodableQuery();
    return this.#query;
  }

  get dialect(): Dialect {
    const { dialect } = this.parts.settings;
    if (dialect !== 'auto') return dialect;
    return hasDeployedHeader(this.request.headers) ? 'consul' : 'service';
  }

  /** Client address for limits and logs. */
  get client(): string {
    return this.request.socket.remoteAddress ?? 'unknown';
  }

  get isPretty(): boolean {
    return this.query.has('pretty');
  }

  get acceptsGzip(): boolean {
    return acceptsGzip(this.request.headers['accept-encoding']);
  }

  /** True once the client has gone or the answer is on its way. */
  get isOver(): boolean {
    return this.response.headersSent || this.isGone;
  }

  /** Whether the client has hung up. */
  get isGone(): boolean {
    return this.response.destroyed;
  }

  /** The head of every answer: type, and what all of them carry. */
  head(type: string, position: Position | undefined): readonly string[] {
    const meta = this.parts.operations.meta();
    return headOf(type, meta.defaultPolicy, position ?? meta.position);
  }

  /** JSON, indented for those who ask for it. */
  sendJson(
    body: string,
    headers: readonly string[],
    position: Position | undefined,
    status = 200,
  ): void {
    if (!this.isPretty) {
      this.send({ status, type: JSON_TYPE, body, headers, position });
      return;
    }
    const printer = new PrettyPrinter();
    const pretty = printer.push(body) + printer.end();
    this.send({ status, type: JSON_TYPE, body: pretty, headers, position });
  }

  /** What was made before, for everybody. */
  sendReady(type: string, { plain, gzipped }: ReadyBody): void {
    const flat = [...this.head(type, undefined)];
    if (!this.acceptsGzip) this.write(200, flat, plain);
    else this.write(200, [...flat, 'Content-Encoding', 'gzip'], gzipped);
  }

  send(answer: Answer): void {
    const flat = this.head(answer.type, answer.position).concat(answer.headers ?? []);
    if (answer.body.length < LIMITS.gzipMinLength || !this.acceptsGzip) {
      this.write(answer.status, flat, answer.body);
      return;
    }
    gzip(answer.body, { level: constants.Z_BEST_SPEED }, (error, compressed) => {
      if (error !== null) {
        this.write(answer.status, flat, answer.body);
        return;
      }
      flat.push('Content-Encoding', 'gzip');
      this.write(answer.status, flat, compressed);
    });
  }

  /** Writes head and body as they are, and counts the request. */
  write(status: number, flat: string[], body: string | Buffer): void {
    if (this.isOver) return;
    const sizeBytes = Buffer.byteLength(body);
    flat.push('Content-Length', String(sizeBytes));
    this.response.writeHead(status, flat);
    // Text of as many bytes as characters is ASCII, which is written faster under this name.
    const encoding = sizeBytes === body.length ? 'latin1' : 'utf8';
    this.finished(status);
    if (sizeBytes > LIMITS.chunkChars) {
      void this.#endInPieces(typeof body === 'string' ? Buffer.from(body, encoding) : body);
      return;
    }
    endInOneWrite(this.response, body, encoding);
    // Nearly always the system has taken it all.
    if ((this.response.socket?.writableLength ?? 0) > 0) endsInTime(this);
  }

  /** No faster than the client reads, so that it shows when it does not. */
  async #endInPieces(body: Buffer): Promise<void> {
    const { response } = this;
    for (let start = 0; start < body.length; start += LIMITS.chunkChars) {
      if (!response.write(body.subarray(start, start + LIMITS.chunkChars))) await drained(this);
      if (response.destroyed) return;
    }
    response.end();
    endsInTime(this);
  }

  /** Counts the request; for those who write the answer themselves. */
  finished(status: number): void {
    this.stats.record(status, this.parts.clock.monotonicMs() - this.#startedMs);
  }

  /**
   * Answers with the refusal that `error` is. Anything that is no AclError is a fault of ours: it is
   * logged, and the client reads a reference to the log and nothing else.
   */
  fail(error: unknown, headers: readonly string[] = []): void {
    if (this.isOver) return;
    try {
      this.#failWith(error, headers);
    } catch (second) {
      // Not even a refusal can be written, as when the state is closed: leave nobody waiting.
      this.parts.logger.error({ cause: causeOf(second) }, 'answer failed');
      this.response.destroy();
    }
  }

  #failWith(error: unknown, headers: readonly string[]): void {
    if (error instanceof UndecodableQuery) {
      const status = this.dialect === 'consul' ? 500 : 400;
      this.#refuse(status, { code: 'malformed', text: '' }, headers);
      return;
    }
    const refusal = error instanceof AclError ? error : this.#unexpected(error);
    const status = statusOf(refusal.code, this.dialect);
    const all = [...headers, ...retryHeaders(refusal, status)];
    this.#refuse(status, { code: refusal.code, text: refusal.message }, all);
  }

  /** As `fail`, for the reads that always say something about their index. */
  failRead(error: unknown, headers: readonly string[] = UNKNOWN_INDEX): void {
    this.fail(error, headers);
  }

  #refuse(
    status: number,
    refusal: { readonly code: string; readonly text: string },
    headers: readonly string[],
  ): void {
    if (!acceptsProblem(this.request.headers.accept)) {
      this.send({ status, type: TEXT_TYPE, body: refusal.text, headers });
      return;
    }
    const body = JSON.stringify({
      type: 'about:blank',
      title: titleOf(status),
      status,
      detail: refusal.text.trim(),
      code: refusal.code,
    });
    this.send({ status, type: PROBLEM_TYPE, body, headers });
  }

  #unexpected(error: unknown): AclError {
    const reference = this.parts.random.uuid().slice(0, 8);
    const { method, template } = this.stats;
    const fields = { reference, method, route: template, cause: causeOf(error) };
    this.parts.logger.error(fields, 'request failed');
    return new AclError('internal', `internal error, see ${reference} in the log of the server`);
  }
}

/** Head and body at once. `end` with a body writes them and then nothing, by a dearer way for several pieces. */
function endInOneWrite(
  response: RawResponse,
  body: string | Buffer,
  encoding: 'latin1' | 'utf8',
): void {
  const { socket } = response;
  socket?.cork();
  response.write(body, encoding);
  socket?.uncork();
  response.end();
}

/** What the log says about a fault. */
export function causeOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The query string cannot be read: deployed clients are answered with an empty text. */
class UndecodableQuery extends Error {
  override readonly name = 'UndecodableQuery';
}

/** A refusal of a limit knows when to try again. */
export class RetryLater extends AclError {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super('rate-limited', message);
    this.retryAfterMs = retryAfterMs;
  }
}

function retryHeaders(refusal: AclError, status: number): readonly string[] {
  if (status !== 429 && status !== 503) return [];
  const afterMs = refusal instanceof RetryLater ? refusal.retryAfterMs : 1000;
  return ['Retry-After', String(Math.max(1, Math.ceil(afterMs / 1000)))];
}

function headOf(type: string, defaultPolicy: string, { epoch, seq }: Position): readonly string[] {
  const isLast = lastHead.type === type && lastHead.defaultPolicy === defaultPolicy;
  if (isLast && lastHead.seq === seq && lastHead.epoch === epoch) return lastHead.flat;
  // Who asks decides what is answered, and caches do not know the headers that say who it is.
  const flat = ['Content-Type', type, 'Vary', 'Accept-Encoding', 'Cache-Control', 'no-store'];
  pushHeader(flat, DEFAULT_POLICY, defaultPolicy);
  pushHeader(flat, POSITION, `${epoch}.${seq}`);
  lastHead = { type, defaultPolicy, epoch, seq, flat };
  return flat;
}

/** Index, KnownLeader, LastContact and backend, in the order in which deployed clients read them. */
export function indexHeaders(
  meta: Pick<ReadMeta, 'index' | 'knownLeader' | 'lastContactMs'>,
): readonly string[] {
  const index = Math.max(1, meta.index);
  const contactMs = Math.max(0, Math.round(meta.lastContactMs));
  const { knownLeader } = meta;
  const isLast = lastIndex.index === index && lastIndex.contactMs === contactMs;
  if (isLast && lastIndex.knownLeader === knownLeader) return lastIndex.flat;
  const flat: string[] = [];
  pushHeader(flat, INDEX, String(index));
  pushHeader(flat, LAST_CONTACT, String(contactMs));
  pushHeader(flat, KNOWN_LEADER, knownLeader ? 'true' : 'false');
  pushHeader(flat, QUERY_BACKEND, 'blocking-query');
  lastIndex = { index, contactMs, knownLeader, flat };
  return flat;
}

export function writeHeaders(meta: WriteMeta): string[] {
  const flat: string[] = [];
  pushHeader(flat, INDEX, String(Math.max(1, meta.index)));
  if (meta.ack !== undefined) pushHeader(flat, ACK, meta.ack);
  if (meta.isVisible === false) pushHeader(flat, VISIBLE, 'false');
  return flat;
}

/** Where a page ended: what the next request gives as `next`. */
export function nextHeaders(key: string | undefined): string[] {
  const flat: string[] = [];
  if (key !== undefined) pushHeader(flat, NEXT, Buffer.from(key).toString('base64url'));
  return flat;
}
