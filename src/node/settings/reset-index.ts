// The operator's permission to bootstrap again, as a file holds it: the index, and perhaps the secret that the new
// token shall have. Then nobody gets it who does not know that, and calls by others leave the file where it is.

import { AclError } from '../../acl/error.ts';
import type { SecretId } from '../../acl/ids.ts';

type Take = (isForAsker: (text: string) => boolean) => string | undefined;

/** An index with the end of its line, or with a secret. A blank alone stands for a secret that was not put in. */
const FILE = /^\s*(\d{1,15})(?:[\r\n]*|\s+(\S+)\s*)$/;
/** Nothing, or an index and a blank: it is being written, and a secret may be on its way. */
const BEGUN = /^(?:\d{1,15}[ \t]+)?$/;

/**
 * The index in the text of the file; NaN for any other text, which is left where it is; undefined without a file, where
 * it names another secret, and while it is being written. Throws 'invalid' where it cannot be taken: whoever has lost
 * all tokens is told in words, without paths, since anybody may ask.
 */
export function resetIndexOf(secret: SecretId | undefined, take: Take): number | undefined {
  let index: number | undefined;
  taken(() =>
    take((found) => {
      if (BEGUN.test(found)) return false;
      const [, digits, named = secret] = FILE.exec(found) ?? [];
      const isForAsker = digits !== undefined && named === secret;
      if (digits === undefined) index = Number.NaN;
      else if (isForAsker) index = Number(digits);
      return isForAsker;
    }),
  );
  return index;
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
