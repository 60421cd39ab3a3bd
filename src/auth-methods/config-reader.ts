// Reads the Config of an auth method: keys in any letter case, numbers, bools and strings in place of
// one another, one value in place of a list of one. Unknown keys are refused by name. Every error is
// AclError('invalid') and starts `Invalid Auth Method: `; values are never repeated in an error,
// because some of them are secrets.

import type { JsonValue } from '../acl/auth-method.ts';
import { type AclError, invalid } from '../acl/error.ts';

/** A refusal of an auth method's configuration. */
export function invalidConfig(message: string): AclError {
  return invalid(`Invalid Auth Method: ${message}`);
}

type JsonObject = { readonly [key: string]: JsonValue };

export class ConfigReader<Key extends string> {
  readonly #values = new Map<string, JsonValue>();
  readonly #path: string;

  /** Throws when `config` has a key outside `keys`, or one key twice in different letter case. */
  constructor(config: JsonObject, keys: readonly Key[], path = '') {
    this.#path = path;
    const known = new Map(keys.map((key) => [key.toLowerCase(), key]));
    for (const [given, value] of Object.entries(config)) {
      const key = known.get(given.toLowerCase());
      if (key === undefined) throw decodingError(`invalid key ${JSON.stringify(path + given)}`);
      if (this.#values.has(key)) throw decodingError(`key ${JSON.stringify(key)} is given twice`);
      this.#values.set(key, value);
    }
  }

  /** True unless the key is absent or holds the empty value of its type. */
  has(key: Key): boolean {
    const value = this.#values.get(key);
    if (value === undefined || value === null || value === '') return false;
    if (value === false || value === 0) return false;
    return typeof value !== 'object' || Object.keys(value).length > 0;
  }

  string(key: Key): string {
    const value = this.#values.get(key);
    return value === undefined ? '' : this.#asString(key, value);
  }

  bool(key: Key, absent: boolean): boolean {
    const value = this.#values.get(key);
    if (value === undefined || value === null) return absent;
    if (typeof value === 'boolean') return value;
    if (typeof value === 'number') return value !== 0;
    if (typeof value === 'string') {
      if (/^(?:1|t|true)$/i.test(value)) return true;
      if (/^(?:0|f|false|)$/i.test(value)) return false;
    }
    throw this.#expected(key, 'a bool');
  }

  /** An exact integer; absent is 0. */
  integer(key: Key): number {
    const value = this.#values.get(key) ?? 0;
    const number = typeof value === 'string' && /^[+-]?[0-9]+$/.test(value) ? Number(value) : value;
    if (typeof number === 'boolean') return number ? 1 : 0;
    if (!Number.isSafeInteger(number)) throw this.#expected(key, 'an integer');
    return number as number;
  }

  strings(key: Key): readonly string[] {
    return this.#items(key).map((item) => this.#asString(key, item));
  }

  /** A map of strings; a list of maps is merged, later ones win. */
  stringMap(key: Key): ReadonlyMap<string, string> {
    const entries = this.#items(key).flatMap((object) => {
      if (!isObject(object)) throw this.#expected(key, 'a map');
      return Object.entries(object);
    });
    return new Map(entries.map(([name, item]) => [name, this.#asString(key, item)]));
  }

  /** A reader for a nested object, or undefined when the key is absent or empty. */
  nested<Inner extends string>(key: Key, keys: readonly Inner[]): ConfigReader<Inner> | undefined {
    if (!this.has(key)) return undefined;
    const value = this.#values.get(key);
    if (!isObject(value)) throw this.#expected(key, 'a map');
    return new ConfigReader(value, keys, `${this.#path}${key}.`);
  }

  /**
   * A list, or one value in place of a list of one. An empty text, 0 and false are values here: a
   * bound that was written so would else be none.
   */
  #items(key: Key): readonly JsonValue[] {
    const value = this.#values.get(key) ?? [];
    if (isList(value)) return value;
    return isObject(value) && Object.keys(value).length === 0 ? [] : [value];
  }

  #asString(key: Key, value: JsonValue): string {
    if (value === null) return '';
    if (typeof value === 'string') return value;
    if (typeof value === 'number') return String(value);
    if (typeof value === 'boolean') return value ? '1' : '0';
    throw this.#expected(key, 'a string');
  }

  #expected(key: Key, what: string): AclError {
    return decodingError(`${JSON.stringify(this.#path + key)} must be ${what}`);
  }
}

function decodingError(message: string): AclError {
  return invalidConfig(`error decoding config: ${message}`);
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
