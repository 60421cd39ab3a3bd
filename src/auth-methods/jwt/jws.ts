// Verifies the signature of a compact JWS against a set of public keys. The algorithm must be one
// that the caller allows and the key must be of that algorithm's family; an unknown key id leads to
// one reload of the key set. Says nothing about claims; claims.ts judges them.

import { compactVerify, decodeProtectedHeader } from 'jose';
import { isRecord } from '../outside/remote.ts';
import { checkBearerLength, refused } from '../refused.ts';
import type { InTurn } from './signature-checks.ts';
import {
  keyFits,
  type PublicKey,
  type SignatureAlgorithm,
  signatureAlgorithmOf,
} from './signing-keys.ts';

export type Claims = Readonly<Record<string, unknown>>;

export interface KeySource {
  current(): Promise<readonly PublicKey[]>;
  /** Asks again; undefined when it was asked too short a while ago, or when keys never change. */
  renewed(): Promise<readonly PublicKey[] | undefined>;
}

export interface SignedToken {
  readonly bearer: string;
  readonly source: KeySource;
  readonly allowed: readonly SignatureAlgorithm[];
  readonly inTurn: InTurn;
}

/**
 * The claims of a token whose signature holds. Rejects with AclError: 'login-refused' otherwise,
 * 'unavailable' when its turn does not come.
 */
export async function verifySignature(token: SignedToken): Promise<Claims> {
  const { bearer, source, allowed, inTurn } = token;
  checkBearerLength(bearer);
  const header = headerOf(bearer);
  const algorithm = signatureAlgorithmOf(header.alg);
  if (algorithm === undefined || !allowed.includes(algorithm)) {
    throw refused('the token is signed with an algorithm that is not accepted');
  }
  const attempt: Attempt = { bearer, algorithm, keyId: header.kid, inTurn };
  const keys = await source.current();
  const payload = (await verifyWithAny(attempt, keys)) ?? (await retry(attempt, keys, source));
  if (payload === undefined) {
    throw refused('no known key successfully validated the token signature');
  }
  return claimsOf(payload);
}

interface Attempt {
  readonly bearer: string;
  readonly algorithm: SignatureAlgorithm;
  readonly keyId: string | undefined;
  readonly inTurn: InTurn;
}

function headerOf(bearer: string): { readonly alg: unknown; readonly kid: string | undefined } {
  let header: ReturnType<typeof decodeProtectedHeader>;
  try {
    header = decodeProtectedHeader(bearer);
  } catch (error) {
    throw refused('the bearer token is not a JSON Web Token', error);
  }
  // No extension is understood here, and one marked critical must be.
  if (header.crit !== undefined) throw refused('the token has critical header extensions');
  const { alg, kid } = header;
  return { alg, kid: typeof kid === 'string' && kid !== '' ? kid : undefined };
}

/** A key that was named and known and did not fit is an answer; asking again would not change it. */
async function retry(
  attempt: Attempt,
  keys: readonly PublicKey[],
  source: KeySource,
): Promise<Uint8Array | undefined> {
  const { keyId } = attempt;
  if (keyId !== undefined && keys.some((key) => key.keyId === keyId)) return undefined;
  const renewed = await source.renewed();
  return renewed === undefined ? undefined : verifyWithAny(attempt, renewed);
}

async function verifyWithAny(
  { bearer, algorithm, keyId, inTurn }: Attempt,
  keys: readonly PublicKey[],
): Promise<Uint8Array | undefined> {
  const named = keyId === undefined ? [] : keys.filter((key) => key.keyId === keyId);
  const anonymous = keys.filter((key) => keyId === undefined || key.keyId === undefined);
  for (const { jwk } of (named.length > 0 ? named : anonymous).filter((key) =>
    keyFits(key, algorithm),
  )) {
    const options = { algorithms: [algorithm] };
    const verified = await inTurn(() =>
      // The very object: what it was read into is kept with it, and reading takes longer than checking. Whatever
      // the reason, a key that does not verify is one that did not sign.
      compactVerify(bearer, jwk, options).catch(() => undefined),
    );
    if (verified !== undefined) return verified.payload;
  }
  return undefined;
}

function claimsOf(payload: Uint8Array): Claims {
  let claims: unknown;
  try {
    claims = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch (error) {
    throw refused('the claims of the token are not JSON', error);
  }
  if (!isRecord(claims)) throw refused('the claims of the token are not a JSON object');
  return claims;
}
