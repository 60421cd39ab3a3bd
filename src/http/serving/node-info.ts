// What this server knows about itself and its neighbours, as far as HTTP shows it. src/node
// implements it; nothing here asks the log or the disk, so every call must be cheap and never throw.

export interface NodeInfo {
  readonly nodeName: string;
  readonly nodeId: string;
  readonly datacenter: string;
  readonly primaryDatacenter: string;
  /** The version of the program. */
  readonly version: string;
  /** `host:port` of the leader of this datacenter; undefined while none is known. */
  leader(): string | undefined;
  /** `host:port` of every voter of this datacenter. */
  peers(): readonly string[];
  members(): readonly MemberInfo[];
  /** The datacenters of the federation, this one included; the nearest first. */
  datacenters(): readonly string[];
  /** More keys for the `Config` of agent/self: what an operator may see of the settings. No secrets. */
  config(): Readonly<Record<string, string | number | boolean>>;
  /** Figures by subject (`raft`, `runtime`, `federation`), all as text. */
  stats(): Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Why this server cannot serve yet, one sentence each; empty when it can. */
  notReadyReasons(): readonly string[];
}

export interface MemberInfo {
  readonly id: string;
  readonly name: string;
  /** The version of its program; empty where that is not known. */
  readonly version: string;
  readonly address: string;
  readonly port: number;
  readonly isAlive: boolean;
  readonly isVoter: boolean;
  /** Up to which feature level it reads the log; undefined where that is not known. */
  readonly reads: number | undefined;
}
