// What the primary did to global objects, done here. Nothing is asked of the objects but that they are
// those of the primary afterwards; what lives in this datacenter alone gives way.

import { assert, must } from '../../../cluster/base/assert.ts';
import type { Token } from '../../acl/token.ts';
import type { ChangeSet } from '../change-set.ts';
import { type GlobalEffect, isGlobalRow } from '../global-effects.ts';
import type { GlobalEntry } from '../global-log/global-entry.ts';
import { readAt } from '../reads/reads.ts';
import { Digest, rowHash } from '../rows/digest.ts';
import { decodeRecord } from '../rows/layout/record-codec.ts';
import type { ArrivedRow } from '../rows/objects/object-rows.ts';
import {
  AUTH_METHODS,
  NAMESPACES,
  secretKey,
  TOKENS,
  tableOfRow,
} from '../rows/objects/objects.ts';
import { forgetOrigin } from '../rows/objects/token-origin.ts';
import { ROW, rowKey } from '../rows/tables.ts';
import { retireMethod } from './auth-method.ts';
import { retireNamespace } from './namespace.ts';

/** An effect that is known to fit the objects here. */
export interface FittingEffect {
  readonly effect: GlobalEffect;
  /** Of the row that it leaves; undefined where it leaves none. */
  readonly hash: Uint8Array | undefined;
  /** Its object was not there before. */
  readonly isNew: boolean;
}

/**
 * The effects of an entry, when they bring the digest of all global objects to what the entry says; else
 * undefined. Nothing is changed.
 *
 * Whether a token is there already is not looked up where its row says that the entry made it: that look
 * into the store, for a row that is nearly always missing, is the dearest step of taking an entry in. The row
 * need not be believed. Both datacenters had one digest before the entry, and without an old row to take
 * away they come to one digest only if neither has such a row. When they do not, everything is looked up.
 */
export function fittingEffects(
  changes: ChangeSet,
  { body, index, digest }: Pick<GlobalEntry, 'body' | 'index' | 'digest'>,
): readonly FittingEffect[] | undefined {
  const effects = body.kind === 'effects' ? body.effects : [];
  const told = effects.map((effect) => {
    const { key, value, token } = effect;
    const hash = value === undefined ? undefined : rowHash(key, value);
    return { effect, hash, isNew: token?.createIndex === index };
  });
  if (Buffer.compare(digestAfter(changes, told), digest) === 0) return told;
  const lookedUp = told.map(({ effect, hash }) => ({ effect, hash, isNew: false }));
  return Buffer.compare(digestAfter(changes, lookedUp), digest) === 0 ? lookedUp : undefined;
}

function digestAfter(changes: ChangeSet, effects: readonly FittingEffect[]): Uint8Array {
  const digest = new Digest(changes.globalDigest);
  for (const { effect, hash, isNew } of effects) {
    const old = isNew ? undefined : changes.get(effect.key);
    if (old !== undefined && isGlobalRow(effect.key, old)) {
      digest.subtract(rowHash(effect.key, old));
    }
    if (hash !== undefined) digest.add(hash);
  }
  return digest.bytes();
}

export function applyEffects(changes: ChangeSet, effects: readonly FittingEffect[]): void {
  for (const { effect, hash, isNew } of effects) {
    const { key, value, token } = effect;
    if (value === undefined) deleteArrived(changes, key);
    else if (token === undefined) putArrived(changes, key, { value, hash });
    else {
      evictLocal(changes, key, token);
      changes.putArrived(TOKENS, token, { value, hash, isNew });
    }
  }
}

/** What is no token: tokens come unpacked. */
function putArrived(changes: ChangeSet, key: Uint8Array, row: ArrivedRow): void {
  assert(key[0] !== ROW.token, 'a token that arrived is unpacked');
  const table = tableOfRow(key[0]!);
  changes.putArrived(table, decodeRecord(table.codec, row.value), row);
}

function deleteArrived(changes: ChangeSet, key: Uint8Array): void {
  switch (key[0]) {
    case ROW.token: {
      const token = must(readAt(changes, TOKENS, key), 'the token that is deleted');
      changes.deleteArrived(TOKENS, token);
      forgetOrigin(changes, token, changes.level);
      return;
    }
    case ROW.authMethod: {
      const method = must(readAt(changes, AUTH_METHODS, key), 'the method that is deleted');
      changes.deleteArrived(AUTH_METHODS, method);
      retireMethod(changes, method);
      return;
    }
    case ROW.namespace: {
      const namespace = must(readAt(changes, NAMESPACES, key), 'the namespace that is deleted');
      changes.deleteArrived(NAMESPACES, namespace);
      retireNamespace(changes, namespace.name);
      return;
    }
    default: {
      const table = tableOfRow(key[0]!);
      changes.deleteArrived(table, must(readAt(changes, table, key), 'the object that is deleted'));
    }
  }
}

/**
 * A local token whose ids the primary gave to another one: nobody chose them twice by chance, and two
 * tokens cannot share them. Where there is no local token at all, none is looked for.
 */
function evictLocal(changes: ChangeSet, key: Uint8Array, token: Token): void {
  if (changes.localTokenCount === 0) return;
  const holder = changes.get(secretKey(token.secretId));
  const keys = holder === undefined ? [key] : [key, rowKey('token', holder)];
  for (const each of keys) {
    const found = readAt(changes, TOKENS, each);
    if (found?.local !== true) continue;
    changes.deleteArrived(TOKENS, found);
    forgetOrigin(changes, found, changes.level);
  }
}
