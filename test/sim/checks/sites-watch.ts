// Who watches several datacenters as one system, at every moment of a run.

import type { KvWrite } from '../../../cluster/platform/kv.ts';
import type { SimStore } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { LeavingFrame } from '../world/sim-net.ts';

export interface SitesWatch {
  onLanded(host: SimHost, store: SimStore, writes: readonly KvWrite[]): void;
  onFrame(leaving: LeavingFrame): void;
  /** Whether the datacenters of these hosts have the same, all of it. */
  isEven(hosts: readonly SimHost[]): boolean;
  /** Whether the others are a majority without the datacenters of these numbers, and have elected or can. */
  mayLose(sites: readonly number[]): boolean;
  /** How far each of them is, for people. */
  describe(hosts: readonly SimHost[]): string;
}
