// How much the links of what is written may lead to. All of it is read in one piece, by the leader that resolves
// the links and by each server that applies the write, however long it is; and who leads to more has no rights.

import { AclError, type AclErrorCode } from '../../acl/error.ts';
import { charsIn } from '../chars-in.ts';
import { LINKED_TEXT_MAX, LINKS_MAX } from './linked-policies.ts';

/** Of one write. */
export class LinkRoom {
  readonly #code: AclErrorCode;
  readonly #ids = new Set<string>();
  #chars = 0;

  /** Of the refusal. */
  constructor(code: AclErrorCode = 'invalid') {
    this.#code = code;
  }

  /** A link leads there. Throws the refusal where that is too much with those before it. */
  take(target: { readonly id: string }): void {
    if (this.#ids.has(target.id)) return;
    this.#ids.add(target.id);
    this.#chars += charsIn(target);
    if (this.#ids.size <= LINKS_MAX && this.#chars <= LINKED_TEXT_MAX) return;
    throw new AclError(
      this.#code,
      `the links lead to more than ${LINKS_MAX} policies and roles, or to more than ${LINKED_TEXT_MAX} characters of them`,
    );
  }
}
