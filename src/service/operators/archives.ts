// Archives of the state: saved from what this server has, and restored at the leader. A restore is taken in
// and checked as a whole before anything is proposed; then its rows go through the log, and the last
// command makes them the state on every server at once.

import { AssertionError } from '../../../cluster/base/assert.ts';
import { AclError } from '../../acl/error.ts';
import { ArchiveDamage } from '../../state/archive/archive-damage.ts';
import { ArchiveReader } from '../../state/archive/archive-reader.ts';
import { writeArchive } from '../../state/archive/archive-writer.ts';
import type { StateMachine } from '../../state/machine.ts';
import { decodeMeta, encodeMeta } from '../../state/rows/meta.ts';
import { SnapshotDamage } from '../../state/snapshot/snapshot-damage.ts';
import type { SnapshotIntake, TakenIn } from '../../state/snapshot/snapshot-intake.ts';
import type { ServiceDeps } from '../deps.ts';
import { ensureBuiltins } from '../duties/duties.ts';
import type { Archives, RestoreIntake } from './operator-port.ts';
import { proposeRestore, type RestoreTerms } from './propose-restore.ts';

export interface ArchivesDeps
  extends Pick<
    ServiceDeps,
    'view' | 'propose' | 'reign' | 'clock' | 'random' | 'logger' | 'metrics' | 'settings'
  > {
  readonly machine: Pick<StateMachine, 'appliedEntry' | 'snapshot' | 'beginRestore'>;
  /** The id of the group; undefined before there is one. */
  readonly clusterId: () => string | undefined;
  /** The version of the program. */
  readonly release: string;
}

export function openArchives(deps: ArchivesDeps): Archives {
  return {
    save: () => {
      const { machine, settings, clock, release, clusterId } = deps;
      if (machine.appliedEntry === undefined) {
        throw new AclError('unavailable', 'this server has no state yet');
      }
      const snapshot = machine.snapshot();
      const { datacenter } = settings;
      const origin = { release, datacenter, cluster: clusterId() ?? '', createdMs: clock.wallMs() };
      return {
        chunks: () => writeArchive(snapshot, origin),
        close: () => snapshot.close(),
      };
    },
    beginRestore: async (requireAllowed) => {
      const reign = await deps.reign();
      const intake = await deps.machine.beginRestore().catch((error: unknown) => {
        throw refusalOf(error, deps);
      });
      if (intake !== undefined) return new ArchiveIntake(deps, intake, { reign, requireAllowed });
      throw new AclError('unavailable', 'another state is being taken in at this moment');
    },
  };
}

class ArchiveIntake implements RestoreIntake {
  readonly #deps: ArchivesDeps;
  readonly #intake: SnapshotIntake;
  readonly #terms: RestoreTerms;
  readonly #reader = new ArchiveReader();
  #failure: unknown;

  constructor(deps: ArchivesDeps, intake: SnapshotIntake, terms: RestoreTerms) {
    this.#deps = deps;
    this.#intake = intake;
    this.#terms = terms;
  }

  add(bytes: Uint8Array): Promise<void> {
    return this.#orRefusal(async () => {
      for (const chunk of this.#reader.take(bytes)) {
        this.#requireDatacenter();
        await this.#intake.add(chunk);
      }
    });
  }

  async finish(): Promise<{ readonly index: number }> {
    const taken = await this.#orRefusal(() => this.#complete());
    const rows = this.#intake.restoredRows();
    const metaRow = this.#inOwnEpoch(taken.metaRow);
    const index = await proposeRestore(this.#deps, this.#terms, { rows, metaRow });
    this.#deps.logger.warn({ index, logIndex: taken.appliedEntry.index }, 'the state was restored');
    await this.#addMissing();
    return { index };
  }

  abandon(): Promise<void> {
    return this.#intake.abandon();
  }

  async #complete(): Promise<TakenIn> {
    this.#reader.end();
    this.#requireDatacenter();
    const taken = await this.#intake.complete();
    this.#requireLevel(taken);
    return taken;
  }

  /**
   * An archive of another federation, or of the time before this one was begun, may be of a later epoch. With that one
   * a reign would begin that nobody has promised, and all who have promised another one would yield to it.
   */
  #inOwnEpoch(metaRow: Uint8Array): Uint8Array {
    const { epoch } = this.#deps.view.replication()?.cursor ?? {};
    const meta = decodeMeta(metaRow);
    if (epoch === undefined || meta.position.epoch <= epoch) return metaRow;
    return encodeMeta({ ...meta, position: { ...meta.position, epoch } });
  }

  /** All that is restored goes through the log, which says nothing that one of its readers cannot read. */
  #requireLevel({ level }: TakenIn): void {
    const { usesLevel } = this.#deps.view;
    if (level <= usesLevel) return;
    const found = `the archive is of feature level ${level}, and this datacenter uses ${usesLevel}`;
    const wayOn = 'upgrade those that `conclave operator autopilot state` says it waits for';
    throw new AclError('unavailable', `nothing was changed: ${found}: ${wayOn}`);
  }

  #requireDatacenter(): void {
    const { datacenter } = this.#deps.settings;
    const found = this.#reader.info?.datacenter;
    if (found === undefined || found === datacenter) return;
    const text = `the archive is of datacenter "${found}", this is "${datacenter}": nothing was changed`;
    throw new AclError('invalid', text);
  }

  /** An older state may lack what this release, or this configuration, takes for granted. */
  async #addMissing(): Promise<void> {
    try {
      await ensureBuiltins(this.#deps);
    } catch (cause) {
      const says =
        'built-in objects may be missing in the restored state until another server leads';
      this.#deps.logger.warn({ cause }, says);
    }
  }

  async #orRefusal<T>(work: () => Promise<T>): Promise<T> {
    // What came behind it was not looked at.
    if (this.#failure !== undefined) throw this.#failure;
    try {
      return await work();
    } catch (error) {
      this.#failure = refusalOf(error, this.#deps);
      throw this.#failure;
    }
  }
}

/** What is no fault of ours or of the archive is one of the disk on which it is kept until it is whole. */
function refusalOf(error: unknown, { logger }: Pick<ArchivesDeps, 'logger'>): unknown {
  if (error instanceof AclError || error instanceof AssertionError) return error;
  if (error instanceof ArchiveDamage || error instanceof SnapshotDamage) {
    return new AclError('malformed', `nothing was changed: ${error.message}`, { cause: error });
  }
  logger.error({ cause: error }, 'an archive that is to be restored cannot be kept');
  const says = 'the leader cannot keep the archive on its disk, and its log says why';
  return new AclError('unavailable', `nothing was changed: ${says}`, { cause: error });
}
