// How many logins by OpenID have been begun and not ended. Anybody may begin one, and every server stores it
// until its time is over, so the leader counts them before it proposes one more. What earlier leaders let in is
// read from the state, once in a reign. The log knows nothing of this bound.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { AclError } from '../../acl/error.ts';
import { OIDC_PENDING_MS, type PendingLogin } from '../../auth-methods/oidc/oidc.ts';
import type { StateView } from '../../state/view.ts';

export interface PendingLoginLimits {
  readonly countMax: number;
  /** Of one auth method: whoever begins logins of one leaves room to the others. */
  readonly methodCountMax: number;
}

/** By the largest that may be begun, some 64 MB. */
const LIMITS: PendingLoginLimits = { countMax: 8192, methodCountMax: 4096 };

export interface PendingLoginsDeps {
  readonly view: Pick<StateView, 'oldPendingLogins' | 'pendingLogin'>;
  readonly clock: Clock;
}

export class PendingLogins {
  readonly #deps: PendingLoginsDeps;
  readonly #limits: PendingLoginLimits;
  #ofReign: { readonly reign: number; readonly tally: Promise<Tally> } | undefined;

  constructor(deps: PendingLoginsDeps, limits = LIMITS) {
    this.#deps = deps;
    this.#limits = limits;
  }

  /** Counts it from now on; rejects with 'unavailable' when there are too many. */
  async begin(login: PendingLogin, reign: number): Promise<void> {
    const tally = await this.#tallyOf(reign);
    tally.forgetOld();
    tally.requireRoom(login);
    tally.add(login, OIDC_PENDING_MS);
  }

  /** It is not stored any more, or never was. */
  async end(state: string, reign: number): Promise<void> {
    if (this.#ofReign?.reign === reign) (await this.#ofReign.tally).remove(state);
  }

  #tallyOf(reign: number): Promise<Tally> {
    if (this.#ofReign?.reign === reign) return this.#ofReign.tally;
    const ofReign = { reign, tally: this.#readTally() };
    this.#ofReign = ofReign;
    ofReign.tally.catch(() => {
      // Whoever comes next reads the state once more.
      if (this.#ofReign === ofReign) this.#ofReign = undefined;
    });
    return ofReign.tally;
  }

  async #readTally(): Promise<Tally> {
    const { clock, view } = this.#deps;
    const tally = new Tally(clock, this.#limits);
    // Those that were begun by a clock that is ahead of this one count as well.
    const states = await view.oldPendingLogins(Number.MAX_SAFE_INTEGER, this.#limits.countMax);
    for (const state of states) {
      const stored = view.pendingLogin(state);
      if (stored === undefined) continue;
      const login = JSON.parse(Buffer.from(stored.value).toString('utf8')) as PendingLogin;
      const leftMs = stored.expiresMs - clock.wallMs();
      tally.add(login, Math.min(Math.max(leftMs, 0), OIDC_PENDING_MS));
    }
    return tally;
  }
}

interface Counted {
  readonly method: string;
  /** By the clock that never goes back. */
  readonly untilMs: number;
}

class Tally {
  readonly #clock: Clock;
  readonly #limits: PendingLoginLimits;
  /** Those whose time is over first come first. */
  readonly #byState = new Map<string, Counted>();
  readonly #countByMethod = new Map<string, number>();

  constructor(clock: Clock, limits: PendingLoginLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  requireRoom({ method }: PendingLogin): void {
    const { countMax, methodCountMax } = this.#limits;
    const ofMethod = this.#countByMethod.get(keyOf(method)) ?? 0;
    if (ofMethod < methodCountMax && this.#byState.size < countMax) return;
    const [count, whose] =
      ofMethod < methodCountMax
        ? [countMax, 'OIDC']
        : [methodCountMax, `auth method ${JSON.stringify(method.name)}`];
    const text = `nothing was begun: ${count} logins of ${whose} wait for their end already, try again later`;
    throw new AclError('unavailable', text);
  }

  add({ method, state }: PendingLogin, leftMs: number): void {
    const key = keyOf(method);
    this.#byState.set(state, { method: key, untilMs: this.#clock.monotonicMs() + leftMs });
    this.#countByMethod.set(key, (this.#countByMethod.get(key) ?? 0) + 1);
  }

  remove(state: string): void {
    const counted = this.#byState.get(state);
    if (counted === undefined) return;
    this.#byState.delete(state);
    const left = (this.#countByMethod.get(counted.method) ?? 0) - 1;
    if (left > 0) this.#countByMethod.set(counted.method, left);
    else this.#countByMethod.delete(counted.method);
  }

  forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [state, { untilMs }] of this.#byState) {
      if (untilMs > nowMs) return;
      this.remove(state);
    }
  }
}

function keyOf({ namespace, name }: PendingLogin['method']): string {
  return `${namespace}/${name}`;
}
