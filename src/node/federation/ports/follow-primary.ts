// What the subscriber of a secondary's leader brings, or a candidate, put into the log of its own group.

import { must } from '../../../../cluster/base/assert.ts';
import { Difference, type GlobalBatch } from '../../../../cluster/federation/feed/feed-reader.ts';
import type { GlobalCursor, GlobalEntry } from '../../../../cluster/federation/global-log.ts';
import { AclError } from '../../../acl/error.ts';
import type { Change, Command } from '../../../state/commands/commands.ts';
import type { Outcome } from '../../../state/commands/outcome.ts';
import { changedKeys } from '../../../state/global-log/global-entry.ts';
import type { VerdictAnswer } from '../../../state/global-log/verdict.ts';
import { IN_ONE_PIECE_BYTES } from '../../../state/in-one-piece.ts';
import type { StateMachine } from '../../../state/machine.ts';
import type { ComingEntries } from './coming-entries.ts';

export interface FollowingDeps {
  /** Rejects as `ServiceDeps.propose` says. */
  readonly propose: (command: Command) => Promise<Outcome>;
  readonly wallMs: () => number;
}

export interface TakingDeps extends FollowingDeps {
  readonly coming: Pick<ComingEntries, 'until'>;
  readonly machine: Pick<StateMachine, 'importUnderWay' | 'rowBytes'>;
}

type Piece = Pick<GlobalBatch, 'from' | 'entries' | 'to'>;

/**
 * `epoch` is that of the primary that sent it, or the one that a candidate takes it for. Resolves with the place
 * that the own state has come to, or with the wish for a snapshot where entries lead no further. Rejects when that
 * is not known, and with what stands in the way when it is not a matter of place: with Difference where the objects
 * here are wrong. It is coming until all of it is decided.
 */
export function applyBatch(
  deps: TakingDeps,
  epoch: number,
  batch: Piece,
): Promise<GlobalCursor | 'snapshot-needed'> {
  return deps.coming.until(batch.to, () => takenBatch(deps, epoch, batch));
}

async function takenBatch(
  deps: TakingDeps,
  epoch: number,
  batch: Piece,
): Promise<GlobalCursor | 'snapshot-needed'> {
  await abandonLaterImport(deps, epoch);
  // At once and in order: each names the one before it, so that none waits for it.
  const pieces = [...piecesOf(batch, deps)].map(({ from, entries, to }) =>
    verdictOf(deps, {
      type: 'global-log.apply',
      epoch,
      from,
      entries: entries.map(({ bytes }) => bytes),
      to,
    }),
  );
  // What became of one says nothing of the others.
  await Promise.allSettled(pieces);
  const answers = await Promise.all(pieces);
  // What comes behind one that was not taken does not fit.
  const answer = answers.find(({ verdict: each }) => each !== 'applied') ?? answers.at(-1);
  const { verdict, cursor } = must(answer, 'a batch of one entry or more');
  if (verdict === 'applied' || verdict === 'other-cursor') return must(cursor, 'a cursor');
  if (verdict === 'reset') return 'snapshot-needed';
  if (verdict === 'diverged') throw new Difference(must(cursor, 'a cursor'));
  throw new AclError('internal', `the own datacenter does not take what came: ${verdict}`);
}

/**
 * What a snapshot has of this datacenter already does not hear of what entries of an earlier reign do to it: a local
 * token whose namespace they delete would be as it was before. So whoever goes on with that reign lets it go first.
 */
async function abandonLaterImport(deps: TakingDeps, epoch: number): Promise<void> {
  const coming = deps.machine.importUnderWay();
  if (coming !== undefined && coming.cursor.epoch > epoch) await abandonImport(deps, coming.id);
}

/** The snapshot of that id is wanted no more. Rejects as `propose` does. */
export async function abandonImport({ propose, wallMs }: FollowingDeps, id: string): Promise<void> {
  const change = { type: 'restore.abandon', id } as const;
  await propose({ change, timeMs: wallMs(), cas: undefined, request: undefined });
}

/**
 * Every server reads in one piece, and holds, the objects that a command changes, and a short entry can be about a
 * long one: each piece ends behind the entry that makes them so many bytes.
 */
function* piecesOf({ from, entries, to }: Piece, { machine }: TakingDeps): Generator<Piece, void> {
  let begin = from;
  let piece: GlobalEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    piece.push(entry);
    for (const key of changedKeys(entry.bytes)) bytes += machine.rowBytes(key);
    if (bytes < IN_ONE_PIECE_BYTES) continue;
    const { epoch, seq, hash } = entry;
    const end = { epoch, seq, hash };
    yield { from: begin, entries: piece, to: end };
    [begin, piece, bytes] = [end, [], 0];
  }
  if (piece.length > 0 || entries.length === 0) yield { from: begin, entries: piece, to };
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
