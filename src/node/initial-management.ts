// The management token that settings ask for. It is made where no token has the secret, and once: a token that had
// it and was deleted was revoked, and neither the next election nor the next start brings it back. Each server
// remembers that beside its databases, for the secret that its own settings have.

import { sha256 } from '../../cluster/platform/sha256.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { SecretId } from '../acl/ids.ts';
import type { StateView } from '../state/view.ts';
import type { AppliedEvent, Watch } from '../state/watch.ts';
import type { KeptText } from './platform.ts';

export interface InitialManagementOptions {
  /** `acl.tokens.initial_management`. */
  readonly secret: SecretId | undefined;
  readonly view: Pick<StateView, 'tokenBySecret'>;
  readonly watch: Pick<Watch, 'onApplied'>;
  /** Holds the hash of the last such secret that a token was seen to have. */
  readonly kept: KeptText;
  readonly logger: Logger;
}

export class InitialManagement {
  readonly #options: InitialManagementOptions;
  #hasStood = false;
  #isKept = false;
  #isTold = false;

  constructor(options: InitialManagementOptions) {
    this.#options = options;
    const { secret, kept, watch } = options;
    if (secret === undefined) return;
    this.#isKept = kept.read() === markOf(secret);
    this.#hasStood = this.#isKept;
    this.#look(secret);
    watch.onApplied((event) => {
      if (!this.#isKept && isOfTokens(event)) this.#look(secret);
    });
  }

  /** The secret of which a token is to be made where none has it; undefined where there is none to make. */
  secretToMake(): SecretId | undefined {
    const { secret, view, logger } = this.#options;
    if (secret === undefined || !this.#hasStood) return secret;
    const isGone = view.tokenBySecret(secret) === undefined;
    if (isGone && !this.#isTold) {
      const says =
        'acl.tokens.initial_management makes no token: one had this secret before, and is there no more';
      logger.warn({}, says);
    }
    this.#isTold = isGone;
    return undefined;
  }

  #look(secret: SecretId): void {
    const { view, kept, logger } = this.#options;
    if (this.#isKept || view.tokenBySecret(secret) === undefined) return;
    this.#hasStood = true;
    try {
      kept.write(markOf(secret));
      this.#isKept = true;
    } catch (cause) {
      // For as long as this process runs it is remembered all the same; the next change tries again.
      logger.warn({ cause }, 'that the initial management token was made could not be kept');
    }
  }
}

function isOfTokens(event: AppliedEvent): boolean {
  return event.kind === 'replaced' || event.changes.some(({ table }) => table === 'tokens');
}

/** The secret itself is in the databases alone. */
function markOf(secret: SecretId): string {
  return Buffer.from(sha256(Buffer.from(secret))).toString('hex');
}
