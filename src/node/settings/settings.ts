// Turns files, environment variables and flags into the settings of a server. Flags win over files,
// later files over earlier ones, files over the environment. Every refusal names the setting and
// where the value came from; the value of a secret is never shown.

import { requireConfiguredSecret } from '../../acl/ids.ts';
import { formatDuration, parseDuration } from '../../acl/values/duration.ts';
import { clusterFaultOf } from './cluster-settings.ts';
import { federationFaultOf } from './federation-settings.ts';
import { isHost } from './net-address.ts';
import {
  flagOf,
  SETTING_KEYS,
  type SettingKey,
  type SettingName,
  variableOf,
} from './settings-keys.ts';

/** A server's settings, all present. Durations are nanoseconds. */
export type Settings = {
  readonly [Key in (typeof SETTING_KEYS)[number] as Key['name']]: ValueOf<Key>;
};

type ValueOf<Key extends { readonly type: SettingKey['type'] }> = Key['type'] extends {
  readonly kind: 'choice';
  readonly of: readonly (infer Choice)[];
}
  ? Choice
  : Key['type'] extends { readonly kind: 'flag' }
    ? boolean
    : Key['type'] extends { readonly kind: 'port' | 'count' }
      ? number
      : Key['type'] extends { readonly kind: 'duration' }
        ? bigint
        : Key['type'] extends { readonly kind: 'list' }
          ? readonly string[]
          : string;

export interface SettingsSources {
  /** By flag name, without the leading hyphens. */
  readonly flags: Readonly<Record<string, string | boolean>>;
  /** In the order in which they were named. */
  readonly files: readonly { readonly path: string; readonly value: unknown }[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A setting that cannot be used; the message is for the person who started the server. */
export class SettingsError extends Error {
  override readonly name: string = 'SettingsError';
}

/**
 * A setting whose certificate or key is not there, or not what it should be. It may be at the next start, as what is
 * mounted late or is being renewed: whoever starts servers again by itself shall go on trying.
 */
export class NamedFileError extends SettingsError {
  override readonly name = 'NamedFileError';
}

/** Texts of one list. */
const LIST_MAX = 100;

interface Found {
  readonly value: unknown;
  readonly from: string;
}

/** Reads all sources. Throws SettingsError naming the setting, its source and what was expected. */
export function readSettings(sources: SettingsSources): Settings {
  const found = new Map<string, unknown>();
  // What something else overrules is checked, too: it counts when that is gone.
  for (const [name, { value, from }] of allValues(sources)) {
    found.set(name, checked(KEY_BY_NAME.get(name) as SettingKey, value, from));
  }
  const entries = SETTING_KEYS.map((key) => {
    const isFound = found.has(key.name);
    return [key.name, isFound ? found.get(key.name) : checked(key, key.default, 'default')];
  });
  const settings = Object.fromEntries(entries) as Settings;
  checkSecrets(settings);
  checkTogether(settings);
  return settings;
}

/** The settings as they may be shown: secrets replaced by `<hidden>` when set. */
export function shownSettings(settings: Settings): Record<string, unknown> {
  return Object.fromEntries(
    SETTING_KEYS.map((key: SettingKey) => {
      const value = settings[key.name as SettingName];
      if (key.secret === true) return [key.name, String(value) === '' ? '' : '<hidden>'];
      return [key.name, typeof value === 'bigint' ? formatDuration(value) : value];
    }),
  );
}

const KEY_BY_NAME: ReadonlyMap<string, SettingKey> = new Map(
  SETTING_KEYS.map((key) => [key.name, key]),
);

/** What counts comes last. */
function* allValues({ environment, files, flags }: SettingsSources): Iterable<[string, Found]> {
  yield* environmentValues(environment);
  for (const file of files) yield* fileValues(file);
  yield* flagValues(flags);
}

function* environmentValues(
  environment: SettingsSources['environment'],
): Iterable<[string, Found]> {
  for (const key of SETTING_KEYS) {
    const variable = variableOf(key.name);
    const value = environment[variable];
    // A variable without a value is one that somebody left empty in a file of variables.
    if (value === undefined || value === '') continue;
    yield [key.name, { value, from: `environment variable ${variable}` }];
  }
}

function* flagValues(flags: SettingsSources['flags']): Iterable<[string, Found]> {
  const byFlag = new Map(SETTING_KEYS.map((key) => [flagOf(key.name), key.name]));
  for (const [flag, value] of Object.entries(flags)) {
    const name = byFlag.get(flag);
    if (name === undefined) throw new SettingsError(`unknown flag --${flag}`);
    yield [name, { value, from: `flag --${flag}` }];
  }
}

function* fileValues(file: {
  readonly path: string;
  readonly value: unknown;
}): Iterable<[string, Found]> {
  if (file.value === null || file.value === undefined) return;
  const known = new Set<string>();
  for (const each of nested(file.path, '', file.value)) {
    const [name] = each;
    // Nested and dotted: whichever stands further down would count, in silence.
    if (known.has(name)) throw new SettingsError(`${file.path}: ${name} is set twice`);
    known.add(name);
    yield each;
  }
}

function* nested(path: string, prefix: string, value: unknown): Iterable<[string, Found]> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SettingsError(
      `${path}: expected a map of settings${prefix === '' ? '' : ` under ${prefix}`}`,
    );
  for (const [key, inner] of Object.entries(value)) {
    const name = prefix === '' ? key : `${prefix}.${key}`;
    if (SETTING_KEYS.some((known) => known.name === name))
      yield [name, { value: inner, from: path }];
    else if (SETTING_KEYS.some((known) => known.name.startsWith(`${name}.`)))
      yield* nested(path, name, inner);
    else throw new SettingsError(`${path}: unknown setting ${name}`);
  }
}

function checked(key: SettingKey, value: unknown, from: string): unknown {
  const refuse = (expected: string): never => {
    const shown = key.secret === true ? '' : `, not ${JSON.stringify(value)}`;
    throw new SettingsError(`${key.name} (${from}): expected ${expected}${shown}`);
  };
  const { type } = key;
  switch (type.kind) {
    case 'text':
      if (value === '' && type.isNeeded === true) return refuse('a text that is not empty');
      return typeof value === 'string' ? value : refuse('text');
    case 'choice':
      return typeof value === 'string' && type.of.includes(value)
        ? value
        : refuse(`one of ${type.of.join(', ')}`);
    case 'flag':
      return flagValue(value) ?? refuse('true or false');
    case 'port':
      return (
        wholeNumber(value, -1, 65_535) ?? refuse('a port: -1 (off), 0 (any free one) or 1 to 65535')
      );
    case 'count':
      return (
        wholeNumber(value, type.min, type.max) ??
        refuse(`a whole number from ${type.min} to ${type.max}`)
      );
    case 'duration':
      return (
        durationOf(value, type) ??
        refuse(DURATION_EXPECTED[type.mayBeZero === true ? 'any' : 'some'])
      );
    case 'list':
      return textList(value) ?? refuse('a list of texts, or one text with commas between them');
    default:
      return type satisfies never;
  }
}

function flagValue(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (value === 'true' || value === '1') return true;
  if (value === 'false' || value === '0') return false;
  return undefined;
}

function wholeNumber(value: unknown, min: number, max: number): number | undefined {
  const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number)) return undefined;
  return number >= min && number <= max ? number : undefined;
}

const DURATION_EXPECTED = {
  some: 'a duration above zero such as 90s or 1h30m',
  any: 'a duration such as 90s or 1h30m, or 0s for none',
} as const;

function durationOf(
  value: unknown,
  { mayBeZero }: { readonly mayBeZero?: true },
): bigint | undefined {
  const nanoseconds = typeof value === 'string' ? parseDuration(value) : undefined;
  const isLong = nanoseconds !== undefined && nanoseconds > 0n;
  return isLong || (nanoseconds === 0n && mayBeZero === true) ? nanoseconds : undefined;
}

function textList(value: unknown): readonly string[] | undefined {
  const parts: readonly unknown[] = Array.isArray(value)
    ? value
    : typeof value === 'string'
      ? value.split(',')
      : [undefined];
  const texts: string[] = [];
  for (const part of parts) {
    if (typeof part !== 'string') return undefined;
    const text = part.trim();
    if (text !== '') texts.push(text);
  }
  return texts.length <= LIST_MAX ? texts : undefined;
}

/** Shorter ones somebody finds who tries. */
const SECRET_CHARS_MIN = 16;

/**
 * Whether anybody who tries finds the management token of the settings. Deployed servers take such a secret, too, and
 * test environments rely on it.
 */
export function isManagementGuessable(settings: Settings): boolean {
  const { length } = settings['acl.tokens.initial_management'];
  return length > 0 && length < SECRET_CHARS_MIN;
}

function checkSecrets(settings: Settings): void {
  for (const name of ['acl.tokens.initial_management', 'acl.tokens.default'] as const) {
    try {
      if (settings[name] !== '') requireConfiguredSecret(settings[name]);
    } catch (error) {
      throw new SettingsError(`${name}: ${(error as Error).message}`);
    }
  }
}

type PortName = 'ports.http' | 'ports.https' | 'ports.cluster';

const PORT_PAIRS: readonly (readonly [PortName, PortName])[] = [
  ['ports.http', 'ports.https'],
  ['ports.http', 'ports.cluster'],
  ['ports.https', 'ports.cluster'],
];

/** What only shows when settings are looked at together. */
function checkTogether(settings: Settings): void {
  checkHosts(settings);
  const clusterFault = clusterFaultOf(settings);
  if (clusterFault !== undefined) throw new SettingsError(clusterFault);
  if (settings['acl.token_min_ttl'] > settings['acl.token_max_ttl'])
    throw new SettingsError('acl.token_min_ttl is longer than acl.token_max_ttl');
  if (settings['ports.http'] === -1 && settings['ports.https'] === -1)
    throw new SettingsError('ports.http and ports.https are both off: nothing would listen');
  if (
    settings['ports.https'] !== -1 &&
    (settings['tls.cert_file'] === '' || settings['tls.key_file'] === '')
  )
    throw new SettingsError('ports.https needs tls.cert_file and tls.key_file');
  if ((settings['tls.cert_file'] === '') !== (settings['tls.key_file'] === ''))
    throw new SettingsError('tls.cert_file and tls.key_file: one is set, and both are needed');
  if (settings['tls.verify_incoming'] && settings['tls.ca_file'] === '')
    throw new SettingsError('tls.verify_incoming needs tls.ca_file');
  if (settings['tls.verify_incoming'] && settings['ports.https'] === -1)
    throw new SettingsError(
      'tls.verify_incoming needs ports.https: it asks nobody at ports.http for a certificate',
    );
  checkPorts(settings);
  if (settings['audit.required'] && settings['audit.file'] === '')
    throw new SettingsError('audit.required needs audit.file');
  const federationFault = federationFaultOf(settings);
  if (federationFault !== undefined) throw new SettingsError(federationFault);
}

/** Other servers take no longer name. */
const NODE_NAME_BYTES_MAX = 255;

function checkHosts(settings: Settings): void {
  const { node_name } = settings;
  if (/\p{Cc}/u.test(node_name) || Buffer.byteLength(node_name) > NODE_NAME_BYTES_MAX)
    throw new SettingsError(
      `node_name: expected at most ${NODE_NAME_BYTES_MAX} bytes, without control characters`,
    );
  for (const name of ['bind_addr', 'client_addr'] as const) {
    if (isHost(settings[name])) continue;
    throw new SettingsError(
      `${name}: expected an address without brackets and without a port, such as 10.0.0.1 or ::1, not ${JSON.stringify(settings[name])}`,
    );
  }
}

/** Two that would listen at one address: the system would only say that it is in use. */
function checkPorts(settings: Settings): void {
  const { bind_addr, client_addr } = settings;
  const hostOf = (name: PortName): string => (name === 'ports.cluster' ? bind_addr : client_addr);
  for (const [one, other] of PORT_PAIRS) {
    const isOne = settings[one] === settings[other] && hostOf(one) === hostOf(other);
    if (isOne && settings[one] > 0)
      throw new SettingsError(`${one} and ${other} are both ${settings[one]}`);
  }
}
