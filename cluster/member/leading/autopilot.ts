// What a leader does about its members by itself: who has caught up and stays up gets a vote, who has
// been dead for long is removed where that leaves the group no weaker. Facts in, at most one change
// out; nothing is asked here, and no clock is read.

import type { MembershipChange } from '../../raft/membership/membership-change.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { AutopilotSettings } from '../../replica/group-record.ts';
import type { AutopilotState, MemberView } from '../group-member.ts';
import type { MemberTiming } from '../member-timing.ts';

/**
 * With three voters one may fail; with two, none. So a dead one of three stays on record: when it comes
 * back, it is of use again, and without it nothing would be gained.
 */
const VOTERS_KEPT = 3;

/** Looks that are further apart say that the leader's process stood still, and read nothing of what came. */
const STOOD_STILL_MS = 10_000;

export interface Observation {
  /** Of the monotonic clock, and of the wall. */
  readonly nowMs: number;
  readonly wallMs: number;
  readonly members: readonly MemberView[];
  /** Of the leader's log. */
  readonly lastIndex: number;
  readonly term: number;
  readonly settings: AutopilotSettings;
  /** A server that does well was heard so long ago, beside what the settings allow. */
  readonly heartbeatMs: number;
  readonly timing: Pick<MemberTiming, 'replaceAfterMs' | 'cleanupAfterMs'>;
}

interface Tracked {
  readonly isHealthy: boolean;
  readonly isVoter: boolean;
  readonly sinceMs: number;
  readonly sinceWallMs: number;
  /** When it was last heard of, or first seen by this leader; later by as long as the leader stood still since. */
  readonly heardAtMs: number;
}

/** Of one reign: what a leader has seen begins with it. */
export class Autopilot {
  readonly #trackedByNode = new Map<NodeId, Tracked>();
  #observedAtMs: number | undefined;

  /** Takes in how the members do; gives the one change that is due, if any. */
  observe(seen: Observation): MembershipChange | undefined {
    const stoodStillMs = this.#stoodStillMs(seen.nowMs);
    const nodes = new Set(seen.members.map(({ node }) => node));
    for (const node of [...this.#trackedByNode.keys()]) {
      if (!nodes.has(node)) this.#trackedByNode.delete(node);
    }
    for (const member of seen.members) this.#track(member, seen, stoodStillMs);
    return this.#promotion(seen) ?? this.#removal(seen);
  }

  /** As of the last observation, over these members. */
  state({ members, term }: Pick<Observation, 'members' | 'term'>): AutopilotState {
    const servers = members.map((member) => {
      const tracked = this.#trackedByNode.get(member.node);
      return {
        member,
        isHealthy: tracked?.isHealthy ?? false,
        lastTerm: member.lastContactMs === undefined ? 0 : term,
        stableSinceMs: tracked?.sinceWallMs ?? 0,
      };
    });
    const voters = servers.filter(({ member }) => member.isVoter);
    const healthyCount = voters.filter(({ isHealthy }) => isHealthy).length;
    return {
      isHealthy: servers.every(({ isHealthy }) => isHealthy),
      failureTolerance: Math.max(0, healthyCount - quorumOf(voters.length)),
      servers,
    };
  }

  /** Since the observation before. */
  #stoodStillMs(nowMs: number): number {
    const gapMs = nowMs - (this.#observedAtMs ?? nowMs);
    this.#observedAtMs = nowMs;
    return gapMs > STOOD_STILL_MS ? gapMs : 0;
  }

  #track(member: MemberView, seen: Observation, stoodStillMs: number): void {
    const { nowMs, wallMs } = seen;
    const before = this.#trackedByNode.get(member.node);
    const { lastContactMs, isVoter } = member;
    const heardAtMs = lastContactMs === undefined ? undefined : nowMs - lastContactMs;
    const isHealthy = isHealthyNow(member, seen);
    // Whose vote was taken away gets none on the strength of what it was before.
    const isUnseated = before?.isVoter === true && !isVoter;
    const isSame = before?.isHealthy === isHealthy && !isUnseated;
    this.#trackedByNode.set(member.node, {
      isHealthy,
      isVoter,
      sinceMs: isSame ? before.sinceMs : nowMs,
      sinceWallMs: isSame ? before.sinceWallMs : wallMs,
      heardAtMs: Math.max(
        heardAtMs ?? Number.NEGATIVE_INFINITY,
        before === undefined ? nowMs : before.heardAtMs + stoodStillMs,
      ),
    });
  }

  /** The longest ready first; it takes the place of a voter that is dead, if there is one. */
  #promotion(seen: Observation): MembershipChange | undefined {
    const { members, nowMs, settings, timing } = seen;
    const ready = members
      .flatMap(({ node, isVoter }) => {
        const tracked = this.#trackedByNode.get(node);
        return isVoter || tracked?.isHealthy !== true ? [] : [{ node, sinceMs: tracked.sinceMs }];
      })
      .filter(({ sinceMs }) => nowMs - sinceMs >= settings.serverStabilizationTimeMs)
      .sort((one, other) => one.sinceMs - other.sinceMs)[0];
    if (ready === undefined) return undefined;
    const voters = members.filter(({ isVoter }) => isVoter);
    const dead = voters.find((member) => this.#isDead(member, seen, timing.replaceAfterMs));
    const replaced =
      settings.cleanupDeadServers && dead !== undefined && this.#hasHealthyQuorum(voters)
        ? [{ kind: 'remove', node: dead.node } as const]
        : [];
    return changeOf([...replaced, { kind: 'add-voter', node: ready.node }]);
  }

  /** A voter only where the healthy ones are a quorum, and enough voters are left. */
  #removal(seen: Observation): MembershipChange | undefined {
    const { members, settings, timing } = seen;
    if (!settings.cleanupDeadServers) return undefined;
    const voters = members.filter(({ isVoter }) => isVoter);
    const votersKept = Math.max(VOTERS_KEPT, settings.minQuorum);
    const mayLoseVoter = voters.length > votersKept && this.#hasHealthyQuorum(voters);
    const dead = members.find(
      (member) =>
        this.#isDead(member, seen, timing.cleanupAfterMs) && (!member.isVoter || mayLoseVoter),
    );
    return dead === undefined ? undefined : changeOf([{ kind: 'remove', node: dead.node }]);
  }

  #isDead({ node, isSelf }: MemberView, { nowMs }: Observation, afterMs: number): boolean {
    const tracked = this.#trackedByNode.get(node);
    return !isSelf && tracked !== undefined && nowMs - tracked.heardAtMs >= afterMs;
  }

  #hasHealthyQuorum(voters: readonly MemberView[]): boolean {
    const healthy = voters.filter(({ node }) => this.#trackedByNode.get(node)?.isHealthy === true);
    return healthy.length >= quorumOf(voters.length);
  }
}

function isHealthyNow({ lastContactMs, lastIndex }: MemberView, seen: Observation): boolean {
  const { settings, heartbeatMs } = seen;
  return (
    lastContactMs !== undefined &&
    lastContactMs <= settings.lastContactThresholdMs + heartbeatMs &&
    (lastIndex ?? 0) + settings.maxTrailingLogs >= seen.lastIndex
  );
}

export function quorumOf(voterCount: number): number {
  return Math.floor(voterCount / 2) + 1;
}

function changeOf(changes: MembershipChange['changes']): MembershipChange {
  return { transition: 'auto', changes, context: new Uint8Array(0) };
}
