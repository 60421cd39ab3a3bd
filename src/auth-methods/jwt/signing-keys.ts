// Public keys that may verify a signature, from PEM or from a JWKS. Only RSA and EC public keys come
// through, rebuilt from their public members: a symmetric key, or a public key that could be mistaken
// for one, never reaches the verifier. Which key fits which algorithm is decided here.

import { exportJWK, importSPKI, importX509 } from 'jose';
import { isRecord, RemoteFailure } from '../outside/remote.ts';

/** The algorithms that any auth method may accept. All asymmetric; `none` and HMAC are not among them. */
export const SIGNATURE_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'ES256',
  'ES384',
  'ES512',
  'PS256',
  'PS384',
  'PS512',
] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

export type PublicKey = {
  readonly keyId: string | undefined;
  /** The one algorithm that the key's owner allows; undefined allows all that fit. */
  readonly algorithm: string | undefined;
} & (
  | { readonly jwk: { readonly kty: 'RSA'; readonly n: string; readonly e: string } }
  | { readonly jwk: EcKey }
);

interface EcKey {
  readonly kty: 'EC';
  readonly crv: string;
  readonly x: string;
  readonly y: string;
}

/** So many keys a method may be given, and a key set may hold: a login tries those that fit. */
export const KEYS_MAX = 256;
const CURVES: Readonly<Record<string, string>> = {
  ES256: 'P-256',
  ES384: 'P-384',
  ES512: 'P-521',
};

/** The algorithm of that name, or undefined when it is none of the accepted ones. */
export function signatureAlgorithmOf(name: unknown): SignatureAlgorithm | undefined {
  return SIGNATURE_ALGORITHMS.find((algorithm) => algorithm === name);
}

/** True when `key` may verify a signature made with `algorithm`. */
export function keyFits(key: PublicKey, algorithm: SignatureAlgorithm): boolean {
  if (key.algorithm !== undefined && key.algorithm !== algorithm) return false;
  return key.jwk.kty === 'EC' ? CURVES[algorithm] === key.jwk.crv : !(algorithm in CURVES);
}

/** The usable keys of a JWKS; others (symmetric, for encryption, of unknown type) are left out. */
export function keysOfJwks(document: Readonly<Record<string, unknown>>): readonly PublicKey[] {
  const { keys } = document;
  if (!Array.isArray(keys)) throw new RemoteFailure('the answer is not a JSON Web Key Set');
  if (keys.length > KEYS_MAX) throw new RemoteFailure('the JSON Web Key Set is too large');
  return keys.flatMap((key: unknown) => publicKeyOf(key) ?? []);
}

function publicKeyOf(key: unknown): PublicKey | undefined {
  if (!isRecord(key)) return undefined;
  if (!isAbsent(key.use) && key.use !== 'sig') return undefined;
  const operations = key.key_ops;
  if (Array.isArray(operations) && !operations.includes('verify')) return undefined;
  const common = { keyId: textOf(key.kid), algorithm: textOf(key.alg) };
  const [n, e] = [textOf(key.n), textOf(key.e)];
  if (key.kty === 'RSA' && n !== undefined && e !== undefined) {
    return { ...common, jwk: { kty: 'RSA', n, e } };
  }
  const [crv, x, y] = [textOf(key.crv), textOf(key.x), textOf(key.y)];
  if (key.kty === 'EC' && crv !== undefined && x !== undefined && y !== undefined) {
    return { ...common, jwk: { kty: 'EC', crv, x, y } };
  }
  return undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && !isAbsent(value) ? value : undefined;
}

/** Providers name members that they have no value for. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

const PEM_IMPORTS: readonly (readonly [string, typeof importSPKI])[] = [
  ['PUBLIC KEY', importSPKI],
  ['CERTIFICATE', importX509],
];

/** Reads a PEM public key or certificate (RSA of 2048 bits and more, or EC); throws when it is none. */
export async function publicKeyOfPem(pem: string): Promise<PublicKey> {
  const text = pem.trim();
  const found = PEM_IMPORTS.find(([label]) => text.startsWith(`-----BEGIN ${label}-----`));
  if (found === undefined) {
    throw new Error('expected a PEM block of type PUBLIC KEY or CERTIFICATE');
  }
  const [, importPem] = found;
  // Nothing in PEM says which algorithm, so each family is tried; the wrong ones fail at once.
  for (const algorithm of ['RS256', 'ES256', 'ES384', 'ES512']) {
    const imported = await importPem(text, algorithm, { extractable: true }).catch(() => undefined);
    if (imported === undefined) continue;
    const key = publicKeyOf({ ...(await exportJWK(imported)) });
    if (key !== undefined) return requireStrong({ ...key, algorithm: undefined });
  }
  throw new Error('data does not contain any valid RSA or ECDSA public keys');
}

function requireStrong(key: PublicKey): PublicKey {
  // 2048 bits are 342 base64url characters.
  if (key.jwk.kty === 'RSA' && key.jwk.n.length < 342) {
    throw new Error('an RSA key must have at least 2048 bits');
  }
  return key;
}

/** Throws unless `pem` is one or more certificates in PEM whose DER is whole. */
export function checkCertificates(pem: string): void {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g);
  if (blocks === null) throw new Error('it holds no PEM block of type CERTIFICATE');
  for (const block of blocks) {
    const base64 = block.replace(/-----[A-Z ]+-----|\s/g, '');
    if (!isDerSequence(base64)) throw new Error('a PEM block of type CERTIFICATE is malformed');
  }
}

/** So many certificates an auth method may be given to trust: a connection reads them. */
export const CERTIFICATES_MAX = 256;

/** Throws for more than CERTIFICATES_MAX; those who had more before this was asked keep them. */
export function requireFewCertificates(pem: string): void {
  const { length } = pem.match(/-----BEGIN CERTIFICATE-----/g) ?? [];
  if (length <= CERTIFICATES_MAX) return;
  throw new Error(`it may hold at most ${CERTIFICATES_MAX} certificates, and holds ${length}`);
}

/** Whether it is base64 of one ASN.1 SEQUENCE with a two-byte length, as every certificate is. */
function isDerSequence(base64: string): boolean {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return false;
  const der = Buffer.from(base64, 'base64');
  return der[0] === 0x30 && der[1] === 0x82 && der.length === der.readUInt16BE(2) + 4;
}
