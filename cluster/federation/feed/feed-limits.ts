// The bounds and times of the feed, in one place. The values are for datacenters up to a few hundred
// milliseconds apart.

/** A frame of entries is about so large at most; a larger entry makes a frame of its own. */
export const FRAME_BYTES = 256 * 1024;
/** Of one frame. */
export const FRAME_ENTRIES_MAX = 8192;

/** So many entries may be on their way to a follower that is up to date. */
export const TAIL_ENTRIES_MAX = 1_000;

/**
 * Of one session at once. A follower has so many under way as find room, also while nothing is written: what
 * is written after a pause waits for none. With a frame every `paceMs` they last for a way there and back of
 * 320 ms; with full frames they are 16 MiB. While nothing is written each heartbeat answers one, so that the
 * last of them waits for so many heartbeats, about half of `pullMs`.
 */
export const PULLS_MAX = 64;

export interface FeedLimits {
  /** Frames that one follower may have on their way at once. Nothing is sent unasked. */
  readonly pullsMax: number;
  /** Frames that are not full leave no closer to each other: what is written meanwhile shares one. */
  readonly paceMs: number;
  readonly followersMax: number;
  /** Frames that are kept packed, for the next follower that wants the same. */
  readonly packedMax: number;
  /** An idle feed says so often where the head is. */
  readonly heartbeatMs: number;
  /** A follower that was not heard for so long is silent. */
  readonly silentMs: number;
  /** Writes that wait for acknowledgements of other datacenters. */
  readonly waitersMax: number;
}

export const DEFAULT_FEED_LIMITS: FeedLimits = {
  pullsMax: PULLS_MAX,
  paceMs: 5,
  followersMax: 64,
  packedMax: 16,
  heartbeatMs: 1_000,
  silentMs: 5_000,
  waitersMax: 65_536,
};

export interface SubscriberLimits {
  /** What has been asked for or has come, and is not applied. */
  readonly windowBytes: number;
  /** What is proposed at once. */
  readonly batchBytes: number;
  /** Proposals under way: the next one is in the log while the one before is applied. */
  readonly batchesMax: number;
  /** Between two reports of how this follower stands. */
  readonly reportMs: number;
  /** Of one call other than a pull. */
  readonly callMs: number;
  /** Of a pull, which may wait through several heartbeats, and on a slow line for all frames before it. */
  readonly pullMs: number;
  /** A feed from which nothing comes for so long is over. */
  readonly silenceMs: number;
  /**
   * Between two tries, with as much again at random; doubles up to the max. For so long a datacenter may
   * miss a revocation although its line is mended.
   */
  readonly retryBaseMs: number;
  readonly retryMaxMs: number;
  /** Redirections that are followed at once. */
  readonly redirectsMax: number;
}

export const DEFAULT_SUBSCRIBER_LIMITS: SubscriberLimits = {
  windowBytes: PULLS_MAX * FRAME_BYTES,
  batchBytes: 256 * 1024,
  batchesMax: 4,
  reportMs: 1_000,
  callMs: 5_000,
  pullMs: 120_000,
  silenceMs: 5_000,
  retryBaseMs: 100,
  retryMaxMs: 1_000,
  redirectsMax: 3,
};
