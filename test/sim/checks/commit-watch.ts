// Watches what running nodes hold to be committed, after every event: a leader moves its commit index
// by counting only to an entry of its own term, and nobody's goes back while it lives. What a leader has
// counted is committed from then on, whatever any disk says.

import type { ReplicaStatus } from '../../../cluster/replica/replica.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { Violations } from './violations.ts';

interface Seen {
  readonly life: number;
  readonly status: ReplicaStatus;
}

export interface CommitWatchOptions {
  readonly violations: Violations;
  /** Whether any disk ever held an entry of that term at that index. */
  readonly isKnown: (index: number, term: number) => boolean;
  /** A leader holds an entry of its own term to be committed. */
  readonly onCounted: (host: SimHost, index: number, term: number) => void;
}

export class CommitWatch {
  readonly #options: CommitWatchOptions;
  readonly #seenByHost = new Map<SimHost, Seen>();

  constructor(options: CommitWatchOptions) {
    this.#options = options;
  }

  look(host: SimHost, status: ReplicaStatus): void {
    this.#compare(host, status);
    const { isKnown, onCounted } = this.#options;
    const { standing, commitIndex, term } = status;
    if (standing === 'leader' && isKnown(commitIndex, term)) onCounted(host, commitIndex, term);
  }

  #compare(host: SimHost, status: ReplicaStatus): void {
    const seen = this.#seenByHost.get(host);
    this.#seenByHost.set(host, { life: host.lifeCount, status });
    if (seen === undefined || seen.life !== host.lifeCount) return;
    const { violations, isKnown } = this.#options;
    const before = seen.status;
    const goesOn =
      status.term >= before.term &&
      status.commitIndex >= before.commitIndex &&
      status.appliedIndex >= before.appliedIndex;
    violations.require(goesOn, 'commits', () => {
      return `${host.name} goes back from ${JSON.stringify(before)} to ${JSON.stringify(status)}`;
    });
    const led = before.standing === 'leader' && status.standing === 'leader';
    if (!led || before.term !== status.term || before.commitIndex === status.commitIndex) return;
    violations.require(isKnown(status.commitIndex, status.term), 'commits', () => {
      return `${host.name}, leader in term ${status.term}, commits entry ${status.commitIndex}, which no disk holds as one of that term`;
    });
  }
}
