// A namespace that the primary deleted while this datacenter had local tokens in it. They are void from
// then on, also when a namespace of that name is made again; see docs/decisions/0017.

import { DEFAULT_NAMESPACE, type NamespaceName } from '../../../acl/ids.ts';
import { pack, requireFormat, unpack } from '../layout/packing.ts';
import type { Getter } from '../store/getter.ts';
import { rowKey } from '../tables.ts';

export interface RetiredNamespace {
  /** Local tokens with a CreateIndex up to this one are void. */
  readonly upTo: number;
  /** How many of them are still stored. */
  readonly tokens: number;
}

const FORMAT = 1;

/**
 * Nobody can delete it. In an archive that no release wrote it may have been made at another index, and a snapshot of
 * its restore is taken for one without it: what is remembered of that counts for nobody.
 */
export function isNeverLost(name: NamespaceName): boolean {
  return name === DEFAULT_NAMESPACE;
}

export function retiredNamespaceKey(name: NamespaceName): Uint8Array {
  return rowKey('retiredNamespace', name);
}

const NEVER_LOST = retiredNamespaceKey(DEFAULT_NAMESPACE);

/** Whether a row is about that one. */
export function isNeverLostKey(key: Uint8Array): boolean {
  return Buffer.compare(key, NEVER_LOST) === 0;
}

export function encodeRetiredNamespace({ upTo, tokens }: RetiredNamespace): Uint8Array {
  return pack([FORMAT, upTo, tokens]);
}

export function readRetiredNamespace(
  rows: Getter,
  name: NamespaceName,
): RetiredNamespace | undefined {
  const value = rows.get(retiredNamespaceKey(name));
  return value === undefined ? undefined : decodeRetiredNamespace(value);
}

export function decodeRetiredNamespace(value: Uint8Array): RetiredNamespace {
  const [format, upTo, tokens] = unpack(value);
  requireFormat('retired namespace', format, FORMAT);
  return { upTo: upTo as number, tokens: tokens as number };
}
