// Why a connection comes to nothing, or ends: in words for the logs of both sides, and as a code that
// tells whether an operator should care.

import type { RefusedCode } from '../../wire/frame.ts';

export class HandshakeRefusal extends Error {
  override readonly name = 'HandshakeRefusal';
  readonly code: RefusedCode;
  /** The other side said so itself, so it need not be told. */
  readonly isTheirs: boolean;

  constructor(code: RefusedCode, message: string, isTheirs: 'theirs' | 'ours' = 'ours') {
    super(message);
    this.code = code;
    this.isTheirs = isTheirs === 'theirs';
  }
}
