// The ids of the domain: UUIDs in text form, kept in the letter case they were given and compared by
// their 16 bytes. A SecretId is any non-empty text (the configuration may give one that is no UUID);
// its type keeps it apart from other strings, so that nobody logs it by accident.

import { assert } from '../../cluster/base/assert.ts';
import { invalid } from './error.ts';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type AccessorId = Branded<'AccessorId'>;
export type SecretId = Branded<'SecretId'>;
export type PolicyId = Branded<'PolicyId'>;
export type RoleId = Branded<'RoleId'>;
export type BindingRuleId = Branded<'BindingRuleId'>;
export type NamespaceName = Branded<'NamespaceName'>;

export const ANONYMOUS_ACCESSOR = '00000000-0000-0000-0000-000000000002' as AccessorId;
export const ANONYMOUS_SECRET = 'anonymous' as SecretId;
export const GLOBAL_MANAGEMENT_ID = '00000000-0000-0000-0000-000000000001' as PolicyId;
export const GLOBAL_READ_ONLY_ID = '00000000-0000-0000-0000-000000000002' as PolicyId;
export const DEFAULT_NAMESPACE = 'default' as NamespaceName;
/** Ids that begin so are the service's own. */
const RESERVED_ID_PREFIX = '00000000-0000-0000-0000-0000000000';
/** Secrets that are words of the system and never name a token. */
export const ROOT_SECRETS: ReadonlySet<string> = new Set(['allow', 'deny', 'manage']);

const UUID_LENGTH = 36;
const HYPHEN = 0x2d;

/** Whether a new object may carry this id: 8-4-4-4-12 hex digits of either letter case. */
export function isUuid(text: string): boolean {
  if (text.length !== UUID_LENGTH) return false;
  for (let place = 0; place < UUID_LENGTH; place += 1) {
    const code = text.charCodeAt(place);
    const isHyphenPlace = place === 8 || place === 13 || place === 18 || place === 23;
    if (isHyphenPlace ? code !== HYPHEN : hexDigitOf(code) < 0) return false;
  }
  return true;
}

/** Whether the id belongs to the service itself, so that no caller may give it to an object. */
export function isReservedId(id: string): boolean {
  return id.startsWith(RESERVED_ID_PREFIX);
}

/**
 * The 16 bytes that a caller's text asks for, or undefined when no stored id can equal it. Letter
 * case and the places of the hyphens do not matter, so this takes more than `isUuid` does.
 */
export function lookupBytes(text: string): Uint8Array | undefined {
  if (text.length !== UUID_LENGTH) return undefined;
  const bytes = new Uint8Array(16);
  let digits = 0;
  for (let place = 0; place < UUID_LENGTH; place += 1) {
    const code = text.charCodeAt(place);
    if (code === HYPHEN) continue;
    const digit = hexDigitOf(code);
    if (digit < 0) return undefined;
    // Digits beyond the sixteenth byte fall off the array; their count refuses them below.
    bytes[digits >> 1] = (bytes[digits >> 1]! << 4) | digit;
    digits += 1;
  }
  return digits === 32 ? bytes : undefined;
}

/** The lower-case text of 16 bytes. All of them count: nothing is set aside for a UUID version. */
export function uuidOfBytes(bytes: Uint8Array): string {
  assert(bytes.length === 16, 'a UUID has 16 bytes', { length: bytes.length });
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-');
}

export type LookupKind = 'token' | 'policy' | 'role' | 'binding rule';

/**
 * Refuses ('invalid') a text that cannot be looked up at all: 36 characters, at most 4 hyphens, an
 * even number of hex digits. A text that passes may still name nothing (compatibility 3.2).
 */
export function requireLookupUuid(kind: LookupKind, text: string): void {
  if (isLookupUuid(text)) return;
  throw invalid(`failed acl ${kind} lookup: index error: UUID must be 36 characters`);
}

function isLookupUuid(text: string): boolean {
  if (text.length !== UUID_LENGTH) return false;
  let hyphens = 0;
  for (let place = 0; place < UUID_LENGTH; place += 1) {
    const code = text.charCodeAt(place);
    if (code === HYPHEN) hyphens += 1;
    else if (hexDigitOf(code) < 0) return false;
  }
  return hyphens <= 4 && hyphens % 2 === 0;
}

function hexDigitOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Marks a text as a secret. Empty texts are no secrets: they mean that none was presented. */
export function secretIdOf(text: string): SecretId {
  assert(text !== '', 'a secret is never empty');
  return text as SecretId;
}

/** A secret that the configuration gives to a token: any text of a header's value but the words of the system. */
export function requireConfiguredSecret(text: string): SecretId {
  if (text === '') throw invalid('the secret is empty');
  // Nobody could present it: of a header's value the blanks at both ends go.
  if (!/^[\x20-\x7e]+$/.test(text) || text.trim() !== text) {
    throw invalid(
      'the secret has blanks at an end, line ends or other characters that no header can carry',
    );
  }
  if (text === ANONYMOUS_SECRET || ROOT_SECRETS.has(text)) {
    throw invalid('the secret is a word that the system keeps for itself');
  }
  return secretIdOf(text);
}

/** A secret that a caller chose for the bootstrap token (compatibility 4.1). */
export function requireBootstrapSecret(text: string): SecretId {
  if (text.length !== UUID_LENGTH) throw invalid('uuid string is wrong length');
  if (!isUuid(text)) throw invalid('uuid is improperly formatted');
  requireUnreservedId('SecretID', text);
  return secretIdOf(text);
}

/** Refuses an id or secret that a caller chose out of those that the service keeps for itself. */
export function requireUnreservedId(field: 'AccessorID' | 'SecretID', id: string): void {
  if (!isReservedId(id)) return;
  throw invalid(
    `Invalid Token: ${field} - UUIDs with the prefix "${RESERVED_ID_PREFIX}" are reserved`,
  );
}
