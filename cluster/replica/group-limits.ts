// Every bound of a replica in a group, and its time, in one place. The values are for a few nodes that
// are milliseconds apart.

export interface GroupLimits {
  /** Entries of one batch: of the log, of the machine and of one proposal to raft. */
  readonly batchCountMax: number;
  /** Payload bytes of one batch; a single larger payload makes a batch of its own. */
  readonly batchBytesMax: number;
  /** Proposals under way, from being queued to being answered. */
  readonly pendingCountMax: number;
  readonly pendingBytesMax: number;
  readonly payloadBytesMax: number;
  /** Messages of other nodes that wait for a turn; those beyond it are lost, as on a bad wire. */
  readonly inboxCountMax: number;
  readonly inboxBytesMax: number;
  /** Read barriers under way. */
  readonly readCountMax: number;
  /** Entry bytes of one append message. */
  readonly messageBytesMax: number;
  readonly inflightCountMax: number;
  readonly inflightBytesMax: number;
  /** Entries of the stable log that stay in memory for followers and the machine. */
  readonly tailCountMax: number;
  readonly tailBytesMax: number;
  /** Applied entries that stay in the log for others, as long as they have no more than these bytes. */
  readonly keptCount: number;
  readonly keptBytesMax: number;
  /**
   * So many entries a leader keeps at most for a living follower that lags behind: what is written while
   * a snapshot of a million objects is on its way, or its receiver would need another one behind it.
   */
  readonly heldCountMax: number;
  readonly heldBytesMax: number;
}

export const DEFAULT_GROUP_LIMITS: GroupLimits = {
  batchCountMax: 256,
  batchBytesMax: 1024 * 1024,
  pendingCountMax: 8192,
  pendingBytesMax: 64 * 1024 * 1024,
  payloadBytesMax: 8 * 1024 * 1024,
  inboxCountMax: 4096,
  inboxBytesMax: 64 * 1024 * 1024,
  readCountMax: 8192,
  messageBytesMax: 512 * 1024,
  inflightCountMax: 128,
  inflightBytesMax: 16 * 1024 * 1024,
  tailCountMax: 10_000,
  tailBytesMax: 64 * 1024 * 1024,
  keptCount: 4096,
  keptBytesMax: 64 * 1024 * 1024,
  heldCountMax: 131_072,
  heldBytesMax: 1024 * 1024 * 1024,
};

export interface GroupTiming {
  readonly tickMs: number;
  readonly heartbeatTicks: number;
  /** A follower that hears nothing campaigns after so many ticks, or up to twice as many. */
  readonly electionTicks: number;
  /** A follower whose link to the leader closes campaigns within so long. */
  readonly campaignSpreadMs: number;
  /** A read barrier that is not through by then is refused. */
  readonly readTimeoutMs: number;
  /** A snapshot that did not get through is tried again after so long. */
  readonly snapshotRetryMs: number;
}

export const DEFAULT_GROUP_TIMING: GroupTiming = {
  tickMs: 100,
  heartbeatTicks: 1,
  electionTicks: 15,
  campaignSpreadMs: 100,
  readTimeoutMs: 5000,
  snapshotRetryMs: 1000,
};

export function heartbeatMs({ tickMs, heartbeatTicks }: GroupTiming): number {
  return tickMs * heartbeatTicks;
}

/** The shortest time after which a follower campaigns that hears nothing. */
export function electionMs({ tickMs, electionTicks }: GroupTiming): number {
  return tickMs * electionTicks;
}

/** How many of the payloads, from the front, make one batch: at least one if there is one. */
export function countWithin(
  sizesBytes: readonly number[],
  { batchCountMax, batchBytesMax }: Pick<GroupLimits, 'batchCountMax' | 'batchBytesMax'>,
): number {
  let bytes = 0;
  for (const [count, sizeBytes] of sizesBytes.entries()) {
    bytes += sizeBytes;
    if (count > 0 && (count >= batchCountMax || bytes > batchBytesMax)) return count;
  }
  return sizesBytes.length;
}
