// The simulated world of one run: time, network, hosts with their disks, all drawn from one seed. Knows
// nothing of what runs on it; whoever watches it is told of every batch that lands and every frame that
// leaves.

import type { KvWrite } from '../../../cluster/platform/kv.ts';
import type { SealedGlobals } from './sealed-globals.ts';
import type { SimStore } from './sim-disk.ts';
import { SimHost } from './sim-host.ts';
import { type LeavingFrame, SimNet } from './sim-net.ts';
import { Stream } from './stream.ts';
import { Trace } from './trace.ts';
import { VirtualTime } from './virtual-time.ts';

/** Told of what happens, at the moment when it does. */
export interface Watchers {
  onLanded(host: SimHost, store: SimStore, writes: readonly KvWrite[]): void;
  onFrame(leaving: LeavingFrame): void;
}

export interface WorldOptions {
  readonly seed: number;
  readonly globals: SealedGlobals;
  readonly keepsLines: boolean;
  readonly watchers: Watchers;
}

export class World {
  readonly stream: Stream;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly net: SimNet;
  readonly watchers: Watchers;
  readonly #hosts: SimHost[] = [];

  constructor({ seed, globals, keepsLines, watchers }: WorldOptions) {
    this.stream = new Stream(seed, 'world');
    this.time = new VirtualTime(globals);
    this.trace = new Trace(() => this.time.nowMs, { keepsLines });
    this.watchers = watchers;
    this.net = new SimNet({
      time: this.time,
      trace: this.trace,
      stream: this.stream.fork('net'),
      onFrame: (leaving) => watchers.onFrame(leaving),
    });
  }

  get hosts(): readonly SimHost[] {
    return this.#hosts;
  }

  addHost(clocks: { readonly rate: number; readonly wallDrift: number }): SimHost {
    const host = new SimHost(this, this.#hosts.length + 1, {
      ...clocks,
      ...{ wallOffsetMs: 0, furthestWallMs: 0 },
    });
    this.#hosts.push(host);
    return host;
  }

  host(number: number): SimHost {
    return this.#hosts[number - 1]!;
  }
}
