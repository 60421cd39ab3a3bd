// A machine of the simulated world: a name on the network, a disk, clocks, and one life of a node after
// the other. How a life is begun is the matter of whoever runs something on it.

import type { Kv, KvWrite } from '../../../cluster/platform/kv.ts';
import type { Net } from '../../../cluster/platform/net.ts';
import { type DiskCopy, type Ending, SimDisk, type SimStore } from './sim-disk.ts';
import type { SimNet } from './sim-net.ts';
import { type ClockFaults, SimProcess } from './sim-process.ts';
import type { Stream } from './stream.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What a host needs of its world. */
export interface WorldOfHost {
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly stream: Stream;
  readonly net: SimNet;
  readonly watchers: {
    onLanded(host: SimHost, store: SimStore, writes: readonly KvWrite[]): void;
  };
}

/** Of a disk, as somebody kept it. */
export interface HostCopy {
  readonly diskNumber: number;
  readonly disk: DiskCopy;
}

export class SimHost {
  /** Its address on the network. */
  readonly name: string;
  readonly number: number;
  readonly disk: SimDisk;
  readonly clocks: ClockFaults;
  readonly #world: WorldOfHost;
  #lifeCount = 0;
  #process: SimProcess | undefined;
  /** Which disk it has; another one when it is replaced, and an earlier one when a copy of that is put back. */
  diskNumber = 1;
  #lastDisk = 1;

  constructor(world: WorldOfHost, number: number, clocks: ClockFaults) {
    this.#world = world;
    this.number = number;
    this.name = `n${number}`;
    this.clocks = clocks;
    const { time, trace, stream } = world;
    this.disk = new SimDisk({
      time,
      trace,
      host: this.name,
      stream: stream.fork(`disk ${number}`),
      onLanded: (store, writes) => world.watchers.onLanded(this, store, writes),
    });
  }

  get lifeCount(): number {
    return this.#lifeCount;
  }

  /** The present life; undefined while it is down. */
  get process(): SimProcess | undefined {
    return this.#process?.isOver === true ? undefined : this.#process;
  }

  /** Begins a life. */
  boot(): SimProcess {
    const { time, trace, stream, net } = this.#world;
    this.#lifeCount += 1;
    const process = new SimProcess({
      time,
      trace,
      name: this.name,
      stream: stream.fork(`life ${this.number}/${this.diskNumber}/${this.#lifeCount}`),
      clocks: this.clocks,
    });
    net.lighten(this.name);
    this.#process = process;
    trace.note('boot', this.name, this.#lifeCount);
    return process;
  }

  netOf(process: SimProcess): Net {
    return this.#world.net.of(this.name, process);
  }

  openKv(name: string, process: SimProcess, onFatal: (cause: Error) => void): Promise<Kv> {
    return this.disk.open(name, process, onFatal);
  }

  /** Ends the present life, as a kill does or as a power cut does. */
  crash(ending: Ending): void {
    const process = this.process;
    if (process === undefined) return;
    this.#world.trace.note('down', this.name, this.#lifeCount, () => ending);
    if (ending === 'power') this.#world.net.darken(this.name);
    process.end();
    this.disk.crash(ending);
  }

  /** A new disk, while it is down. */
  replaceDisk(): void {
    this.disk.wipe();
    this.#lastDisk += 1;
    this.diskNumber = this.#lastDisk;
  }

  /** Of the disk that it has, while it is down. */
  copyDisk(): HostCopy {
    return { diskNumber: this.diskNumber, disk: this.disk.copy() };
  }

  /** The disk that it had then, as it was, while it is down. */
  putBackDisk({ diskNumber, disk }: HostCopy): void {
    this.disk.putBack(disk);
    this.diskNumber = diskNumber;
  }
}
