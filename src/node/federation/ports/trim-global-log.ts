// What nobody needs of the global log any more goes, some entries at a time.

import type { Command } from '../../../state/commands/commands.ts';
import type { Outcome } from '../../../state/commands/outcome.ts';
import { countIn } from '../../../state/global-log/replication.ts';
import type { StateMachine } from '../../../state/machine.ts';

export interface TrimmingDeps {
  readonly machine: Pick<StateMachine, 'replication' | 'trimmableTo'>;
  readonly propose: (command: Command) => Promise<Outcome>;
  readonly wallMs: () => number;
  readonly isReigning: () => boolean;
}

/** Drops all that nobody wants, and what the log has up to there. Rejects when this server does not lead any more. */
export async function trimGlobalLog(
  { machine, propose, wallMs, isReigning }: TrimmingDeps,
  upTo: number,
): Promise<void> {
  for (;;) {
    const before = machine.replication();
    if (before === undefined || !isReigning()) return;
    if (before.first > upTo && before.unused.length === 0) return;
    const change = { type: 'global-log.trim', upTo: machine.trimmableTo(upTo) } as const;
    await propose({ change, timeMs: wallMs(), cas: undefined, request: undefined });
    const { first, unused } = machine.replication() ?? before;
    // What nobody wants goes first: of a log that a restore or a fork has ended it may take many commands.
    const hasDropped = first > before.first || countIn(unused) < countIn(before.unused);
    if (!hasDropped) return;
  }
}
