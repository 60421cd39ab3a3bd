// What a leader of the primary lets into its log of what all datacenters share. Nothing while the primary
// is handed over, and nothing while a reason stands that whoever owns the gate tells. This is for order
// and for clear words alone: that only the primary writes is decided where commands are applied.

import { AclError } from '../../../acl/error.ts';
import { isGlobalChange } from '../../../state/apply/global-changes.ts';
import type { Change } from '../../../state/commands/commands.ts';
import type { StateView } from '../../../state/view.ts';

export interface GlobalGateOptions {
  readonly view: Pick<StateView, 'token'>;
  /** The own one. */
  readonly datacenter: string;
  /** Why nothing may be written now, apart from a hand-over. Asked at every change. */
  readonly refusal: () => AclError | undefined;
  /** That the log would take nothing of what all share, as it stands: this datacenter is not the primary. */
  readonly elsewhere: () => AclError | undefined;
  /** Whether an operator may remove that datacenter by force though nothing may be written. */
  readonly mayForceOut: (datacenter: string) => boolean;
}

export class GlobalGate {
  readonly #options: GlobalGateOptions;
  #sealCount = 0;
  #underWay = 0;
  readonly #waiting = new Set<() => void>();

  constructor(options: GlobalGateOptions) {
    this.#options = options;
  }

  /** Why nothing passes; undefined when everything does. */
  closedBecause(): AclError | undefined {
    if (this.#sealCount === 0) return this.#options.refusal();
    const { datacenter } = this.#options;
    return new AclError(
      'not-primary',
      `Nothing was written: datacenter ${datacenter} is handing over what makes it the primary`,
    );
  }

  /** Proposes the change, or rejects with `closedBecause` if it is one of what all share. */
  async pass<Output>(change: Change, propose: () => Promise<Output>): Promise<Output> {
    if (!this.#mayBeGlobal(change)) return await propose();
    // Who waits for the next primary tries ten times a second: the log is not filled with that. Of a pass of the
    // housekeeping it takes what lives here alone.
    const elsewhere = change.type === 'token.reap' ? undefined : this.#options.elsewhere();
    const refusal = this.closedBecause() ?? elsewhere;
    const isKeptOut = refusal !== undefined && !this.#endsLoneliness(change);
    if (isKeptOut && this.#isGlobal(change)) throw refusal;
    this.#underWay += 1;
    try {
      return await propose();
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#tellWaiting();
    }
  }

  /** Nothing passes until what it gives is called; calling that twice is harmless. */
  seal(): () => void {
    let isSealed = true;
    this.#sealCount += 1;
    return () => {
      if (isSealed) this.#sealCount -= 1;
      isSealed = false;
    };
  }

  /** Resolves when nothing that has passed is under way any more. */
  async idle(): Promise<void> {
    if (this.#underWay === 0) return;
    await new Promise<void>((resolve) => {
      this.#waiting.add(resolve);
    });
  }

  /** An operator says who will never be heard again: a primary that waits for them could not go on without. */
  #endsLoneliness(change: Change): boolean {
    const isForced = change.type === 'datacenter.remove' && change.isForced;
    return isForced && this.#sealCount === 0 && this.#options.mayForceOut(change.name);
  }

  /** A pass of the housekeeping may be about tokens of both kinds. */
  #mayBeGlobal(change: Change): boolean {
    return change.type === 'token.reap' || this.#isGlobal(change);
  }

  #isGlobal(change: Change): boolean {
    const isLocal = (accessorId: string): boolean =>
      this.#options.view.token(accessorId)?.local === true;
    if (change.type === 'token.reap') return !change.accessorIds.every(isLocal);
    return isGlobalChange(change, isLocal);
  }

  #tellWaiting(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
