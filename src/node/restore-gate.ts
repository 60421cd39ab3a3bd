// Keeps what was allowed by the state of before out of the state that a restore makes. A leader checks rights
// against what it has applied, and a write enters the log behind whatever is under way: behind the last command
// of a restore it would be applied to a state that may know neither its caller nor what it was checked against.
// One leader's order is enough: the next one begins behind that command, and checks nothing before it is applied.

import { AclError } from '../acl/error.ts';
import type { Change } from '../state/commands.ts';

export class RestoreGate {
  #underWay = 0;

  /** Proposes the change. Rejects with 'unavailable' from when a restore becomes the state until it is that. */
  async pass<Output>(change: Change, propose: () => Promise<Output>): Promise<Output> {
    if (this.#underWay > 0) {
      const text = 'nothing was written: a restore replaces the state in this moment, try again';
      throw new AclError('unavailable', text);
    }
    if (change.type !== 'restore.commit') return await propose();
    this.#underWay += 1;
    try {
      return await propose();
    } finally {
      this.#underWay -= 1;
    }
  }
}
