// Time that moves only when everything at rest has been done: a heap of events, run one by one in the
// order of their moments. After each one all that it set off at once runs to its end, so no two events
// ever interleave, and a run follows from its seed.

import type { SealedGlobals } from './sealed-globals.ts';

interface Event {
  readonly atMs: number;
  /** Of events of one moment, the one that was asked for first comes first. */
  readonly order: number;
  action: (() => void) | undefined;
}

export interface Scheduled {
  cancel(): void;
}

export class VirtualTime {
  #nowMs = 0;
  #order = 0;
  readonly #heap: Event[] = [];
  readonly #globals: SealedGlobals;
  #eventCount = 0;

  constructor(globals: SealedGlobals) {
    this.#globals = globals;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events that ran. */
  get eventCount(): number {
    return this.#eventCount;
  }

  after(delayMs: number, action: () => void): Scheduled {
    const event: Event = {
      atMs: this.#nowMs + Math.max(0, delayMs),
      order: this.#order,
      action,
    };
    this.#order += 1;
    this.#push(event);
    return {
      cancel: () => {
        event.action = undefined;
      },
    };
  }

  /** Resolves behind so much time. */
  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(delayMs, resolve);
    });
  }

  /** Runs everything up to a moment, or until `isOver` says so after an event. */
  async run(untilMs: number, isOver: () => boolean): Promise<void> {
    await this.#globals.settle();
    while (!isOver()) {
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) {
        this.#nowMs = untilMs;
        return;
      }
      this.#pop();
      const { action } = next;
      if (action === undefined) continue;
      this.#nowMs = next.atMs;
      this.#eventCount += 1;
      action();
      await this.#globals.settle();
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let place = heap.length;
    heap.push(event);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[place] = heap[parent]!;
      place = parent;
    }
    heap[place] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const event = heap.pop()!;
    if (heap.length === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, event)) break;
      heap[place] = heap[child]!;
      place = child;
    }
    heap[place] = event;
  }
}

function isBefore(left: Event, right: Event): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}
