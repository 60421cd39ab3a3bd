// The times and bounds of membership, in one place. The values are for a few nodes that are
// milliseconds apart.

export interface MemberTiming {
  /** Between rounds of looking for a group, with as much again at random. */
  readonly gatherMs: number;
  /** Of one call between members about membership. */
  readonly callMs: number;
  /** A neighbour that was not heard of for so long does not count for founding. */
  readonly neighbourMs: number;
  /** A member that was not heard for so long is not alive: another node may take its name. */
  readonly aliveMs: number;
  /** How often a member looks after its place in the group, and the leader after its members. */
  readonly lookMs: number;
  /** A member that knows no leader for so long asks around. */
  readonly searchAfterMs: number;
  /** How often the leader looks whether servers of another cluster are at the addresses of retry_join. */
  readonly otherClustersMs: number;
  /** A voter that is dead for so long gives way to a learner that is ready to vote. */
  readonly replaceAfterMs: number;
  /**
   * A server that is dead for so long is removed, replacement or not. It must be empty before it may come
   * back, so this is longer than a machine is down for repair.
   */
  readonly cleanupAfterMs: number;
  /** A change that finds another one under way waits for so long at most. */
  readonly changeWaitMs: number;
  /** How often the leader compares digests. */
  readonly digestMs: number;
  /** So long a node waits until its machine comes to the index that digests are compared at. */
  readonly digestWaitMs: number;
  /** Of one piece of a snapshot. */
  readonly chunkMs: number;
  /** For the last step: checking a state and making it valid takes its time. */
  readonly finishMs: number;
  /** A transfer that is not heard of for so long is abandoned. */
  readonly intakeIdleMs: number;
}

export const DEFAULT_MEMBER_TIMING: MemberTiming = {
  gatherMs: 200,
  callMs: 2_000,
  neighbourMs: 3_000,
  aliveMs: 3_000,
  lookMs: 1_000,
  searchAfterMs: 3_000,
  otherClustersMs: 300_000,
  replaceAfterMs: 60_000,
  cleanupAfterMs: 3_600_000,
  changeWaitMs: 5_000,
  digestMs: 5_000,
  digestWaitMs: 1_000,
  chunkMs: 15_000,
  finishMs: 300_000,
  intakeIdleMs: 60_000,
};

export interface MemberLimits {
  /** Changes of the group that wait for each other. */
  readonly changesMax: number;
  /** Snapshots that a leader sends at once. */
  readonly snapshotsMax: number;
  /** So fast does one snapshot leave at most. */
  readonly snapshotBytesPerSecond: number;
  /** So fast while others write and there is time: reading and taking it in costs them their turns. */
  readonly snapshotGentleBytesPerSecond: number;
}

export const DEFAULT_MEMBER_LIMITS: MemberLimits = {
  changesMax: 64,
  snapshotsMax: 2,
  snapshotBytesPerSecond: 12 * 1024 * 1024,
  snapshotGentleBytesPerSecond: 1.25 * 1024 * 1024,
};
