// Which level the log of this datacenter uses, and when it may use a higher one. While this server leads it
// raises the level as soon as everybody reads it: every member, whether it votes or not, and in the primary
// every other datacenter, which has then raised its own. So a secondary always reads what its primary writes.
// With the level at which there is a global log at all nobody waits for other datacenters: see readersElsewhere.

import type { MemberView } from '../../../cluster/member/group-member.ts';
import { Repeated } from '../../../cluster/member/seat/repeated.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import { AclError } from '../../acl/error.ts';
import type { Command } from '../../state/commands/commands.ts';
import { GLOBAL_LOG_LEVEL, readableAt } from '../../state/commands/feature-levels.ts';
import type { Outcome } from '../../state/commands/outcome.ts';

/** Who has to read the log, and up to which level; undefined: nobody knows at the moment. */
export interface LevelReader {
  readonly name: string;
  readonly reads: number | undefined;
}

export interface FeatureLevelOptions {
  /** What the program of this server reads. */
  readonly reads: number;
  /** What the log uses. */
  readonly uses: () => number;
  readonly members: () => readonly Pick<MemberView, 'name' | 'reads'>[];
  /** The others that read what this datacenter writes: none where it is not the primary. */
  readonly datacenters: () => readonly LevelReader[];
  /** Whether this server leads, and has applied what came before. */
  readonly isReigning: () => boolean;
  /** Rejects as `ServiceDeps.propose` says. */
  readonly propose: (command: Command) => Promise<Outcome>;
  /** Begins with what the level allows: at the start of each reign, and when more may be written than then. */
  readonly beginLog: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What operators see of it. */
export interface LevelStatus {
  readonly uses: number;
  readonly reads: number;
  /** Servers and datacenters that do not read what this server reads, or are not heard. */
  readonly waitsFor: readonly string[];
}

/** How often it is looked whether all read more. */
const LOOK_MS = 1_000;

export class FeatureLevel {
  readonly #options: FeatureLevelOptions;
  readonly #looks: Repeated;
  /** What the log used when `beginLog` was done last. */
  #begunAt: number;

  constructor(options: FeatureLevelOptions) {
    this.#options = options;
    const { clock, logger } = options;
    this.#begunAt = options.uses();
    this.#looks = new Repeated({
      clock,
      everyMs: LOOK_MS,
      work: () => this.#look(),
      onFailed: (cause) => logger.debug({ cause }, 'the feature level could not be raised now'),
    });
  }

  status(): LevelStatus {
    const { reads, uses } = this.#options;
    const behind = this.#readers().filter((reader) => (reader.reads ?? 0) < reads);
    return { uses: uses(), reads, waitsFor: behind.map(({ name }) => name) };
  }

  /**
   * Why nothing of a global log of that level comes to this datacenter, and what to do about it; undefined where no
   * server is known that keeps it away.
   */
  keptFrom(level: number): string | undefined {
    const { members, uses } = this.#options;
    if (uses() >= level) return undefined;
    const behind = members().filter(({ reads = 0 }) => reads < level);
    if (behind.length === 0) return undefined;
    const names = behind.map(({ name }) => name).join(', ');
    return (
      `feature level ${uses()} is used here, and the global log is of ${level}: upgrade and start ${names}, ` +
      'and replace those that are gone for good'
    );
  }

  /** The command as all read it. Throws AclError 'unavailable' where it has to wait. */
  readable(command: Command): Command {
    const readable = readableAt(this.#options.uses(), command);
    if (readable !== undefined) return readable;
    const { uses, waitsFor } = this.status();
    const who = waitsFor.length === 0 ? 'all servers' : waitsFor.join(', ');
    const says = `nothing was written: the datacenter uses feature level ${uses} until ${who} can read more`;
    throw new AclError('unavailable', says);
  }

  /** As leader, before anything else of a reign. Rejects as `ServiceDeps.propose` says. */
  async begin(): Promise<void> {
    await this.#raise();
    await this.#begun();
  }

  async #look(): Promise<void> {
    const { isReigning, uses } = this.#options;
    if (!isReigning()) return;
    await this.#raise();
    // What the leader before raised may be applied behind the beginning of this reign.
    if (uses() > this.#begunAt) await this.#begun();
  }

  async #begun(): Promise<void> {
    const level = this.#options.uses();
    await this.#options.beginLog();
    this.#begunAt = level;
  }

  /** As leader: as far as everybody reads. */
  async #raise(): Promise<void> {
    const { clock, logger, propose, uses } = this.#options;
    const level = Math.min(...this.#readers().map(({ reads }) => reads ?? 0));
    if (level <= uses()) return;
    const change = { type: 'level.raise', level } as const;
    await propose({ change, timeMs: clock.wallMs(), cas: undefined, request: undefined });
    logger.info({ featureLevel: level }, 'the datacenter uses a higher feature level');
  }

  /** Waits for what is under way. */
  close(): Promise<void> {
    return this.#looks.close();
  }

  #readers(): readonly LevelReader[] {
    const { reads, members, datacenters } = this.#options;
    return [{ name: 'this server', reads }, ...members(), ...datacenters()];
  }
}

/**
 * Other datacenters, as those who read what the primary writes. Before there is a global log nobody reads it, and
 * who cannot read one gets none, however late it begins. To wait for their word would keep a datacenter whose own
 * servers all read one without it, for good if one of its servers is lost meanwhile.
 */
export function readersElsewhere(
  names: readonly string[],
  {
    levelOf,
    hasGlobalLog,
  }: {
    /** Undefined while nobody has told. */
    readonly levelOf: (datacenter: string) => number | undefined;
    readonly hasGlobalLog: boolean;
  },
): readonly LevelReader[] {
  return names.map((name) => {
    const told = levelOf(name);
    return { name, reads: hasGlobalLog ? told : Math.max(told ?? 0, GLOBAL_LOG_LEVEL) };
  });
}

/** Why a datacenter cannot read entries of that level, and what to do about it; undefined where it can. */
export function unreadableBy(
  datacenter: string,
  { reads, needs }: { readonly reads: number; readonly needs: number },
): string | undefined {
  if (needs <= reads) return undefined;
  return `${usesLevel(datacenter, reads)}, and what it lacks is of ${needs}: ${upgradeThose(datacenter)}`;
}

function usesLevel(datacenter: string, level: number): string {
  return `${datacenter} uses feature level ${level}`;
}

function upgradeThose(datacenter: string): string {
  const named = `those of ${datacenter} that \`conclave operator autopilot state\` names there`;
  return `upgrade ${named}, and replace what is gone for good`;
}

/**
 * Who could read nothing of what a datacenter writes once it is the primary, or that this one itself reads nothing of
 * the primary, and what to do about it; undefined where nobody is known who could not. The own datacenter is asked for
 * its servers, because it raises its level by itself when it is not the primary any more.
 */
export function leftBehindBy(
  successor: string,
  {
    own,
    uses,
    members,
    datacenters,
    levelOf,
  }: {
    /** The primary, and what its log uses: all its servers read that, those too that are away. */
    readonly own: string;
    readonly uses: number;
    readonly members: readonly Pick<MemberView, 'name' | 'reads'>[];
    readonly datacenters: readonly string[];
    /** Undefined while nobody has told. */
    readonly levelOf: (datacenter: string) => number | undefined;
  },
): string | undefined {
  const told = levelOf(successor);
  // Nothing of the log comes there, so it would be waited for in vain.
  if (told !== undefined && told < uses) {
    return `${usesLevel(successor, told)}, and ${own} uses ${uses}: ${upgradeThose(successor)}`;
  }
  const level = told ?? 0;
  const servers = members
    .filter(({ reads = 0 }) => Math.max(reads, uses) < level)
    .map(({ name }) => name);
  const others = datacenters.filter((each) => each !== own && (levelOf(each) ?? level) < level);
  const behind = [...(servers.length === 0 ? [] : [`${own} (${servers.join(', ')})`]), ...others];
  if (behind.length === 0) return undefined;
  return (
    `${usesLevel(successor, level)}, and would leave ${behind.join(' and ')} behind, without ` +
    'anything that it writes: upgrade those servers, and replace or remove those that are gone for good. ' +
    `\`conclave operator promote ${successor} --election\` moves the primary all the same`
  );
}
