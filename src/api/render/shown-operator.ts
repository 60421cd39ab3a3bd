// What rendering needs to see of the group of servers. The shapes are declared here because this floor
// lies below the service, which fills them in.

export interface ShownServer {
  readonly id: string;
  readonly name: string;
  /** `host:port` of the cluster interface. */
  readonly address: string;
  readonly version: string;
  /** Up to which feature level it reads; undefined where this server cannot know. */
  readonly reads: number | undefined;
  readonly isLeader: boolean;
  readonly isVoter: boolean;
  readonly isAlive: boolean;
  readonly isHealthy: boolean;
  /** Undefined where it was never heard of, or where this server cannot know. */
  readonly lastContactMs: number | undefined;
  readonly lastTerm: number;
  /** How far its log is known to reach; undefined where this server cannot know. */
  readonly lastIndex: number | undefined;
  /** Wall-clock time since when it is as healthy as it is. */
  readonly stableSinceMs: number | undefined;
}

export interface ShownGroup {
  readonly servers: readonly ShownServer[];
  readonly appliedIndex: number;
}

export interface ShownAutopilotSettings {
  readonly cleanupDeadServers: boolean;
  readonly lastContactThresholdMs: number;
  readonly maxTrailingLogs: number;
  readonly minQuorum: number;
  readonly serverStabilizationTimeMs: number;
}

export interface ShownAutopilot {
  readonly settings: ShownAutopilotSettings;
  /** Counts the changes; begins at 1. */
  readonly index: number;
}

/** Which feature level the log of the datacenter uses, and who stands in the way of a higher one. */
export interface ShownLevel {
  readonly uses: number;
  /** What the leader reads. */
  readonly reads: number;
  /** Names of servers and datacenters. */
  readonly waitsFor: readonly string[];
}

export interface ShownAutopilotState {
  readonly isHealthy: boolean;
  /** So many voters can fail before the group stops taking writes. */
  readonly failureTolerance: number;
  readonly level: ShownLevel;
  readonly servers: readonly ShownServer[];
}
