// From the headers and the query of a request to the call that goes with an operation: who asks,
// where, how fresh the answer must be. Everything that a client can get wrong here is refused with 400
// before the operation runs. The order of checks is the one that deployed servers have.

import { AclError } from '../../acl/error.ts';
import type { SecretId } from '../../acl/ids.ts';
import { durationNsOf } from '../../acl/values/duration.ts';
import type { Endpoint } from '../../api/endpoints/endpoint.ts';
import type { AckLevel, Call, Consistency } from '../../service/call.ts';
import { ACK_TIMEOUT_MAX_MS } from '../../service/writes/acknowledge.ts';
import { REQUEST_ID_MAX } from '../../service/writes/request-marks.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import type { Page } from '../../state/view.ts';
import { headBytesOf, TEXT_BYTES } from '../limits/head-size.ts';
import { LIMITS } from '../settings.ts';
import type { Exchange } from '../wire/exchange.ts';
import { HEADER_PREFIXES, headerReader } from '../wire/headers.ts';
import { type Query, textOf } from '../wire/query.ts';
import type { RawRequest } from '../wire/wire-types.ts';

const tokenHeader = headerReader('Token');
const namespaceHeader = headerReader('Namespace');
const partitionHeader = headerReader('Partition');
const requestIdHeader = headerReader('Request-Id');

const CONFLICT = 'conflicting semantics.';

/** How long a read may wait for a change; `index` 0 does not wait. */
export interface Blocking {
  readonly index: number;
  readonly waitMs: number;
}

/** A call, and for reads and lists how it may block. */
export interface Asked {
  readonly call: Call;
  readonly blocking: Blocking | undefined;
}

/** What a request asks of an endpoint, apart from its path and body. Throws 'malformed'. */
export function askedOf(exchange: Exchange, endpoint: Endpoint): Asked {
  const consistency = consistencyOf(exchange.query);
  requireReadableCacheControl(exchange.request.headers['cache-control']);
  const mayBlock = endpoint.kind === 'read' || endpoint.kind === 'list';
  const blocking = mayBlock ? blockingOf(exchange) : undefined;
  if (endpoint.namespaced) requireNoNamespaceWhileOff(exchange);
  if (isOfObjects(endpoint)) requireNoPartition(exchange);
  return { call: callOf(exchange, { consistency, isWrite: endpoint.kind === 'write' }), blocking };
}

function callOf(
  exchange: Exchange,
  how: { readonly consistency: Consistency; readonly isWrite: boolean },
): Call {
  const { query, request } = exchange;
  const { consistency, isWrite } = how;
  return {
    secret: secretOf(exchange),
    namespaceParameter: textOf(query, 'ns'),
    namespaceHeader: namespaceHeader(request),
    datacenter: textOf(query, 'datacenter') ?? textOf(query, 'dc'),
    consistency,
    minPosition: positionOf(query, 'min-position'),
    cas: isWrite ? wholeNumberOf(query, 'cas') : undefined,
    requestId: isWrite ? requestIdOf(request) : undefined,
    ack: isWrite ? ackOf(query) : undefined,
    ackTimeoutMs: isWrite ? ackTimeoutOf(query) : undefined,
    remoteAddress: request.socket.remoteAddress,
  };
}

function blockingOf(exchange: Exchange): Blocking {
  const { query } = exchange;
  const { defaultQueryTimeMs, maxQueryTimeMs } = exchange.parts.settings;
  const wait = textOf(query, 'wait');
  const askedMs = wait === undefined ? 0 : durationMs(wait);
  if (askedMs === undefined) throw malformed('Invalid wait time');
  const index = textOf(query, 'index');
  if (index !== undefined && !isUnsigned64(index)) throw malformed('Invalid index');
  const waitMs = askedMs <= 0 ? defaultQueryTimeMs : Math.min(askedMs, maxQueryTimeMs);
  const asked = { index: Math.min(Number(index ?? 0), Number.MAX_SAFE_INTEGER), waitMs };
  if (asked.index > 0) requireShortHead(exchange);
  return asked;
}

/** What may wait for minutes is kept for as long. */
function requireShortHead({ target, request }: Exchange): void {
  const max = LIMITS.blockingHeadBytes;
  if (headBytesOf(target, request.rawHeaders) <= max) return;
  throw malformed(
    `a blocking query may have ${max} characters of path, query and headers, and each name and value of a header counts for ${TEXT_BYTES} besides`,
  );
}

/** `limit` and `next` of a list. Throws 'malformed'. */
export function pageOf(query: Query): Page {
  const limit = wholeNumberOf(query, 'limit');
  const next = textOf(query, 'next');
  if (limit === 0) throw malformed('Invalid limit');
  return {
    limit: limit === undefined ? undefined : Math.min(limit, LIMITS.pageMax),
    after: next === undefined ? undefined : keyOf(next),
  };
}

/** The key inside an opaque `next`. */
function keyOf(next: string): string {
  const key = Buffer.from(next, 'base64url').toString('utf8');
  const isOurs = key !== '' && Buffer.from(key).toString('base64url') === next;
  if (!isOurs) throw malformed('Invalid next');
  return key;
}

function consistencyOf(query: Query): Consistency {
  const maxStale = textOf(query, 'max_stale');
  const maxStaleMs = maxStale === undefined ? 0 : durationMs(maxStale);
  if (maxStaleMs === undefined) throw malformed(`Invalid max_stale value "${maxStale}"`);
  const isStale = query.has('stale') || maxStaleMs > 0;
  const isConsistent = query.has('consistent');
  if (isStale && isConsistent) {
    throw malformed(`Cannot specify ?stale with ?consistent, ${CONFLICT}`);
  }
  if (query.has('cached') && isConsistent) {
    throw malformed(`Cannot specify ?cached with ?consistent, ${CONFLICT}`);
  }
  if (isStale) return 'stale';
  return isConsistent ? 'consistent' : 'default';
}

/** So many parts a `Cache-Control` may have: more than there are names for. */
const CACHE_CONTROL_MAX = 100;

/** Nothing here is cached; a value that cannot be read is refused all the same. */
function requireReadableCacheControl(header: string | undefined): void {
  if (header === undefined) return;
  const parts = header.split(',', CACHE_CONTROL_MAX + 1);
  if (parts.length > CACHE_CONTROL_MAX) throw malformed('Invalid Cache-Control header.');
  for (const part of parts) {
    const [name = '', value = ''] = part.trim().toLowerCase().split('=', 2);
    const isNumeric = name === 'max-age' || name === 'stale-if-error';
    if (isNumeric && !/^[+-]?\d+$/.test(value)) throw malformed('Invalid Cache-Control header.');
  }
}

/** Whether what is read or changed could be in a partition, if there were any. */
function isOfObjects({ namespaced, kind, access }: Endpoint): boolean {
  return namespaced || (kind !== 'plain' && access !== 'none');
}

/** Where namespaces are off, none may be named. */
function requireNoNamespaceWhileOff(exchange: Exchange): void {
  const { query, request, parts } = exchange;
  if (parts.settings.namespaces) return;
  const off = 'Namespaces are not enabled';
  refuseParameter(query, 'ns', off);
  refuseHeader(exchange, { name: 'Namespace', value: namespaceHeader(request) }, off);
  refuseParameter(query, 'authmethod-ns', off);
}

/** There are none, and to look past a name would widen what a request means. */
function requireNoPartition(exchange: Exchange): void {
  const { query, request } = exchange;
  refuseParameter(query, 'partition', 'Partitions are not enabled');
  const partition = { name: 'Partition', value: partitionHeader(request) };
  refuseHeader(exchange, partition, 'Partitions are not enabled');
}

function refuseParameter(query: Query, name: string, why: string): void {
  if (textOf(query, name) === undefined) return;
  throw malformed(`Invalid query parameter: "${name}" - ${why}`);
}

function refuseHeader(
  exchange: Exchange,
  header: { readonly name: string; readonly value: string | undefined },
  why: string,
): void {
  if (header.value === undefined) return;
  const prefix = HEADER_PREFIXES[exchange.dialect === 'consul' ? 1 : 0];
  throw malformed(`Invalid header: "${prefix}${header.name}" - ${why}`);
}

/**
 * The first source that has a secret: parameter, header, bearer, configuration. That of the server is put in here
 * alone: it goes along as if the client had sent it, and whoever answers for this server has none to put in.
 */
function secretOf(exchange: Exchange): SecretId | undefined {
  const { headers } = exchange.request;
  const secret =
    textOf(exchange.query, 'token') ??
    tokenHeader(exchange.request) ??
    bearerOf(headers.authorization) ??
    exchange.parts.defaultToken.secret;
  return secret as SecretId | undefined;
}

const BEARER = /^bearer +([^ ]+)/i;

/** The first word behind the scheme `Bearer`, in any letter case; any number of spaces parts the two. */
function bearerOf(header: string | undefined): string | undefined {
  return header === undefined ? undefined : BEARER.exec(header)?.[1];
}

/**
 * A parameter that is a place in the global log. Throws 'malformed' with its name, as do those below: an
 * empty value is none, and no way to say that the condition does not matter.
 */
export function positionOf(query: Query, name: string): Position | undefined {
  const text = query.get(name);
  if (text === undefined) return undefined;
  const parts = /^(\d{1,15})\.(\d{1,15})$/.exec(text);
  if (parts === null) throw malformed(`Invalid ${name}`);
  return { epoch: Number(parts[1]), seq: Number(parts[2]) };
}

/** A parameter that counts or numbers something. */
export function wholeNumberOf(query: Query, name: string): number | undefined {
  const text = query.get(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw malformed(`Invalid ${name}`);
  return Number(text);
}

function requestIdOf(request: RawRequest): string | undefined {
  const idempotencyKey = request.headers['idempotency-key'];
  const id =
    requestIdHeader(request) ?? (typeof idempotencyKey === 'string' ? idempotencyKey : undefined);
  if (id === undefined || id === '') return undefined;
  if (id.length > REQUEST_ID_MAX) throw malformed('Invalid request id');
  return id;
}

function ackOf(query: Query): AckLevel | undefined {
  const text = query.get('ack');
  if (text === undefined || text === 'primary' || text === 'majority' || text === 'all')
    return text;
  throw malformed('Invalid ack');
}

function ackTimeoutOf(query: Query): number | undefined {
  const text = query.get('ack_timeout');
  if (text === undefined) return undefined;
  const ms = durationMs(text);
  if (ms === undefined || ms <= 0) throw malformed('Invalid ack_timeout');
  return Math.min(ms, ACK_TIMEOUT_MAX_MS);
}

/** Milliseconds of duration text; what is above zero stays above zero. */
function durationMs(text: string): number | undefined {
  const ns = durationNsOf(text);
  return ns === undefined ? undefined : Number(ns) / 1e6;
}

function isUnsigned64(text: string): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
}

function malformed(message: string): AclError {
  return new AclError('malformed', message);
}
