// An entry of the global log: what one command of the primary did to the objects that every datacenter
// has, as bytes that are the same everywhere. Its hash is over all of them, and they hold the hash of
// the entry before: it names the whole log up to there. History of the formats: 1 is the first.

import { assert } from '../../../cluster/base/assert.ts';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import type { AccessorId } from '../../acl/ids.ts';
import {
  type RememberedAnswer,
  rememberedAnswerOf,
  rememberedFields,
} from '../commands/answer-codec.ts';
import { arrivedEffect, type GlobalEffect, isGlobalRow } from '../global-effects.ts';
import {
  type Field,
  type Fields,
  fieldsOrNone,
  orNull,
  orUndefined,
  pack,
  requireFormat,
  unpack,
} from '../rows/layout/packing.ts';
import { createIndexAtHead } from '../rows/layout/record-codec.ts';
import type { GlobalCursor } from './cursor.ts';
import { type EntryLinks, linksAtHead } from './entry-head.ts';
import { type Datacenter, datacenterFields, datacenterOf } from './replication.ts';

export type EntryBody =
  /** Rows in the order they were made; each key is there once. */
  | { readonly kind: 'effects'; readonly effects: readonly GlobalEffect[] }
  /** All objects were replaced by a restore: only a snapshot leads over it. */
  | { readonly kind: 'reset' }
  /** The first entry of a new primary. */
  | {
      readonly kind: 'epoch-start';
      readonly primary: string;
      /** Whose promises made it the primary. */
      readonly promises: readonly string[];
      /** An operator forced it, and knew that entries may be lost. */
      readonly isForced: boolean;
    }
  /** Which datacenters there are from here on. */
  | { readonly kind: 'datacenters'; readonly datacenters: readonly Datacenter[] };

/** So that a repeat is known wherever the primary is. */
export interface EntryRequest {
  readonly key: Uint8Array;
  readonly fingerprint: Uint8Array;
  readonly answer: RememberedAnswer;
}

export interface GlobalEntry {
  readonly epoch: number;
  readonly seq: number;
  /** Of the entry before. */
  readonly prevHash: Uint8Array;
  /** The primary's index after it: its objects are stamped with it. */
  readonly index: number;
  /** Of the primary's clock, milliseconds. */
  readonly timeMs: number;
  readonly body: EntryBody;
  /** Of all global objects after it. */
  readonly digest: Uint8Array;
  /** Whether it made the first management token: its index is what a later reset must name. */
  readonly isBootstrap: boolean;
  /** Who asked for it; undefined for the primary's own duties. */
  readonly principal: AccessorId | undefined;
  readonly request: EntryRequest | undefined;
}

const FORMAT = 1;

/** For ever: see scripts/registry.json. */
const BODY_NUMBER: Readonly<Record<EntryBody['kind'], number>> = {
  effects: 1,
  reset: 2,
  'epoch-start': 3,
  datacenters: 4,
};

/** The bytes of an entry. Nothing that lives in one datacenter alone gets into them. */
export function encodeEntry(entry: GlobalEntry): Uint8Array {
  const { body, request } = entry;
  return pack([
    FORMAT,
    entry.epoch,
    entry.seq,
    entry.prevHash,
    entry.index,
    entry.timeMs,
    BODY_NUMBER[body.kind],
    bodyFields(body),
    entry.digest,
    entry.isBootstrap,
    orNull(entry.principal),
    request === undefined
      ? null
      : [request.key, request.fingerprint, ...rememberedFields(request.answer, effectsOf(body))],
  ]);
}

/**
 * Reads an entry whose hash is known to be right. Throws AssertionError at a format that is not known
 * here: skipping it would make another state.
 */
export function decodeEntry(bytes: Uint8Array): GlobalEntry {
  return entryOf(unpack(bytes));
}

/** The same, of an entry that is unpacked. */
export function entryOf(all: Fields): GlobalEntry {
  const [format, epoch, seq, prevHash, index, timeMs, number, fields, ...rest] = all;
  requireFormat('global entry', format, FORMAT);
  const [digest, isBootstrap, principal, request] = rest;
  const body = bodyOf(number, fields as Fields);
  return {
    epoch,
    seq,
    prevHash,
    index,
    timeMs,
    body,
    digest,
    isBootstrap,
    principal: orUndefined(principal as string | null),
    request: request === null ? undefined : requestOf(request as Fields, effectsOf(body)),
  } as GlobalEntry;
}

/**
 * What the head of an entry says, of bytes that are those of an entry: its body is not looked at. Undefined
 * when they are none.
 */
export function entryLinks(bytes: Uint8Array): EntryLinks | undefined {
  const links = linksAtHead(bytes);
  if (links !== undefined) return links;
  const fields = fieldsOrNone(bytes);
  return fields === undefined ? undefined : linksOf(fields);
}

/** The same, of an entry that is unpacked. */
export function linksOf(fields: Fields): EntryLinks | undefined {
  const [, epoch, seq, prevHash, , timeMs] = fields;
  const areNumbers = [epoch, seq, timeMs].every((each) => Number.isSafeInteger(each));
  if (!areNumbers || !(prevHash instanceof Uint8Array)) return undefined;
  return { epoch, seq, prevHash, timeMs } as EntryLinks;
}

/** Whether it says that a restore replaced all objects; not so where the bytes are none of an entry. */
export function isReset(bytes: Uint8Array): boolean {
  const [, , , , , , number] = fieldsOrNone(bytes) ?? [];
  return number === BODY_NUMBER.reset;
}

/**
 * The rows that an entry changes, without those that it made, by what they say themselves; none where the bytes are
 * none of an entry. What it puts there is not unpacked.
 */
export function changedKeys(bytes: Uint8Array): readonly Uint8Array[] {
  const [, , , , index, , number, body] = fieldsOrNone(bytes) ?? [];
  if (number !== BODY_NUMBER.effects || !Array.isArray(body)) return [];
  return (body as readonly Fields[]).flatMap(([key, value]) => {
    const isMade = value instanceof Uint8Array && createIndexAtHead(value) === index;
    return isMade || !(key instanceof Uint8Array) ? [] : [key];
  });
}

/** The hash of an entry's bytes: they hold all that it stands on. */
export function entryHash(bytes: Uint8Array): Uint8Array {
  return sha256(bytes);
}

/** Where the log is after this entry. */
export function cursorAfter(
  entry: Pick<GlobalEntry, 'epoch' | 'seq'>,
  hash: Uint8Array,
): GlobalCursor {
  return { epoch: entry.epoch, seq: entry.seq, hash };
}

function effectsOf(body: EntryBody): readonly GlobalEffect[] {
  return body.kind === 'effects' ? body.effects : [];
}

function bodyFields(body: EntryBody): Fields {
  switch (body.kind) {
    case 'effects':
      for (const { key, value } of body.effects) {
        assert(isGlobalRow(key, value), 'only global rows enter the global log', { kind: key[0] });
      }
      return body.effects.map(({ key, value }) => [key, orNull(value)]);
    case 'reset':
      return [];
    case 'epoch-start':
      return [body.primary, body.promises, body.isForced];
    case 'datacenters':
      return body.datacenters.map(datacenterFields);
    default:
      return unreachable(body);
  }
}

function bodyOf(number: Field | undefined, fields: Fields): EntryBody {
  switch (number) {
    case BODY_NUMBER.effects:
      return { kind: 'effects', effects: (fields as readonly Fields[]).map(effectOf) };
    case BODY_NUMBER.reset:
      return { kind: 'reset' };
    case BODY_NUMBER['epoch-start']: {
      const [primary, promises, isForced] = fields;
      return { kind: 'epoch-start', primary, promises, isForced } as EntryBody;
    }
    case BODY_NUMBER.datacenters:
      return { kind: 'datacenters', datacenters: (fields as readonly Fields[]).map(datacenterOf) };
    default:
      assert(false, 'the kind of a global entry is known here', { number });
  }
}

function effectOf([key, value]: Fields): GlobalEffect {
  const effect = arrivedEffect(key as Uint8Array, orUndefined(value as Uint8Array | null));
  if (effect === undefined) throw new TypeError('a row that lives in one datacenter alone');
  return effect;
}

function requestOf(
  [key, fingerprint, ...answer]: Fields,
  effects: readonly GlobalEffect[],
): EntryRequest {
  const remembered = rememberedAnswerOf(answer, effects);
  return { key, fingerprint, answer: remembered } as EntryRequest;
}
