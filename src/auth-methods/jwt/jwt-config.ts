// The Config of `jwt` and `oidc`, which share one vocabulary: each type refuses the keys of the
// other by name (compatibility.md 7.2). Decoding is pure; whoever writes a method also contacts the
// URLs in it.

import { messageOf } from '../../../cluster/base/message-of.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import type { AclError } from '../../acl/error.ts';
import { ConfigReader, invalidConfig } from '../config-reader.ts';
import type { AttributeNames } from '../identity.ts';
import type { Location } from '../outside/providers.ts';
import type { ClaimMapping, Leeways } from './claims.ts';
import {
  checkCertificates,
  type SignatureAlgorithm,
  signatureAlgorithmOf,
} from './signing-keys.ts';

export interface JwtConfig {
  readonly keys:
    | { readonly kind: 'static'; readonly pems: readonly string[] }
    | { readonly kind: 'jwks' | 'discovery'; readonly location: Location };
  /** Empty: not checked. */
  readonly boundIssuer: string;
  readonly boundAudiences: readonly string[];
  /** Empty: what the provider says. Only discovery enforces it. */
  readonly algorithms: readonly SignatureAlgorithm[];
  readonly mapping: ClaimMapping;
  readonly leeways: Leeways;
}

export interface OidcConfig {
  readonly discovery: Location;
  readonly clientId: string;
  readonly client:
    | { readonly kind: 'secret'; readonly secret: string }
    | {
        readonly kind: 'assertion';
        readonly audience: readonly string[];
        readonly privateKeyPem: string;
        readonly algorithm: SignatureAlgorithm;
      };
  readonly allowedRedirectUris: readonly string[];
  readonly scopes: readonly string[];
  readonly acrValues: readonly string[];
  readonly usePkce: boolean;
  readonly verboseLogging: boolean;
  readonly boundAudiences: readonly string[];
  readonly algorithms: readonly SignatureAlgorithm[];
  readonly mapping: ClaimMapping;
}

const SHARED_KEYS = [
  'OIDCDiscoveryURL',
  'OIDCDiscoveryCACert',
  'BoundAudiences',
  'JWTSupportedAlgs',
  'ClaimMappings',
  'ListClaimMappings',
] as const;
const JWT_ONLY_KEYS = [
  'JWTValidationPubKeys',
  'JWKSURL',
  'JWKSCACert',
  'BoundIssuer',
  'ExpirationLeeway',
  'NotBeforeLeeway',
  'ClockSkewLeeway',
] as const;
const OIDC_ONLY_KEYS = [
  'OIDCClientID',
  'OIDCClientSecret',
  'OIDCClientAssertion',
  'AllowedRedirectURIs',
  'OIDCScopes',
  'OIDCACRValues',
  'OIDCClientUsePKCE',
  'VerboseOIDCLogging',
] as const;
/** Logout at the provider, which newer deployed clients name in every configuration, mostly without a value. */
const LOGOUT_KEYS = ['OIDCPostLogoutRedirectURIs', 'OIDCLogoutURL'] as const;
const KEYS = [...SHARED_KEYS, ...JWT_ONLY_KEYS, ...OIDC_ONLY_KEYS, ...LOGOUT_KEYS] as const;
type Key = (typeof KEYS)[number];
type Reader = ConfigReader<Key>;
type RawConfig = AuthMethod['config'];

/** Decodes the Config of a `jwt` method; throws AclError('invalid') with the prescribed texts. */
export function decodeJwtConfig(config: RawConfig): JwtConfig {
  const reader = new ConfigReader(config, KEYS);
  refuseKeys(reader, [...OIDC_ONLY_KEYS, ...LOGOUT_KEYS], 'jwt');
  return {
    keys: decodeKeys(reader),
    boundIssuer: reader.string('BoundIssuer'),
    boundAudiences: reader.strings('BoundAudiences'),
    algorithms: decodeAlgorithms(reader),
    mapping: decodeMapping(reader),
    leeways: {
      expirationNs: reader.integer('ExpirationLeeway'),
      notBeforeNs: reader.integer('NotBeforeLeeway'),
      clockSkewNs: reader.integer('ClockSkewLeeway'),
    },
  };
}

/** Decodes the Config of an `oidc` method; throws AclError('invalid') with the prescribed texts. */
export function decodeOidcConfig(config: RawConfig): OidcConfig {
  const reader = new ConfigReader(config, KEYS);
  refuseKeys(reader, JWT_ONLY_KEYS, 'oidc');
  refuseLogoutKeys(reader);
  requireKey(reader, 'OIDCDiscoveryURL');
  requireKey(reader, 'OIDCClientID');
  const client = decodeClient(reader);
  requireKey(reader, 'AllowedRedirectURIs');
  return {
    discovery: decodeDiscovery(reader),
    clientId: reader.string('OIDCClientID'),
    client,
    allowedRedirectUris: reader.strings('AllowedRedirectURIs'),
    scopes: reader.strings('OIDCScopes'),
    acrValues: reader.strings('OIDCACRValues'),
    usePkce: reader.bool('OIDCClientUsePKCE', true),
    verboseLogging: reader.bool('VerboseOIDCLogging', false),
    boundAudiences: reader.strings('BoundAudiences'),
    algorithms: decodeAlgorithms(reader),
    mapping: decodeMapping(reader),
  };
}

/** The attributes that an identity of such a method can have. */
export function mappedAttributeNames({ strings }: ClaimMapping): AttributeNames {
  return {
    selectable: { strings: [], stringMaps: ['value'], listMaps: ['list'] },
    interpolatable: [...strings.values()].map((target) => `value.${target}`),
  };
}

function refuseKeys(reader: Reader, keys: readonly Key[], type: 'jwt' | 'oidc'): void {
  const unfit = keys.find((key) => reader.has(key));
  if (unfit !== undefined) throw invalidConfig(`'${unfit}' must not be set for type "${type}"`);
}

/** Left out in silence they would let somebody believe that a logout ends the session at the provider, too. */
function refuseLogoutKeys(reader: Reader): void {
  const key = LOGOUT_KEYS.find((one) => reader.has(one));
  if (key === undefined) return;
  throw invalidConfig(
    `'${key}' is not supported: a logout ends the token, and no session at the provider`,
  );
}

function requireKey(reader: Reader, key: Key): void {
  if (!reader.has(key)) throw invalidConfig(`'${key}' must be set for type "oidc"`);
}

function decodeKeys(reader: Reader): JwtConfig['keys'] {
  const sources = (['JWTValidationPubKeys', 'JWKSURL', 'OIDCDiscoveryURL'] as const).filter((key) =>
    reader.has(key),
  );
  if (sources.length !== 1) {
    throw invalidConfig(
      `exactly one of 'JWTValidationPubKeys', 'JWKSURL', or 'OIDCDiscoveryURL' must be set for type "jwt"`,
    );
  }
  requireTogether(reader, 'JWKSCACert', 'JWKSURL');
  const discovery = decodeDiscovery(reader);
  if (discovery.url !== '') return { kind: 'discovery', location: discovery };
  if (!reader.has('JWKSURL')) {
    return { kind: 'static', pems: reader.strings('JWTValidationPubKeys') };
  }
  const location = { url: reader.string('JWKSURL'), caPem: decodeCa(reader, 'JWKSCACert') };
  return { kind: 'jwks', location };
}

function decodeDiscovery(reader: Reader): Location {
  requireTogether(reader, 'OIDCDiscoveryCACert', 'OIDCDiscoveryURL');
  const caPem = decodeCa(reader, 'OIDCDiscoveryCACert');
  return { url: reader.string('OIDCDiscoveryURL'), caPem };
}

function requireTogether(reader: Reader, key: Key, needed: Key): void {
  if (!reader.has(key) || reader.has(needed)) return;
  throw invalidConfig(`'${key}' should not be set unless '${needed}' is set`);
}

function decodeCa(reader: Reader, key: Key): string {
  const pem = reader.string(key);
  if (pem === '') return '';
  try {
    checkCertificates(pem);
  } catch (error) {
    throw invalidConfig(`error parsing ${key}: ${messageOf(error)}`);
  }
  return pem;
}

function decodeAlgorithms(reader: Reader): readonly SignatureAlgorithm[] {
  return reader.strings('JWTSupportedAlgs').map((name) => {
    const algorithm = signatureAlgorithmOf(name);
    if (algorithm === undefined) throw invalidConfig(`Invalid supported algorithm: ${name}`);
    return algorithm;
  });
}

function decodeMapping(reader: Reader): ClaimMapping {
  const strings = decodeTargets(reader, 'ClaimMappings');
  const lists = decodeTargets(reader, 'ListClaimMappings');
  return { strings, lists };
}

function decodeTargets(
  reader: Reader,
  key: 'ClaimMappings' | 'ListClaimMappings',
): ReadonlyMap<string, string> {
  const mapping = reader.stringMap(key);
  const seen = new Set<string>();
  for (const target of mapping.values()) {
    if (seen.has(target)) {
      throw invalidConfig(`${key} contains multiple mappings for key ${JSON.stringify(target)}`);
    }
    seen.add(target);
  }
  return mapping;
}

function decodeClient(reader: Reader): OidcConfig['client'] {
  const assertion = reader.nested('OIDCClientAssertion', [
    'Audience',
    'PrivateKey',
    'KeyAlgorithm',
  ]);
  if (assertion === undefined) {
    requireKey(reader, 'OIDCClientSecret');
    return { kind: 'secret', secret: reader.string('OIDCClientSecret') };
  }
  if (reader.has('OIDCClientSecret')) {
    throw invalidConfig(`only one of 'OIDCClientSecret' and 'OIDCClientAssertion' may be set`);
  }
  const audience = assertion.strings('Audience');
  if (audience.every((name) => name === '')) throw lacking('Audience');
  const privateKeyPem = assertion.nested('PrivateKey', ['PemKey'])?.string('PemKey') ?? '';
  if (privateKeyPem === '') throw lacking('PrivateKey.PemKey');
  const name = assertion.string('KeyAlgorithm') || 'RS256';
  const algorithm = signatureAlgorithmOf(name);
  if (algorithm === undefined) throw invalidConfig(`Invalid supported algorithm: ${name}`);
  return { kind: 'assertion', audience, privateKeyPem, algorithm };
}

function lacking(key: string): AclError {
  return invalidConfig(`'OIDCClientAssertion.${key}' must be set and not be empty`);
}
