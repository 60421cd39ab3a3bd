// The bounds and times of the feed, in one place. The values are for datacenters up to a few hundred
// milliseconds apart.

/** A frame of entries is about so large at most; a larger entry makes a frame of its own. */
export const FRAME_BYTES = 256 * 1024;
/** Of one frame. */
export const FRAME_ENTRIES_MAX = 8192;

/** So many entries may be on their way to a follower that is up to date. */
export const TAIL_ENTRIES_MAX = 1_000;

export interface FeedLimits {
  /** Frames that one follower may have on their way at once: 1 MiB. Nothing is sent unasked. */
  readonly pullsMax: number;
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
  pullsMax: 4,
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
  /** Of one call other than a pull. */
  readonly callMs: number;
  /** Of a pull, which may wait through several heartbeats. */
  readonly pullMs: number;
  /** A feed from which nothing comes for so long is over. */
  readonly silenceMs: number;
  /** Between two tries, with as much again at random; doubles up to the max. */
  readonly retryBaseMs: number;
  readonly retryMaxMs: number;
  /** Redirections that are followed at once. */
  readonly redirectsMax: number;
}

export const DEFAULT_SUBSCRIBER_LIMITS: SubscriberLimits = {
  windowBytes: 1024 * 1024,
  batchBytes: 512 * 1024,
  callMs: 5_000,
  pullMs: 20_000,
  silenceMs: 5_000,
  retryBaseMs: 100,
  retryMaxMs: 5_000,
  redirectsMax: 3,
};
