// What the subscriber of a secondary's leader brings, or a candidate, put into the log of its own group.

import { must } from '../../../cluster/base/assert.ts';
import { Difference, type GlobalBatch } from '../../../cluster/federation/feed/feed-reader.ts';
import type { GlobalCursor } from '../../../cluster/federation/global-log.ts';
import { AclError } from '../../acl/error.ts';
import type { Change, Command } from '../../state/commands/commands.ts';
import type { Outcome } from '../../state/commands/outcome.ts';
import type { VerdictAnswer } from '../../state/global-log/verdict.ts';

export interface FollowingDeps {
  /** Rejects as `ServiceDeps.propose` says. */
  readonly propose: (command: Command) => Promise<Outcome>;
  readonly wallMs: () => number;
}

/**
 * `epoch` is that of the primary that sent it, or the one that a candidate takes it for. Resolves with the place
 * that the own state has come to, or with the wish for a snapshot where entries lead no further. Rejects when that
 * is not known, and with what stands in the way when it is not a matter of place: with Difference where the objects
 * here are wrong.
 */
export async function applyBatch(
  deps: FollowingDeps,
  epoch: number,
  { from, entries, to }: Pick<GlobalBatch, 'from' | 'entries' | 'to'>,
): Promise<GlobalCursor | 'snapshot-needed'> {
  const { verdict, cursor } = await verdictOf(deps, {
    type: 'global-log.apply',
    epoch,
    from,
    entries: entries.map(({ bytes }) => bytes),
    to,
  });
  if (verdict === 'applied' || verdict === 'other-cursor') return must(cursor, 'a cursor');
  if (verdict === 'reset') return 'snapshot-needed';
  if (verdict === 'diverged') throw new Difference(must(cursor, 'a cursor'));
  throw new AclError('internal', `the own datacenter does not take what came: ${verdict}`);
}

/** Proposes a command about the global log. Rejects with 'internal' when it was refused. */
export async function verdictOf(
  { propose, wallMs }: FollowingDeps,
  change: Change,
): Promise<VerdictAnswer> {
  const timeMs = wallMs();
  const outcome = await propose({ change, timeMs, cas: undefined, request: undefined });
  if (outcome.kind === 'refused') throw new AclError('internal', outcome.message);
  const { answer } = outcome;
  if (answer.type === 'verdict') return answer;
  throw new AclError('internal', `${change.type} was answered by ${answer.type}`);
}
