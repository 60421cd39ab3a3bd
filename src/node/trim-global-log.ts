// What nobody needs of the global log any more goes, some entries at a time.

import type { Command } from '../state/commands.ts';
import type { StateMachine } from '../state/machine.ts';
import type { Outcome } from '../state/outcome.ts';

export interface TrimmingDeps {
  readonly machine: Pick<StateMachine, 'replication'>;
  readonly propose: (command: Command) => Promise<Outcome>;
  readonly wallMs: () => number;
  readonly isReigning: () => boolean;
}

/** Rejects when this server does not lead any more. */
export async function trimGlobalLog(
  { machine, propose, wallMs, isReigning }: TrimmingDeps,
  upTo: number,
): Promise<void> {
  const firstKept = (): number => machine.replication()?.first ?? 0;
  for (;;) {
    const first = firstKept();
    if (first > upTo || !isReigning()) return;
    const change = { type: 'global-log.trim', upTo } as const;
    await propose({ change, timeMs: wallMs(), cas: undefined, request: undefined });
    if (firstKept() === first) return;
  }
}
