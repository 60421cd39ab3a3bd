// The `oidc` auth method: the authorization code flow with state, nonce and PKCE. Between its two
// halves nothing stays in memory here: `authUrl` returns a pending record, the caller keeps it under
// its state and hands it to `callback` once. Time and randomness come from the surroundings, which is
// why the flow is written out instead of left to a library with a clock of its own.

import { base64url, importPKCS8 } from 'jose';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import { invalid } from '../../acl/error.ts';
import type { AuthMethodValidator } from '../auth-method-validator.ts';
import { invalidConfig } from '../config-reader.ts';
import type { Identity } from '../identity.ts';
import { audiencesOf, checkAudience, checkTimes, claimOf } from '../jwt/claims.ts';
import type { Claims } from '../jwt/jws.ts';
import { checkDiscoveryUrl, identityOf, type JwtContext, verifyByDiscovery } from '../jwt/jwt.ts';
import { decodeOidcConfig, mappedAttributeNames, type OidcConfig } from '../jwt/jwt-config.ts';
import type { ProviderMetadata } from '../outside/providers.ts';
import { loginUnavailable, RemoteFailure } from '../outside/remote.ts';
import type { Surroundings } from '../outside/surroundings.ts';
import { refused } from '../refused.ts';
import { exchangeCode, type OidcSession, userInfo } from './oidc-provider.ts';

/** A login must be finished this long after it was begun. */
export const OIDC_PENDING_MS = 300_000;
/** Of redirect URI, nonce and metadata together, in UTF-16 units: every server stores them, for anybody. */
const OIDC_GIVEN_LENGTH_MAX = 8192;
/** Of an RSA key that signs for each login: one of twice as many bits takes eight times as long. */
const SIGNING_BITS_MAX = 4096;
const DEFAULT_LEEWAYS = { expirationNs: 0, notBeforeNs: 0, clockSkewNs: 0 };

/** A login that waits for its callback. Plain data; `pkceVerifier` and `nonce` are secrets. */
export interface PendingLogin {
  /** The method at the time of the start; a later method of the same name is another one. */
  readonly method: {
    readonly name: string;
    readonly namespace: string;
    readonly createIndex: number;
  };
  readonly state: string;
  readonly nonce: string;
  /** Empty when the method does without PKCE. */
  readonly pkceVerifier: string;
  readonly redirectUri: string;
  /** Known only to the client that began; empty when it gave none. */
  readonly clientNonce: string;
  readonly meta: Readonly<Record<string, string>>;
  readonly expiresAtMs: number;
}

export interface OidcStart {
  readonly authUrl: string;
  readonly pending: PendingLogin;
}

export interface OidcFlow {
  /**
   * Begins a login. Rejects with `invalid` for a redirect URI that the method does not allow, and for
   * more text than OIDC_GIVEN_LENGTH_MAX.
   */
  authUrl(request: {
    readonly method: AuthMethod;
    readonly redirectUri: string;
    readonly clientNonce: string;
    readonly meta: Readonly<Record<string, string>>;
  }): Promise<OidcStart>;
  /**
   * Ends a login. `pending` is what the caller kept under `state`, and undefined when it kept
   * nothing; the caller must forget it before it calls, so that a state works once. Rejects with
   * `login-refused` or `unavailable`.
   */
  callback(request: {
    readonly method: AuthMethod;
    readonly pending: PendingLogin | undefined;
    readonly state: string;
    readonly code: string;
    readonly clientNonce: string;
  }): Promise<Identity>;
}

export function createOidc(context: JwtContext): AuthMethodValidator {
  return {
    checkConfig: async (method) => {
      const config = decodeOidcConfig(method.config);
      await checkPrivateKey(config);
      await checkDiscoveryUrl(context.providers, config.discovery);
    },
    attributeNames: ({ config }) => mappedAttributeNames(decodeOidcConfig(config).mapping),
    validate: ({ name }) =>
      Promise.reject(refused(`auth method ${JSON.stringify(name)} needs the OIDC login flow`)),
  };
}

export function createOidcFlow(context: JwtContext): OidcFlow {
  return {
    authUrl: ({ method, ...request }) =>
      withProvider(context, method, (session) => begin(session, request)),
    callback: ({ method, ...request }) => {
      const { pending } = request;
      const nowMs = context.outside.clock.wallMs();
      if (pending === undefined || !isLive(pending, { ...request, method, nowMs })) {
        return Promise.reject(refused('the login state is unknown or has expired'));
      }
      return withProvider(context, method, (session) =>
        finish(session, context, { pending, code: request.code }),
      );
    },
  };
}

async function checkPrivateKey({ client }: OidcConfig): Promise<void> {
  if (client.kind === 'secret') return;
  const { algorithm } = await importPKCS8(client.privateKeyPem, client.algorithm).catch(() => {
    // What the parser says may repeat parts of the key, so it is not kept.
    throw invalidConfig(
      `'OIDCClientAssertion' needs a PKCS #8 private key that fits ${client.algorithm}`,
    );
  });
  const bits = 'modulusLength' in algorithm ? Number(algorithm.modulusLength) : 0;
  if (bits <= SIGNING_BITS_MAX) return;
  throw invalidConfig(
    `the key of 'OIDCClientAssertion' may have at most ${SIGNING_BITS_MAX} bits, and has ${bits}`,
  );
}

async function withProvider<T>(
  context: JwtContext,
  method: AuthMethod,
  action: (session: OidcSession) => Promise<T>,
): Promise<T> {
  if (method.type !== 'oidc') {
    throw refused(`auth method ${JSON.stringify(method.name)} is not of type "oidc"`);
  }
  const config = decodeOidcConfig(method.config);
  try {
    const metadata = await context.providers.metadata(config.discovery, method);
    const outside = context.outside.of(method);
    return await action({ outside, method, config, metadata, inTurn: context.checks.of(method) });
  } catch (failure) {
    if (!(failure instanceof RemoteFailure)) throw failure;
    const what = 'the OIDC provider';
    throw loginUnavailable(context.outside, { method: method.name, what, failure });
  }
}

async function begin(
  { outside, method, config, metadata }: OidcSession,
  request: {
    readonly redirectUri: string;
    readonly clientNonce: string;
    readonly meta: Readonly<Record<string, string>>;
  },
): Promise<OidcStart> {
  const { random, nowMs } = clockAndRandom(outside);
  requireShort(request);
  if (!isAllowedRedirect(request.redirectUri, config.allowedRedirectUris)) {
    throw invalid(`unauthorized redirect_uri: ${request.redirectUri}`);
  }
  const { name, namespace, createIndex } = method;
  const pending: PendingLogin = {
    method: { name, namespace, createIndex },
    redirectUri: request.redirectUri,
    clientNonce: request.clientNonce,
    meta: request.meta,
    state: random(),
    nonce: random(),
    pkceVerifier: config.usePkce ? random() : '',
    expiresAtMs: nowMs + OIDC_PENDING_MS,
  };
  return { authUrl: authorizationUrl(config, metadata, pending), pending };
}

function requireShort(request: {
  readonly redirectUri: string;
  readonly clientNonce: string;
  readonly meta: Readonly<Record<string, string>>;
}): void {
  const given = [request.redirectUri, request.clientNonce, ...Object.entries(request.meta).flat()];
  const length = given.reduce((sum, text) => sum + text.length, 0);
  if (length <= OIDC_GIVEN_LENGTH_MAX) return;
  throw invalid(
    `RedirectURI, ClientNonce and Meta may have at most ${OIDC_GIVEN_LENGTH_MAX} characters together, and have ${length}`,
  );
}

function clockAndRandom(surroundings: Surroundings): { random(): string; nowMs: number } {
  const random = () => base64url.encode(surroundings.random.bytes(32));
  return { random, nowMs: surroundings.clock.wallMs() };
}

function authorizationUrl(
  config: OidcConfig,
  metadata: ProviderMetadata,
  pending: PendingLogin,
): string {
  if (metadata.authorizationEndpoint === undefined) {
    throw new RemoteFailure('the discovery document has no authorization_endpoint');
  }
  const url = new URL(metadata.authorizationEndpoint);
  const parameters: Record<string, string> = {
    response_type: 'code',
    client_id: config.clientId,
    redirect_uri: pending.redirectUri,
    scope: [...new Set(['openid', ...config.scopes])].join(' '),
    state: pending.state,
    nonce: pending.nonce,
  };
  if (config.acrValues.length > 0) parameters.acr_values = config.acrValues.join(' ');
  if (pending.pkceVerifier !== '') {
    // RFC 7636 4.2.
    parameters.code_challenge = base64url.encode(sha256(Buffer.from(pending.pkceVerifier, 'utf8')));
    parameters.code_challenge_method = 'S256';
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Exact, except that a native client on the loopback may choose its port (RFC 8252, 7.3). */
function isAllowedRedirect(uri: string, allowed: readonly string[]): boolean {
  if (allowed.includes(uri)) return true;
  const portless = portlessLoopbackOf(uri);
  return portless !== undefined && allowed.some((one) => portlessLoopbackOf(one) === portless);
}

function portlessLoopbackOf(uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined;
  const url = new URL(uri);
  if (url.protocol !== 'http:' || !LOOPBACK_HOSTS.has(url.hostname)) return undefined;
  url.port = '';
  return url.href;
}

function isLive(
  pending: PendingLogin,
  request: {
    readonly method: AuthMethod;
    readonly state: string;
    readonly clientNonce: string;
    readonly nowMs: number;
  },
): boolean {
  const { name, namespace, createIndex } = pending.method;
  return (
    request.state === pending.state &&
    request.clientNonce === pending.clientNonce &&
    request.nowMs < pending.expiresAtMs &&
    request.method.name === name &&
    request.method.namespace === namespace &&
    request.method.createIndex === createIndex
  );
}

async function finish(
  session: OidcSession,
  context: JwtContext,
  { pending, code }: { readonly pending: PendingLogin; readonly code: string },
): Promise<Identity> {
  const { outside, config, metadata } = session;
  // It may have been taken away since the login began.
  if (!isAllowedRedirect(pending.redirectUri, config.allowedRedirectUris)) {
    throw refused('the redirect_uri of this login is not allowed any more');
  }
  const tokens = await exchangeCode(session, { ...pending, code });
  const { method } = session;
  const provider = { method, location: config.discovery, algorithms: config.algorithms };
  const claims = await verifyByDiscovery(context, provider, tokens.idToken);
  if (claimOf(claims, 'exp') === undefined) throw refused('the ID token has no expiration time');
  checkTimes(claims, DEFAULT_LEEWAYS, outside.clock.wallMs());
  if (claimOf(claims, 'nonce') !== pending.nonce) throw refused('invalid nonce in the ID token');
  checkClient(claims, config);
  const all = { ...(await userInfo(session, tokens.accessToken, claims)), ...claims };
  if (config.verboseLogging) {
    const fields = { authMethod: method.name, issuer: metadata.issuer };
    outside.logger.info({ ...fields, claims: Object.keys(all) }, 'OIDC claims received');
  }
  return identityOf(all, config.mapping);
}

/** The token must be for this client, and for one of the bound audiences if there are any. */
function checkClient(claims: Claims, { clientId, boundAudiences }: OidcConfig): void {
  const audiences = audiencesOf(claims);
  if (!audiences.includes(clientId)) throw refused('the ID token is for another client (aud)');
  const authorized = claimOf(claims, 'azp');
  if (
    authorized === undefined
      ? audiences.length > 1 && boundAudiences.length === 0
      : authorized !== clientId
  ) {
    throw refused('the ID token is for another client (azp)');
  }
  checkAudience(claims, { bound: boundAudiences, strict: false });
}
