// Snapshots of the global objects between this server's state and the federation: lent where this server
// leads the primary, and put into the log of its own group where it leads a secondary. The first piece is
// the header, which says what the others are of.

import type { GlobalSnapshot } from '../../../../cluster/federation/snapshot/snapshot-lender.ts';
import type { SnapshotSink } from '../../../../cluster/federation/snapshot/snapshot-sink.ts';
import { AclError } from '../../../acl/error.ts';
import type { Change } from '../../../state/commands/commands.ts';
import type { GlobalSnapshot as GlobalSnapshotOfState } from '../../../state/global-log/global-snapshot.ts';
import type { Verdict } from '../../../state/global-log/verdict.ts';
import type { StateMachine } from '../../../state/machine.ts';
import { requireReadable, UnreadableRow } from '../../../state/rows/layout/readable-row.ts';
import { RowParser } from '../../../state/snapshot/row-parser.ts';
import { abandonImport, type TakingDeps, verdictOf } from './follow-primary.ts';

/** Local rows that one command carries over: applying it must not keep the event loop for long. */
const CARRIED_MAX = 512;

/** What this server can lend at the moment. Rejects with 'unavailable' when it is of no place in the log. */
export async function lentBy(
  machine: Pick<StateMachine, 'globalSnapshot'>,
): Promise<GlobalSnapshot> {
  const snapshot = await machine.globalSnapshot();
  if (snapshot === undefined) {
    throw new AclError('unavailable', 'the objects here are of no place in the global log');
  }
  return {
    cursor: snapshot.cursor,
    chunks: async function* chunks() {
      yield snapshot.header;
      yield* snapshot.pieces();
    },
    close: () => snapshot.close(),
  };
}

/** Makes the own snapshot of an earlier place the state. Rejects with whatever went wrong; nothing is lost. */
export async function takeBack(
  sink: SnapshotSink,
  snapshotId: string,
  snapshot: Pick<GlobalSnapshotOfState, 'header' | 'pieces'>,
): Promise<void> {
  let number = 0;
  await sink.add({ snapshotId, number, bytes: snapshot.header });
  for await (const bytes of snapshot.pieces()) {
    number += 1;
    await sink.add({ snapshotId, number, bytes });
  }
  await sink.commit({ snapshotId, pieceCount: number + 1 });
}

type SinkDeps = Omit<TakingDeps, 'machine'>;
type Staging = Pick<StateMachine, 'importUnderWay' | 'localRows' | 'replication'>;

export class GlobalSnapshotSink implements SnapshotSink {
  readonly #machine: Staging;
  readonly #deps: SinkDeps;

  constructor(machine: Staging, deps: SinkDeps) {
    this.#machine = machine;
    this.#deps = deps;
  }

  staged(): { readonly snapshotId: string; readonly nextNumber: number } | undefined {
    const known = this.#machine.importUnderWay();
    return known && { snapshotId: known.id, nextNumber: known.chunkCount + 1 };
  }

  /** The header says more, and comes with the first piece. */
  begin(): Promise<void> {
    return Promise.resolve();
  }

  async add({ snapshotId: id, number, bytes }: Parameters<SnapshotSink['add']>[0]): Promise<void> {
    if (number === 0) {
      await this.#applied({ type: 'global-snapshot.begin', id, header: bytes });
      return;
    }
    // A witness takes the place, and none of the objects.
    if (this.#machine.replication()?.isWitness === true) return;
    const known = this.#machine.importUnderWay();
    if (known?.id === id && known.chunkCount >= number) return;
    requireReadableRows(bytes);
    await this.#applied({ type: 'global-snapshot.chunk', id, number, rows: bytes });
  }

  /** From now on it may be in place, however long a disk hangs: what is staged before leads nowhere by itself. */
  async commit({ snapshotId: id }: Parameters<SnapshotSink['commit']>[0]): Promise<void> {
    const known = this.#machine.importUnderWay();
    if (known === undefined) await this.#commit(id);
    else await this.#deps.coming.until(known.cursor, () => this.#commit(id));
  }

  async #commit(id: string): Promise<void> {
    await this.#carry(id);
    const change = { type: 'global-snapshot.commit', id } as const;
    const { verdict } = await verdictOf(this.#deps, change);
    if (verdict === 'applied') return;
    // The own datacenter has gone on meanwhile, or the snapshot is not what it says of itself: whoever went on with it
    // would come to the same end each time.
    await abandonImport(this.#deps, id);
    throw notTaken(change, verdict);
  }

  /** From the first, empty batch on, what changes here goes into both states; then comes what there is. */
  async #carry(id: string): Promise<void> {
    let number = this.#machine.importUnderWay()?.carryCount ?? 0;
    const carry = async (keys: readonly Uint8Array[], isLast: boolean): Promise<void> => {
      number += 1;
      await this.#applied({ type: 'global-snapshot.carry', id, number, keys, isLast });
    };
    if (number === 0) await carry([], false);
    let after: Uint8Array | undefined;
    while (this.#machine.importUnderWay()?.isCarried === false) {
      const keys = await this.#machine.localRows(after, CARRIED_MAX);
      after = keys.at(-1) ?? after;
      await carry(keys, keys.length === 0);
    }
  }

  /** Rejects with what stands in the way. */
  async #applied(change: Change): Promise<void> {
    const { verdict } = await verdictOf(this.#deps, change);
    if (verdict !== 'applied') throw notTaken(change, verdict);
  }
}

function notTaken({ type }: Change, verdict: Verdict): AclError {
  return new AclError('internal', `the snapshot was not taken in, at ${type}: ${verdict}`);
}

/** Before it is in the log, where nobody could pass it over. Throws 'internal'. */
function requireReadableRows(piece: Uint8Array): void {
  const unreadable = (says: string): AclError =>
    new AclError('internal', `the snapshot was not taken in: ${says}`);
  try {
    for (const row of new RowParser(unreadable).take(piece)) requireReadable(row);
  } catch (error) {
    throw error instanceof UnreadableRow ? unreadable(error.message) : error;
  }
}
