// An identity provider on a free port, its keys, and tokens that it signs.

import {
  type CryptoKey,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose';
import type { AuthMethod } from '../../src/acl/auth-method.ts';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import { selfSigned } from '../support/certificates.ts';
import { type Loopback, START_MS, testSurroundings } from './loopback.ts';

export interface Key {
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly pem: string;
  readonly jwk: JWK;
}

export async function makeKey(alg: string, kid?: string): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = {
    ...(await exportJWK(publicKey)),
    ...(kid === undefined ? {} : { kid, alg, use: 'sig' }),
  };
  return { alg, privateKey, pem: await exportSPKI(publicKey), jwk };
}

export const RSA = await makeKey('RS256', 'rsa-1');

export const EC = await makeKey('ES256', 'ec-1');

export const TLS = selfSigned();

export const NOW_S = START_MS / 1000;

export const CLAIMS = {
  iss: 'https://issuer.test/',
  aud: ['conclave', 'other'],
  sub: 'r3qXcK2bix9eFECzsU3Sbmh0K16fatW6@clients',
  iat: NOW_S,
  exp: NOW_S + 300,
  first_name: 'jeff2',
  org: { primary: 'engineering' },
  'https://groups.test/groups': ['foo', 'bar'],
  admin: true,
  level: 7.9,
};

export function sign(
  key: Key,
  claims: JWTPayload = CLAIMS,
  header: Record<string, unknown> = {},
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: key.alg, ...header }).sign(key.privateKey);
}

export const validate = (method: AuthMethod, bearer: string) =>
  createAuthMethods(testSurroundings()).types[method.type].validate(method, bearer);

export function discovery(
  server: Loopback,
  keys: readonly JWK[],
  more: object = {},
): (path: string) => unknown {
  return (path) => {
    if (path === '/keys') return { keys };
    if (path !== '/.well-known/openid-configuration') return undefined;
    return {
      issuer: server.url,
      jwks_uri: `${server.url}/keys`,
      authorization_endpoint: `${server.url}/authorize?tenant=1`,
      token_endpoint: `${server.url}/token`,
      userinfo_endpoint: `${server.url}/userinfo`,
      id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
      ...more,
    };
  };
}

export const OIDC = {
  OIDCClientID: 'conclave',
  OIDCClientSecret: 's3cret:/?',
  AllowedRedirectURIs: [
    'http://localhost:8550/oidc/callback',
    'https://ui.test/cb',
    'http://intranet.test/cb',
    'https://localhost:8443/cb',
  ],
};
