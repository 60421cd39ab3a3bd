// What a token leaves behind when it is gone: with the last token of a deleted method or namespace,
// nothing needs to remember that any more.

import type { Token } from '../../../acl/token.ts';
import { countsLostAlone } from '../../commands/feature-levels.ts';
import type { WritableRows } from '../store/row-buffer.ts';
import { methodKey } from './objects.ts';
import {
  encodeRetiredNamespace,
  readRetiredNamespace,
  retiredNamespaceKey,
} from './retired-namespace.ts';

/** The token was deleted, with all its own rows, at that feature level. */
export function forgetOrigin(rows: WritableRows, token: Token, level: number): void {
  // Of what all share an index may be a lower one, and was never among those that the namespace lost.
  if (token.local || !countsLostAlone(level)) forgetRetiredNamespace(rows, token);
  const origin = token.authMethod;
  if (origin === undefined) return;
  const retiredKey = methodKey('retiredMethod', origin);
  const isLast = rows.get(methodKey('methodTokens', origin)) === undefined;
  if (isLast && rows.get(retiredKey) !== undefined) rows.deleteRow(retiredKey);
}

function forgetRetiredNamespace(rows: WritableRows, { namespace, createIndex }: Token): void {
  const retired = readRetiredNamespace(rows, namespace);
  if (retired === undefined || createIndex > retired.upTo) return;
  const tokens = retired.tokens - 1;
  const key = retiredNamespaceKey(namespace);
  if (tokens === 0) rows.deleteRow(key);
  else rows.putRow(key, encodeRetiredNamespace({ ...retired, tokens }));
}
