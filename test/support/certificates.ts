// Certificates for tests, made with nothing but Node: an authority, and what it signs. Valid for a few
// years around the tests' present.

import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

export interface Certified {
  /** PEM texts. */
  readonly key: string;
  readonly cert: string;
}

export interface Authority extends Certified {
  readonly name: string;
}

const SEQUENCE = 0x30;
const SET = 0x31;
const ECDSA_WITH_SHA256 = Buffer.from('300a06082a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('0603550403', 'hex');
const BASIC_CONSTRAINTS = Buffer.from('0603551d13', 'hex');
const ALTERNATIVE_NAMES = Buffer.from('0603551d11', 'hex');
const YEAR_MS = 366 * 24 * 3600 * 1000;

let serial = 0;

export function makeAuthority(name: string): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = certificate({
    issuer: name,
    subject: name,
    keys,
    signer: keys.privateKey,
    extension: isAuthority(),
  });
  return { name, cert, key: pemOf(keys.privateKey) };
}

/** A key and a certificate for the host `<subject>.test`, and for addresses of IPv4 such as `127.0.0.1`. */
export function certify(
  { name: issuer, key }: Authority,
  subject: string,
  addresses: readonly string[] = [],
): Certified {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const host = der(0x82, Buffer.from(`${subject}.test`));
  const hosts = addresses.map((address) => der(0x87, address.split('.').map(Number)));
  const names = der(SEQUENCE, host, ...hosts);
  const extension = der(SEQUENCE, ALTERNATIVE_NAMES, der(4, names));
  const signer = createPrivateKey(key);
  return {
    cert: certificate({ issuer, subject, keys, signer, extension }),
    key: pemOf(keys.privateKey),
  };
}

/** A key and a certificate for the host `localhost` that is its own authority. */
export function selfSigned(): Certified {
  const name = 'localhost';
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const host = der(SEQUENCE, der(0x82, Buffer.from(name)));
  const names = der(SEQUENCE, ALTERNATIVE_NAMES, der(4, host));
  const extension = Buffer.concat([isAuthority(), names]);
  const signer = keys.privateKey;
  const cert = certificate({ issuer: name, subject: name, keys, signer, extension });
  return { cert, key: pemOf(keys.privateKey) };
}

/** The extension that lets a certificate sign others. */
function isAuthority(): Buffer {
  const value = der(SEQUENCE, Buffer.from([1, 1, 0xff]));
  return der(SEQUENCE, BASIC_CONSTRAINTS, der(1, [0xff]), der(4, value));
}

function certificate({
  issuer,
  subject,
  keys,
  signer,
  extension,
}: {
  readonly issuer: string;
  readonly subject: string;
  readonly keys: { readonly publicKey: KeyObject };
  readonly signer: KeyObject;
  readonly extension: Buffer;
}): string {
  serial += 1;
  const body = der(
    SEQUENCE,
    der(0xa0, der(2, [2])),
    der(2, [serial]),
    ECDSA_WITH_SHA256,
    nameOf(issuer),
    der(SEQUENCE, timeOf(-YEAR_MS), timeOf(3 * YEAR_MS)),
    nameOf(subject),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(SEQUENCE, extension)),
  );
  const signature = sign('sha256', body, signer);
  const whole = der(SEQUENCE, body, ECDSA_WITH_SHA256, der(3, [0], signature));
  return `-----BEGIN CERTIFICATE-----\n${whole.toString('base64')}\n-----END CERTIFICATE-----\n`;
}

function nameOf(name: string): Buffer {
  return der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(0x0c, Buffer.from(name)))));
}

function timeOf(offsetMs: number): Buffer {
  const iso = new Date(Date.now() + offsetMs).toISOString();
  return der(0x18, Buffer.from(`${iso.slice(0, 19).replaceAll(/[-:T]/g, '')}Z`));
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Tag, length, value. */
function der(tag: number, ...parts: readonly (Uint8Array | readonly number[])[]): Buffer {
  const value = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const { length } = value;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), value]);
}
