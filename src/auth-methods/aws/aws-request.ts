// The signed requests inside an aws-iam bearer: `sts:GetCallerIdentity`, and inside its headers, if
// the method wants details, `iam:GetRole` or `iam:GetUser` (compatibility.md 7.5). The client chose
// every byte, so all of it is checked before any of it is sent: where it goes, what it asks for, and
// which headers travel.

import { isRecord } from '../outside/remote.ts';
import { refused } from '../refused.ts';

const SERVER_ID_HEADER = 'x-consul-iam-serverid';
const ENTITY_HEADER = 'x-consul-iam-getentity-';
const HEADERS_MAX = 64;

export interface SignedRequest {
  readonly url: URL;
  /** Names in lower case; `host` and `content-length` are left out. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
}

export interface Endpoint {
  readonly service: 'sts' | 'iam';
  /** Where the operator wants requests to go; undefined: where AWS answers. */
  readonly url: URL | undefined;
}

const ALLOWED_AMZ_HEADERS: ReadonlySet<string> = new Set([
  'x-amz-algorithm',
  'x-amz-content-sha256',
  'x-amz-credential',
  'x-amz-date',
  'x-amz-security-token',
  'x-amz-signature',
  'x-amz-signedheaders',
  'x-amz-user-agent',
]);
/** They steer the connection or the form of the answer, and are no business of the client. */
const REFUSED_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Reads the outer request of a bearer; throws AclError('login-refused') for a wrong structure. */
export function callerIdentityRequest(
  bearer: string,
  config: { readonly endpoint: Endpoint; readonly allowedHeaders: readonly string[] },
): SignedRequest {
  const fields = parseJsonObject(bearer, 'the bearer token');
  const request = requestOf({
    method: fields.iam_http_request_method,
    url: base64Text(fields, 'iam_request_url'),
    headers: parseJsonObject(base64Text(fields, 'iam_request_headers'), 'iam_request_headers'),
    body: base64Text(fields, 'iam_request_body'),
    endpoint: config.endpoint,
  });
  const form = formOf(request.body, ['Action', 'Version']);
  if (form.get('Action') !== 'GetCallerIdentity') {
    throw refused('iam_request_body error: Action must be GetCallerIdentity');
  }
  checkAmzHeaders(request.headers, config.allowedHeaders);
  return request;
}

/** Reads the entity request inside the headers of the outer one. */
export function entityRequest(
  outer: SignedRequest,
  config: { readonly endpoint: Endpoint; readonly allowedHeaders: readonly string[] },
): SignedRequest & { readonly action: 'GetRole' | 'GetUser' } {
  const part = (name: string) => onlyHeader(outer, `${ENTITY_HEADER}${name}`);
  const request = requestOf({
    method: part('method'),
    url: part('url'),
    headers: parseJsonObject(part('headers'), `${ENTITY_HEADER}headers`),
    body: part('body'),
    endpoint: config.endpoint,
  });
  checkAmzHeaders(request.headers, config.allowedHeaders);
  return { ...request, action: entityActionOf(request.body) };
}

/**
 * Throws unless the request carries `value` as its server id and the signature covers that header:
 * a request that was signed for another service must not be replayed here.
 */
export function checkServerId(request: SignedRequest, value: string): void {
  if (onlyHeader(request, SERVER_ID_HEADER) !== value) {
    throw refused('the server id in the signed request is not the expected one');
  }
  const signed = AUTHORIZATION.exec(onlyHeader(request, 'authorization'))?.[1];
  if (signed === undefined)
    throw refused('the Authorization header is not as AWS clients write it');
  if (!signed.split(';').includes(SERVER_ID_HEADER)) {
    throw refused('the server id header is not signed');
  }
}

/**
 * Signature version 4, with each part once and in its place. What AWS might read otherwise than this, such as a
 * second list of signed headers, must not decide what was signed.
 */
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=[^,\s=]+, ?SignedHeaders=([a-z0-9;-]+), ?Signature=[0-9a-f]{64}$/;

function onlyHeader({ headers }: SignedRequest, name: string): string {
  const [value, ...others] = headers.get(name) ?? [];
  if (value === undefined) throw refused(`missing header "${name}"`);
  if (others.length > 0) throw refused(`header "${name}" must have one value`);
  return value;
}

function requestOf(raw: {
  readonly method: unknown;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
  readonly endpoint: Endpoint;
}): SignedRequest {
  if (raw.method !== 'POST') throw refused('the signed request must be a POST');
  const url = checkUrl(raw.url, raw.endpoint);
  const headers = headersOf(raw.headers);
  const [host = url.host] = headers.get('host') ?? [];
  // The signature covers Host, so it travels as it was signed; but only as the URL has it.
  if (host.toLowerCase() !== url.host) throw refused('the Host header is not the host of the URL');
  headers.delete('host');
  headers.delete('content-length');
  return { url, headers, body: raw.body };
}

/**
 * The host must be one where AWS runs the service in some region, or the operator's endpoint; path
 * and query could turn the request into another one, so there are none.
 */
function checkUrl(text: string, { service, url: pinned }: Endpoint): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw refused(`the ${service} URL is not valid`);
  const isPinned = pinned !== undefined && url.origin === pinned.origin;
  if (
    !isPinned &&
    (url.protocol !== 'https:' || url.port !== '' || !isAwsHost(service, url.hostname))
  ) {
    throw refused(`the ${service} URL does not lead to an allowed host`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw refused(`the ${service} URL must be a host alone`);
  }
  if (url.pathname !== '/' && url.pathname !== pinned?.pathname) {
    throw refused(`the ${service} URL must be a host alone`);
  }
  return url;
}

/** What follows `sts` or `iam`: perhaps FIPS, perhaps a region. */
const AWS_HOST_BEHIND_SERVICE =
  /^(?:-fips)?(?:\.(?:us-gov|[a-z]{2}(?:-[a-z]+)+-[0-9]{1,2}))?\.amazonaws\.com(?:\.cn)?$/;

function isAwsHost(service: 'sts' | 'iam', host: string): boolean {
  return host.startsWith(service) && AWS_HOST_BEHIND_SERVICE.test(host.slice(service.length));
}

function headersOf(raw: Readonly<Record<string, unknown>>): Map<string, readonly string[]> {
  const headers = new Map<string, readonly string[]>();
  for (const [given, value] of Object.entries(raw)) {
    const name = given.toLowerCase();
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (
      !/^[a-z0-9-]{1,128}$/.test(name) ||
      headers.has(name) ||
      REFUSED_HEADERS.has(name) ||
      name.startsWith('proxy-')
    ) {
      throw refused('invalid request header name');
    }
    headers.set(name, values.map(headerValue));
  }
  if (headers.size > HEADERS_MAX) throw refused('too many request headers');
  return headers;
}

function headerValue(value: unknown): string {
  if (typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value)) return value;
  throw refused('invalid request header value');
}

function checkAmzHeaders(
  headers: ReadonlyMap<string, unknown>,
  alsoAllowed: readonly string[],
): void {
  const allowed = new Set(alsoAllowed.map((name) => name.toLowerCase()));
  for (const name of headers.keys()) {
    if (!name.startsWith('x-amz-')) continue;
    if (!ALLOWED_AMZ_HEADERS.has(name) && !allowed.has(name)) {
      throw refused(`invalid request header: ${name}`);
    }
  }
}

function entityActionOf(body: string): 'GetRole' | 'GetUser' {
  const form = formOf(body, ['Action', 'Version', 'RoleName', 'UserName']);
  const action = form.get('Action');
  if (action === 'GetRole' && form.has('RoleName') && !form.has('UserName')) return action;
  if (action === 'GetUser' && form.has('UserName') && !form.has('RoleName')) return action;
  throw refused('the entity request must be GetRole or GetUser');
}

function formOf(body: string, allowed: readonly string[]): URLSearchParams {
  const form = new URLSearchParams(body);
  const names = [...form.keys()];
  if (names.some((name) => !allowed.includes(name)) || new Set(names).size !== names.length) {
    throw refused('the body of the signed request has unexpected fields');
  }
  return form;
}

function base64Text(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(value)) {
    throw refused(`${name} is not base64`);
  }
  return Buffer.from(value, 'base64').toString('utf8');
}

function parseJsonObject(text: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which holds a signature; so it is not kept.
    throw refused(`${what} is not JSON`);
  }
  if (!isRecord(value)) throw refused(`${what} is not a JSON object`);
  return value;
}
