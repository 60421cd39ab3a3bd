// Whose signature is checked, or made, when. That is done on the threads that write to the disk, too, and anybody
// may begin logins, by hundreds: so few are under way at once, the auth methods in turn, and the others wait.

import type { Clock } from '../../../cluster/platform/clock.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import { AclError } from '../../acl/error.ts';

/** Half of the threads that a process of Node has for this. */
export const CHECKS_MAX = 2;
/** A login that has not had its turns after this gives up: so long a queue becomes, and no longer. */
export const CHECK_WAIT_MAX_MS = 10_000;

/** Runs one check when it is its turn. Rejects with AclError('unavailable') where that is too late. */
export type InTurn = <T>(check: () => Promise<T>) => Promise<T>;

export class SignatureChecks {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** Those who wait, by auth method: the first method has the next turn. None is without a waiter. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #underWayCount = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** For the checks of one login; its time begins with the first of them. */
  of({ namespace, name }: Pick<AuthMethod, 'namespace' | 'name'>): InTurn {
    let untilMs: number | undefined;
    return async (check) => {
      untilMs ??= this.#clock.monotonicMs() + CHECK_WAIT_MAX_MS;
      await this.#turn(`${namespace}/${name}`);
      try {
        if (this.#clock.monotonicMs() > untilMs) throw tooLate();
        return await check();
      } finally {
        this.#pass();
      }
    };
  }

  #turn(method: string): Promise<void> | undefined {
    if (this.#underWayCount < CHECKS_MAX) {
      this.#underWayCount += 1;
      return undefined;
    }
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(method);
      if (waiting === undefined) this.#waiting.set(method, [resolve]);
      else waiting.push(resolve);
    });
  }

  /** Gives the place of a check that has ended to whoever is next; the method is the last one then. */
  #pass(): void {
    for (const [method, waiting] of this.#waiting) {
      const begin = waiting.shift();
      this.#waiting.delete(method);
      if (waiting.length > 0) this.#waiting.set(method, waiting);
      begin?.();
      return;
    }
    this.#underWayCount -= 1;
  }
}

function tooLate(): AclError {
  const text = 'too many logins wait for the check of their signature, try again later';
  return new AclError('unavailable', text);
}
