// The operator's permission to bootstrap again, as a file holds it.

import { AclError } from '../../acl/error.ts';

/**
 * The index in the text of the file; NaN for any other text, which no bootstrap has; undefined without a file. Throws
 * 'invalid' where it cannot be taken: whoever has lost all tokens is told in words, without paths, since anybody may
 * ask.
 */
export function resetIndexOf(take: () => string | undefined): number | undefined {
  const text = taken(take);
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

function taken(take: () => string | undefined): string | undefined {
  try {
    return take();
  } catch (cause) {
    const { code = 'failed' } = cause as { readonly code?: string };
    const says = `the leader cannot read and delete its file acl-bootstrap-reset (${code})`;
    const text = `${says}: give the file to the user that the server runs as`;
    throw new AclError('invalid', text, { cause });
  }
}
