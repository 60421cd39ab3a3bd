// What clients do in a run, and how their answers are judged. Clients belong to no host: they ask any
// node, lose answers, and try again.

import type { SimHost } from '../world/sim-host.ts';

export interface Workload {
  /** Clients begin, and go on until `stop`. */
  begin(): void;
  /** Nobody begins anything new. */
  stop(): void;
  /** Whether nothing is under way. */
  readonly isIdle: boolean;
  /** One write and one read through each of these; resolves with what was not answered. */
  probe(hosts: readonly SimHost[], timeoutMs: number): Promise<readonly string[]>;
  /** At the end: whether all answers are true to the log that was committed. */
  judge(): Promise<void>;
  /** For the summary. */
  readonly counts: Readonly<Record<string, number>>;
}
