// What operators do about the primary: look at it, move it, and settle what a primary that was left behind
// has and nobody else. Rights were asked by whoever calls; where each runs is decided here. A wish that
// another datacenter has sent on goes no further.

import { messageOf } from '../../../cluster/base/message-of.ts';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { AclError, invalid } from '../../acl/error.ts';
import type { AccessorId } from '../../acl/ids.ts';
import type { ShownPosition } from '../../api/render/shown-federation.ts';
import type {
  ShownDivergence,
  ShownDivergentEntry,
  ShownMove,
  ShownPrimary,
} from '../../api/render/shown-primary.ts';
import type { Change } from '../../state/commands/commands.ts';
import type { Outcome } from '../../state/commands/outcome.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import { isRenewingIn, successorIn } from '../../state/global-log/election.ts';
import { type EntryObject, objectsOf } from '../../state/global-log/entry-objects.ts';
import { decodeEntry, encodeEntry, type GlobalEntry } from '../../state/global-log/global-entry.ts';
import {
  countIn,
  type EntryRange,
  isPrimary,
  type Replication,
} from '../../state/global-log/replication.ts';
import type { Call } from '../call.ts';
import type { ServiceDeps } from '../deps.ts';
import { LeaderAway } from '../remote.ts';
import { rememberedOutcome } from '../writes/request-marks.ts';
import { untilNotOvertaken } from '../writes/under-way.ts';
import type { MoveWish, Resubmitted, RunInDatacenter } from './operator-operations.ts';
import type { Moved, PrimaryPort } from './primary-port.ts';
import {
  casOfChange,
  changeOfEntry,
  markOfEntry,
  requireLookedAt,
  requireVoidTokens,
} from './resubmission.ts';

export interface MovingPrimaryDeps
  extends Pick<ServiceDeps, 'view' | 'propose' | 'clock' | 'federation' | 'settings'> {
  readonly primary: PrimaryPort;
  readonly runInDatacenter: RunInDatacenter;
  /** Resolves when the state of this server has come to that place, or it does not within that time. */
  readonly arrives: (place: Position, limitMs: number) => Promise<unknown>;
}

/** Who asks, of a leader in that reign. */
export interface Asker {
  /** Accessor id; empty where ACLs are off. */
  readonly by: string;
  readonly call: Call;
  /** Undefined where nothing is to be changed. */
  readonly reign: number | undefined;
  /** Throws where they may not do it any more, and Overtaken while that is being decided. */
  readonly requireAllowed: () => void;
}

export class MovingPrimary {
  readonly #deps: MovingPrimaryDeps;

  constructor(deps: MovingPrimaryDeps) {
    this.#deps = deps;
  }

  status(): ShownPrimary {
    const { view, federation, settings } = this.#deps;
    const { datacenter, epoch } = federation.primary();
    const replication = view.replication();
    const position = view.position();
    return {
      datacenter,
      epoch,
      promisedEpoch: replication?.maxEpochPromised ?? epoch,
      position,
      head: federation.status().head,
      voters: votersOf(replication) ?? [settings.datacenter],
      closedBecause: this.#closedBecause(),
      divergentCount: countIn(replication?.divergent),
      goneCount: countIn(replication?.gone),
    };
  }

  /**
   * Rejects as `PrimaryPort`; with 'invalid' for a wish that cannot be meant. Whoever has moved the primary asks here
   * next: this datacenter knows of the new reign by then, where that comes soon.
   */
  async move(wish: MoveWish, asker: Asker): Promise<ShownMove> {
    const moved = await this.#move(wish, asker);
    const begun = { epoch: moved.epoch, seq: moved.position.seq + 1 };
    await this.#deps.arrives(begun, this.#deps.settings.visibleWaitMs);
    return moved;
  }

  async #move(wish: MoveWish, asker: Asker): Promise<ShownMove> {
    const { federation, settings, runInDatacenter } = this.#deps;
    const { mode, from } = wish;
    const target = wish.datacenter ?? settings.datacenter;
    requireWholeWish(wish);
    this.#requireElectable(target);
    const place = mode === 'hand-over' ? federation.primary().datacenter : target;
    if (place === settings.datacenter) return await this.#moveHere(target, wish, asker);
    if (from !== undefined) {
      const text = `nothing was changed: ${from} asks ${settings.datacenter}, and this is for ${place} to do by now`;
      throw new AclError('unavailable', text);
    }
    const input = { ...wish, datacenter: target, from: settings.datacenter };
    return await runInDatacenter(place, 'primary-move', { input, call: asker.call });
  }

  /** The oldest entries, how many there are, and which are gone. */
  async divergence(limit: number): Promise<ShownDivergence> {
    const { view } = this.#deps;
    const entries = await view.divergentEntries(limit);
    const { divergent, gone = [] } = view.replication() ?? {};
    return {
      count: countIn(divergent),
      entries: entries.map(shownOf),
      gone: gone.map((range) => ({
        first: { epoch: range.epoch, seq: range.first },
        last: { epoch: range.epoch, seq: range.last },
        count: countIn([range]),
      })),
    };
  }

  /**
   * The primary makes the change anew; then the entry is settled. Rejects with 'outcome-unknown' where that alone is
   * not known.
   */
  async resubmit(
    { position, cas }: { readonly position: ShownPosition; readonly cas: number | undefined },
    asker: Asker,
  ): Promise<Resubmitted> {
    const { federation, settings, runInDatacenter } = this.#deps;
    const entry = this.#entryAt(position);
    // What cannot be made again is refused before anybody else is asked.
    changeOfEntry(entry);
    const input = { entry: encodeEntry(entry), cas };
    const { datacenter } = federation.primary();
    const made =
      datacenter === settings.datacenter
        ? await this.take(input, asker)
        : await runInDatacenter(datacenter, 'divergence-take', { input, call: asker.call });
    await this.#drop(position, asker).catch((cause: unknown) => {
      const { epoch, seq } = made.position;
      const again = 'the same command again settles it, and makes nothing twice';
      const says = `the change was made anew, at position ${epoch}.${seq}, and the entry may still be listed here: ${again}`;
      throw new AclError('outcome-unknown', `${says} (${messageOf(cause)})`, { cause });
    });
    return made;
  }

  /** At the primary. */
  async take(
    { entry: bytes, cas }: { readonly entry: Uint8Array; readonly cas: number | undefined },
    asker: Asker,
  ): Promise<Resubmitted> {
    this.#requirePrimary();
    const entry = decodeEntry(bytes);
    const change = changeOfEntry(entry);
    const request = markOfEntry(entry);
    const { clock, view } = this.#deps;
    const nowMs = clock.wallMs();
    const isMade = rememberedOutcome(view, request, nowMs) !== undefined;
    if (!isMade) {
      requireVoidTokens(view, entry, change, nowMs);
      requireLookedAt(view, { entry, change, cas });
    }
    const requireAllowed = (): void => {
      asker.requireAllowed();
      this.#requirePrimary();
    };
    // Also where it is made: what is remembered of that may be forgotten before this is in the log.
    const also = { cas: casOfChange(change, cas), request };
    const { index, position } = await this.#propose(change, { ...asker, requireAllowed }, also);
    return { index, position };
  }

  /**
   * Of void tokens that are not here the log would take nothing, and say so to nobody: whoever knows of a later reign,
   * and still has what it left behind, would have made again what it deleted itself.
   */
  #requirePrimary(): void {
    const closed = this.#deps.federation.closedBecause();
    if (closed !== undefined) throw closed;
  }

  async discard(position: ShownPosition | undefined, asker: Asker): Promise<'done'> {
    if (position !== undefined) {
      this.#entryAt(position);
      if (await this.#drop(position, asker)) return 'done';
      const { epoch, seq } = position;
      const text = `Entry ${epoch}.${seq} is not set apart any more: nothing was forgotten`;
      throw new AclError('not-found', text);
    }
    const count = countIn(this.#unsettled);
    // What comes meanwhile nobody has looked at.
    for (const { epoch, last: upTo } of this.#unsettled) {
      const change = { type: 'divergent.discard', epoch, upTo } as const;
      while (this.#unsettled.some((each) => each.epoch === epoch && each.first <= upTo)) {
        await this.#propose(change, asker).catch((cause: unknown) => {
          throw this.#stoppedHalfway(count, cause);
        });
      }
    }
    return 'done';
  }

  get #unsettled(): readonly EntryRange[] {
    const { divergent = [], gone = [] } = this.#deps.view.replication() ?? {};
    return [...divergent, ...gone];
  }

  /** `count`: of those that were to be forgotten. */
  #stoppedHalfway(count: number, cause: unknown): unknown {
    const done = count - countIn(this.#unsettled);
    // Another leader, or a later try, goes on from there. There may be more by now than there were.
    if (done <= 0 || !(cause instanceof AclError) || cause instanceof LeaderAway) return cause;
    const says = `${done} of ${count} entries are forgotten, and the same command goes on with the others`;
    return new AclError(cause.code, `${says}: ${cause.message}`, { cause });
  }

  async #moveHere(
    target: string,
    { mode, epoch = 0 }: MoveWish,
    { requireAllowed }: Asker,
  ): Promise<ShownMove> {
    const { federation, settings } = this.#deps;
    // A primary that a promise to another one has outrun may have to be elected again, or forced.
    const isClosed = this.#deps.primary.closedBecause() !== undefined;
    const isNothing = this.#isPrimary() && mode !== 'election' && !(mode === 'forced' && isClosed);
    if (isNothing && target === settings.datacenter) {
      throw invalid(`${target} is the primary already`);
    }
    const { head } = federation.status();
    const { position, ...moved } = await this.#moved(target, { mode, epoch, requireAllowed });
    return {
      ...{ ...moved, datacenter: target, position },
      head: head.seq > position.seq ? head : position,
    };
  }

  async #moved(
    target: string,
    {
      mode,
      epoch,
      requireAllowed,
    }: Pick<Asker, 'requireAllowed'> & {
      readonly mode: MoveWish['mode'];
      readonly epoch: number;
    },
  ): Promise<Moved> {
    const { primary } = this.#deps;
    switch (mode) {
      case 'hand-over':
        return await primary.handOver(target, requireAllowed);
      case 'election':
        return await primary.elect(requireAllowed);
      case 'forced': {
        const next = primary.nextEpoch();
        if (epoch !== next) throw invalid(`The next epoch is ${next}, not ${epoch}`);
        return await primary.force(epoch, requireAllowed);
      }
      default:
        return unreachable(mode);
    }
  }

  #requireElectable(target: string): void {
    const replication = this.#deps.view.replication();
    if (replication === undefined) {
      throw invalid('There is no other datacenter: the primary stays where it is');
    }
    const datacenters = replication.datacenters.filter(({ isRemoved }) => isRemoved !== true);
    const found = datacenters.find(({ name }) => name === target);
    if (found?.isWitness === true) {
      throw invalid(`${target} is a witness: it has no objects, and cannot be the primary`);
    }
    if (found !== undefined) return;
    const names = datacenters.map(({ name }) => name).join(', ');
    throw invalid(`${target} is none of the datacenters of the federation: ${names}`);
  }

  /**
   * Why nothing of what all share is written here, where this is the primary, or was until it promised; anywhere, where
   * nobody is the primary because the last one has lost its reign.
   */
  #closedBecause(): string {
    const { federation, primary, view } = this.#deps;
    if (this.#isPrimary()) return primary.closedBecause()?.message ?? '';
    const lost = primary.lostReign();
    if (lost !== undefined) return lost;
    const replication = view.replication();
    if (replication === undefined) return '';
    const { datacenter, maxEpochPromised: maxEpoch } = replication;
    if (isRenewingIn(replication)) {
      return `${datacenter} has promised epoch ${maxEpoch} to itself, and it has not begun: \`conclave operator promote ${datacenter} --election\` tries again, and says what is in the way`;
    }
    const successor = successorIn(replication);
    if (successor === undefined) return '';
    // Why, whoever follows knows: the next one may have begun, and its log may not come.
    const { lastError = '' } =
      federation.status().datacenters.find(({ name }) => name === datacenter) ?? {};
    const why = lastError && ` (last error: ${lastError})`;
    return `${datacenter} has promised epoch ${maxEpoch} to ${successor}, and has heard of no entry of it${why}: if ${successor} does not begin, \`conclave operator promote ${successor}\` tries again, and \`conclave operator promote ${datacenter} --election\` takes it back`;
  }

  #isPrimary(): boolean {
    const replication = this.#deps.view.replication();
    return replication === undefined || isPrimary(replication);
  }

  #entryAt({ epoch, seq }: ShownPosition): GlobalEntry {
    const entry = this.#deps.view.divergentEntry({ epoch, seq });
    if (entry !== undefined) return entry;
    const { gone = [] } = this.#deps.view.replication() ?? {};
    const isGone = gone.some(
      (range) => range.epoch === epoch && range.first <= seq && seq <= range.last,
    );
    throw new AclError(
      'not-found',
      isGone
        ? `Entry ${epoch}.${seq} is gone: it was trimmed before this datacenter knew that nobody else has it`
        : `There is no divergent entry ${epoch}.${seq} in this datacenter`,
    );
  }

  /** Whether it was still there: somebody may have settled it, or made it part of the log again by an election. */
  async #drop({ epoch, seq }: ShownPosition, asker: Asker): Promise<boolean> {
    const { answer } = await this.#propose({ type: 'divergent.drop', epoch, seq }, asker);
    return answer.type !== 'verdict' || answer.verdict === 'applied';
  }

  async #propose(
    change: Change,
    { by, reign, requireAllowed }: Asker,
    also: Pick<Parameters<ServiceDeps['propose']>[0], 'cas' | 'request'> = NO_MORE,
  ): Promise<Extract<Outcome, { kind: 'applied' }>> {
    const { clock, propose, settings } = this.#deps;
    const principal = by === '' ? undefined : (by as AccessorId);
    const outcome = await untilNotOvertaken({ clock, limitMs: settings.leaderWaitMs }, () => {
      requireAllowed();
      return propose({ change, timeMs: clock.wallMs(), principal, ...also }, reign);
    });
    if (outcome.kind === 'applied') return outcome;
    throw new AclError(outcome.code, outcome.message);
  }
}

const NO_MORE = { cas: undefined, request: undefined };

function requireWholeWish({ mode, epoch, acceptsLoss }: MoveWish): void {
  if (mode !== 'forced') {
    if (epoch === undefined && !acceptsLoss) return;
    throw invalid('Epoch and AcceptLoss are for a forced move alone');
  }
  if (epoch === undefined) throw invalid('A forced move must name the next Epoch');
  if (acceptsLoss) return;
  throw invalid(
    'A forced move loses what the others have and this datacenter has not: say AcceptLoss',
  );
}

function votersOf(replication: Replication | undefined): readonly string[] | undefined {
  return replication?.datacenters.filter(({ isVoter }) => isVoter).map(({ name }) => name);
}

function shownOf(entry: GlobalEntry): ShownDivergentEntry {
  const { epoch, seq, timeMs, principal, body } = entry;
  const objects = objectsOf(entry).map((each) => ({
    kind: each.kind,
    id: each.id,
    name: nameOf(each),
    isDeleted: each.object === undefined,
  }));
  return { position: { epoch, seq }, timeMs, principal, kind: body.kind, objects };
}

/** What people call it; never the secret of a token. */
function nameOf({ object }: EntryObject): string {
  const { name, description } = (object ?? {}) as { name?: string; description?: string };
  return name ?? description ?? '';
}
