// What the primary did to global objects, done here. Nothing is asked of the objects but that they are
// those of the primary afterwards; what lives in this datacenter alone gives way.

import { must } from '../../../cluster/base/assert.ts';
import type { Token } from '../../acl/token.ts';
import type { ChangeSet } from '../change-set.ts';
import { Digest, rowHash } from '../digest.ts';
import { type GlobalEffect, isGlobalRow } from '../global-effects.ts';
import { AUTH_METHODS, NAMESPACES, secretKey, tableOfRow, TOKENS } from '../objects.ts';
import { readAt } from '../reads.ts';
import { decodeRecord } from '../record-codec.ts';
import { rowKey, ROW } from '../tables.ts';
import { retireMethod } from './auth-method.ts';
import { retireNamespace } from './namespace.ts';
import { forgetOrigin } from '../token-origin.ts';

/** The digest of all global objects once the effects are done; nothing is changed. */
export function digestAfter(changes: ChangeSet, effects: readonly GlobalEffect[]): Uint8Array {
  const digest = new Digest(changes.globalDigest);
  for (const { key, value } of effects) {
    const old = changes.get(key);
    if (old !== undefined && isGlobalRow(key, old)) digest.subtract(rowHash(key, old));
    if (value !== undefined) digest.add(rowHash(key, value));
  }
  return digest.bytes();
}

export function applyEffects(changes: ChangeSet, effects: readonly GlobalEffect[]): void {
  for (const { key, value } of effects) {
    if (value === undefined) deleteArrived(changes, key);
    else putArrived(changes, key, value);
  }
}

function putArrived(changes: ChangeSet, key: Uint8Array, value: Uint8Array): void {
  const table = tableOfRow(key[0]!);
  const object = decodeRecord(table.codec, value);
  if (key[0] === ROW.token) evictLocal(changes, key, object as unknown as Token);
  changes.putArrived(table, object, value);
}

function deleteArrived(changes: ChangeSet, key: Uint8Array): void {
  switch (key[0]) {
    case ROW.token: {
      const token = must(readAt(changes, TOKENS, key), 'the token that is deleted');
      changes.deleteArrived(TOKENS, token);
      forgetOrigin(changes, token);
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
 * tokens cannot share them.
 */
function evictLocal(changes: ChangeSet, key: Uint8Array, token: Token): void {
  const holder = changes.get(secretKey(token.secretId));
  const keys = holder === undefined ? [key] : [key, rowKey('token', holder)];
  for (const each of keys) {
    const found = readAt(changes, TOKENS, each);
    if (found?.local !== true) continue;
    changes.deleteArrived(TOKENS, found);
    forgetOrigin(changes, found);
  }
}
