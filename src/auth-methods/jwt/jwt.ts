// The `jwt` auth method: a bearer signed by a key that the operator configured, directly, through a
// JWKS URL or through OIDC discovery. Signature first, then times, issuer and audience, then claims
// become attributes (compatibility.md 7.2, 7.3).

import { messageOf } from '../../../cluster/base/message-of.ts';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import type { AuthMethodValidator } from '../auth-method-validator.ts';
import { invalidConfig } from '../config-reader.ts';
import type { Identity } from '../identity.ts';
import type { Outside } from '../outside/outside.ts';
import type { Location, Providers } from '../outside/providers.ts';
import { loginUnavailable, RemoteFailure } from '../outside/remote.ts';
import { checkBearerLength } from '../refused.ts';
import {
  attributesOf,
  type ClaimMapping,
  checkAudience,
  checkIssuer,
  checkTimes,
} from './claims.ts';
import { type Claims, type KeySource, verifySignature } from './jws.ts';
import { decodeJwtConfig, type JwtConfig, mappedAttributeNames } from './jwt-config.ts';
import type { PemKeys } from './pem-keys.ts';
import type { SignatureChecks } from './signature-checks.ts';
import {
  KEYS_MAX,
  type PublicKey,
  requireFewCertificates,
  SIGNATURE_ALGORITHMS,
  type SignatureAlgorithm,
} from './signing-keys.ts';

/** What `jwt` and `oidc` need beside their method: the world, and what all their logins share. */
export interface JwtContext {
  readonly outside: Outside;
  readonly providers: Providers;
  readonly pemKeys: PemKeys;
  readonly checks: SignatureChecks;
}

export function createJwt(context: JwtContext): AuthMethodValidator {
  return {
    checkConfig: ({ config }) => checkJwtConfig(decodeJwtConfig(config), context),
    attributeNames: ({ config }) => mappedAttributeNames(decodeJwtConfig(config).mapping),
    validate: (method, bearer) => validateJwt(context, method, bearer),
  };
}

async function checkJwtConfig(
  { keys }: JwtConfig,
  { providers, pemKeys }: JwtContext,
): Promise<void> {
  switch (keys.kind) {
    case 'static':
      requireFewKeys(keys.pems);
      await publicKeysOf(keys.pems, pemKeys);
      return;
    case 'jwks':
      await contact('JWKS', keys.location, (location) => providers.checkJwks(location));
      return;
    case 'discovery':
      await checkDiscoveryUrl(providers, keys.location);
      return;
    default:
      unreachable(keys);
  }
}

/** Contacts a discovery URL on write; throws AclError('invalid') when it does not answer as it must. */
export function checkDiscoveryUrl(providers: Providers, location: Location): Promise<void> {
  return contact('OIDCDiscovery', location, (issuer) => providers.checkDiscovery(issuer));
}

async function contact(
  what: 'JWKS' | 'OIDCDiscovery',
  location: Location,
  action: (location: Location) => Promise<void>,
): Promise<void> {
  try {
    requireFewCertificates(location.caPem);
  } catch (error) {
    throw invalidConfig(`error parsing ${what}CACert: ${messageOf(error)}`);
  }
  try {
    await action(location);
  } catch (error) {
    if (!(error instanceof RemoteFailure)) throw error;
    throw invalidConfig(`error checking ${what}URL: ${error.message}`);
  }
}

function requireFewKeys({ length }: readonly string[]): void {
  if (length <= KEYS_MAX) return;
  throw invalidConfig(
    `JWTValidationPubKeys may hold at most ${KEYS_MAX} keys, and holds ${length}`,
  );
}

function publicKeysOf(pems: readonly string[], known: PemKeys): Promise<readonly PublicKey[]> {
  return Promise.all(
    pems.map((pem, index) =>
      known.keyOf(pem).catch((error: unknown) => {
        const message = `error parsing public key JWTValidationPubKeys[${index}]`;
        throw invalidConfig(`${message}: ${messageOf(error)}`);
      }),
    ),
  );
}

async function validateJwt(
  context: JwtContext,
  method: AuthMethod,
  bearer: string,
): Promise<Identity> {
  checkBearerLength(bearer);
  const config = decodeJwtConfig(method.config);
  const claims = await verified(context, { method, config, bearer });
  checkTimes(claims, config.leeways, context.outside.clock.wallMs());
  if (config.boundIssuer !== '') checkIssuer(claims, config.boundIssuer);
  const strict = config.keys.kind !== 'discovery';
  checkAudience(claims, { bound: config.boundAudiences, strict });
  return identityOf(claims, config.mapping);
}

interface Attempt {
  readonly method: AuthMethod;
  readonly config: JwtConfig;
  readonly bearer: string;
}

async function verified(context: JwtContext, attempt: Attempt): Promise<Claims> {
  try {
    return await verifyBy(context, attempt);
  } catch (failure) {
    if (!(failure instanceof RemoteFailure)) throw failure;
    const what = 'the keys of the auth method';
    throw loginUnavailable(context.outside, { method: attempt.method.name, what, failure });
  }
}

async function verifyBy(
  context: JwtContext,
  { method, config: { keys, algorithms }, bearer }: Attempt,
): Promise<Claims> {
  const { providers, pemKeys, checks } = context;
  const token = { bearer, allowed: SIGNATURE_ALGORITHMS, inTurn: checks.of(method) };
  switch (keys.kind) {
    case 'static': {
      const source = fixedKeys(() => publicKeysOf(keys.pems, pemKeys));
      return verifySignature({ ...token, source });
    }
    case 'jwks':
      return verifySignature({ ...token, source: providers.keySource(keys.location, method) });
    case 'discovery':
      return verifyByDiscovery(context, { method, location: keys.location, algorithms }, bearer);
    default:
      return unreachable(keys);
  }
}

function fixedKeys(current: KeySource['current']): KeySource {
  return { current, renewed: () => Promise.resolve(undefined) };
}

/**
 * Verifies a token with the keys that a discovery document leads to; the token's issuer must be that
 * of the document. Without configured algorithms those count that the provider names, else RS256.
 */
export async function verifyByDiscovery(
  { providers, checks }: Pick<JwtContext, 'providers' | 'checks'>,
  provider: {
    readonly method: AuthMethod;
    readonly location: Location;
    readonly algorithms: readonly SignatureAlgorithm[];
  },
  bearer: string,
): Promise<Claims> {
  const { location, method } = provider;
  const metadata = await providers.metadata(location, method);
  const source = providers.keySource({ ...location, url: metadata.jwksUri }, method);
  const allowed = firstNonEmpty(provider.algorithms, metadata.algorithms) ?? ['RS256'];
  const inTurn = checks.of(method);
  const claims = await verifySignature({ bearer, source, allowed, inTurn });
  checkIssuer(claims, metadata.issuer);
  return claims;
}

function firstNonEmpty<T>(...lists: readonly (readonly T[])[]): readonly T[] | undefined {
  return lists.find((list) => list.length > 0);
}

/** The identity that mapped claims make; throws AclError('login-refused') for unfit claims. */
export function identityOf(claims: Claims, mapping: ClaimMapping): Identity {
  const selectable = attributesOf(claims, mapping);
  return { selectable, interpolatable: selectable.strings };
}
