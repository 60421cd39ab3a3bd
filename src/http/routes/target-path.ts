// The path of a request target, cleaned before the router sees it: escapes are undone first, so that
// `%2F` is a slash as any other; doubled slashes and dot segments are redirected to the clean path;
// characters that cannot be printed are refused, and so are paths without end.

import { LIMITS } from '../settings.ts';
import { decoded } from '../wire/query.ts';

export type TargetPath =
  /** For the router: escaped anew where needed. */
  | { readonly kind: 'clean'; readonly path: string }
  | { readonly kind: 'redirect'; readonly path: string }
  | { readonly kind: 'refused' };

/** Paths of only these need no second look: no slash is doubled, no segment begins with a dot. */
const PLAIN = /^\/(?:[A-Za-z0-9\-_:+~][A-Za-z0-9\-_:+~.]*(?:\/|$))*$/;
/** Letters, marks, numbers, punctuation, symbols, and of the blanks only the space. */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

export function targetPathOf(target: string): TargetPath {
  const path = pathOf(target);
  if (path.length > LIMITS.pathChars) return { kind: 'refused' };
  if (PLAIN.test(path)) return { kind: 'clean', path };
  const text = decoded(path);
  if (text === undefined || !text.startsWith('/') || UNPRINTABLE.test(text)) {
    return { kind: 'refused' };
  }
  const cleaned = cleanedPath(text);
  return { kind: cleaned === text ? 'clean' : 'redirect', path: escaped(cleaned) };
}

/** Without the query, and without the scheme and host of an absolute target. */
function pathOf(target: string): string {
  const end = target.indexOf('?');
  const path = end === -1 ? target : target.slice(0, end);
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '');
}

function cleanedPath(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  const isFolder = /\/\.{0,2}$/.test(path);
  return kept.length === 0 ? '/' : `/${kept.join('/')}${isFolder ? '/' : ''}`;
}

function escaped(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}
