// One life of a node: its clock, its randomness, and the gate through which everything from outside
// comes to it. A life that is over hears nothing any more; one that is frozen hears it all when it
// thaws, timers first, as a real event loop would.

import type { Clock, Timer } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import type { Stream } from './stream.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

/** 2026-01-01. */
const WALL_START_MS = 1_767_225_600_000;

/** How a host's clocks differ from the world's time. Changed by faults, across lives. */
export interface ClockFaults {
  /** Of the monotonic clock. */
  readonly rate: number;
  wallOffsetMs: number;
  wallDrift: number;
  /** The latest that the wall clock has shown, in any life and before any step. */
  furthestWallMs: number;
}

export interface ProcessOptions {
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly name: string;
  readonly stream: Stream;
  readonly clocks: ClockFaults;
}

/** Of a life that is over: in a real one, nothing runs behind its end. */
export class LifeIsOver extends Error {}

export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly #time: VirtualTime;
  #isOver = false;
  #isFrozen = false;
  #heldTimers: (() => void)[] = [];
  #heldInputs: (() => void)[] = [];
  readonly #onOver: (() => void)[] = [];

  constructor({ time, trace, name, stream, clocks }: ProcessOptions) {
    this.name = name;
    this.#time = time;
    this.clock = this.#clockOf(time, clocks);
    this.random = {
      uuid: () => stream.uuid(),
      bytes: (count) => stream.bytes(count),
      fraction: () => stream.fraction(),
    };
    this.logger = loggerOf(trace, name);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  /** Something from outside: now, when the process thaws, or never. */
  deliver(action: () => void): void {
    if (this.#isOver) return;
    if (this.#isFrozen) this.#heldInputs.push(action);
    else action();
  }

  /** As deliver, so many milliseconds from now. */
  deliverAfter(delayMs: number, action: () => void): void {
    this.#time.after(delayMs, () => this.deliver(action));
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    const held = [...this.#heldTimers, ...this.#heldInputs];
    this.#heldTimers = [];
    this.#heldInputs = [];
    for (const action of held) this.#time.after(0, () => this.deliver(action));
  }

  /** `action` is called when this life ends. */
  onOver(action: () => void): void {
    this.#onOver.push(action);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const action of this.#onOver) action();
  }

  #clockOf(time: VirtualTime, clocks: ClockFaults): Clock {
    return {
      monotonicMs: () => time.nowMs * clocks.rate,
      wallMs: () => {
        const wallMs = WALL_START_MS + time.nowMs * clocks.wallDrift + clocks.wallOffsetMs;
        clocks.furthestWallMs = Math.max(clocks.furthestWallMs, Math.floor(wallMs));
        return Math.floor(wallMs);
      },
      after: (delayMs, action): Timer => this.#timer(time, delayMs / clocks.rate, action),
    };
  }

  #timer(time: VirtualTime, delayMs: number, action: () => void): Timer {
    let isCancelled = false;
    const fire = (): void => {
      if (!isCancelled) action();
    };
    const scheduled = time.after(delayMs, () => {
      if (this.#isOver) return;
      if (this.#isFrozen) this.#heldTimers.push(fire);
      else fire();
    });
    return {
      cancel: () => {
        isCancelled = true;
        scheduled.cancel();
      },
    };
  }
}

function loggerOf(trace: Trace, name: string): Logger {
  const at =
    (level: string): Logger['info'] =>
    (fields, message) => {
      // One mark, whatever names and numbers are in the message.
      trace.mark(`says: ${message.replaceAll(/\d+/g, 'N')}`);
      trace.note(level, name, message.length, () => `${message} ${shown(fields)}`);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function shown(fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(fields, (_, value: unknown) => {
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    return value instanceof Uint8Array ? `${value.length} bytes` : value;
  });
}
