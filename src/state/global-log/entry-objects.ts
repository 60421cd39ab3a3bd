// Which objects an entry of the global log changed, for people and for whoever does it again.

import { uuidOfBytes } from '../../acl/ids.ts';
import type { GlobalEffect } from '../global-effects.ts';
import { decodeRecord } from '../rows/layout/record-codec.ts';
import type { Stamped } from '../rows/layout/stamp.ts';
import { tableOfRow } from '../rows/objects/objects.ts';
import { idAtEnd, ROW, textsInKey } from '../rows/tables.ts';
import type { GlobalEntry } from './global-entry.ts';

export type ObjectKind = 'token' | 'policy' | 'role' | 'auth-method' | 'binding-rule' | 'namespace';

export interface EntryObject {
  readonly kind: ObjectKind;
  /** What it is addressed by; of an auth method and of a namespace, its name. */
  readonly id: string;
  /** Of an auth method that was deleted: nothing else of it is left. */
  readonly namespace: string | undefined;
  /** As the entry made it; undefined: it was deleted. */
  readonly object: Stamped | undefined;
}

const KIND_BY_ROW: ReadonlyMap<number, ObjectKind> = new Map<number, ObjectKind>([
  [ROW.token, 'token'],
  [ROW.policy, 'policy'],
  [ROW.role, 'role'],
  [ROW.authMethod, 'auth-method'],
  [ROW.bindingRule, 'binding-rule'],
  [ROW.namespace, 'namespace'],
]);

/** In the order in which they were changed. */
export function objectsOf({ body }: Pick<GlobalEntry, 'body'>): readonly EntryObject[] {
  return body.kind === 'effects' ? body.effects.map(objectOf) : [];
}

function objectOf({ key, value }: GlobalEffect): EntryObject {
  const kind = KIND_BY_ROW.get(key[0]!)!;
  const object = value && decodeRecord(tableOfRow(key[0]!).codec, value);
  if (kind === 'auth-method') {
    const [namespace, id] = textsInKey(key, 2);
    return { kind, id: id!, namespace, object };
  }
  const id = kind === 'namespace' ? textsInKey(key, 1)[0]! : uuidOfBytes(idAtEnd(key));
  return { kind, id, namespace: undefined, object };
}
