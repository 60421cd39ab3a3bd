// The answers to requests that no endpoint takes: wrong methods, unknown paths, paths to be cleaned.

import { AclError } from '../../acl/error.ts';
import { type Exchange, TEXT_TYPE } from '../wire/exchange.ts';
import { queryTextOf, unescapeQuery } from '../wire/query.ts';
import { targetPathOf } from './target-path.ts';

const UNKNOWN_ENDPOINT = 'Invalid URL path: not a recognized HTTP API endpoint\n';
const UNKNOWN_PATH =
  "Invalid URL path: if attempting to use the HTTP API, ensure the path starts with '/v1/'\n";

/** OPTIONS says what there is; every other method is refused with the same list. */
export function answerWrongMethod(exchange: Exchange, allow: string): void {
  const headers = ['Allow', allow];
  const method = exchange.request.method ?? '';
  if (method === 'OPTIONS') exchange.send({ status: 200, type: TEXT_TYPE, body: '', headers });
  else exchange.fail(new AclError('method-not-allowed', `method ${method} not allowed`), headers);
}

export function answerUnknownPath(exchange: Exchange): void {
  const isClose = exchange.target.includes('/v1/');
  exchange.fail(new AclError('no-such-endpoint', isClose ? UNKNOWN_ENDPOINT : UNKNOWN_PATH));
}

/** Reads may be sent anew as they were; other methods must keep method and body. */
export function answerRedirect(exchange: Exchange): void {
  const { target } = exchange;
  const found = targetPathOf(target);
  if (found.kind !== 'redirect') {
    refusePath(exchange);
    return;
  }
  try {
    const location = found.path + queryWithoutToken(target);
    const { method } = exchange.request;
    const status = method === 'GET' || method === 'HEAD' ? 301 : 307;
    exchange.send({ status, type: TEXT_TYPE, body: '', headers: ['Location', location] });
  } catch (error) {
    exchange.fail(error);
  }
}

/** A Location is logged in more places than a request: the secret is not repeated in it. */
function queryWithoutToken(target: string): string {
  const pairs = queryTextOf(target).split('&');
  const kept = pairs.filter((pair) => unescapeQuery(pair.split('=', 1)[0] ?? '') !== 'token');
  const query = kept.join('&');
  return query === '' ? '' : `?${query}`;
}

/** Characters that cannot be printed, or escapes that cannot be read. */
export function refusePath(exchange: Exchange): void {
  exchange.send({ status: 400, type: TEXT_TYPE, body: '' });
}
