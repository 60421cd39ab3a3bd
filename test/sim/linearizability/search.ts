// Wing and Gong's search over one partition, in portions so that several searches can take turns.
// Promises 'illegal' only after every order was tried, and 'legal' only with an order in hand;
// remembers the longest order it found. Leaves budgets and partitions to checker.ts.
import { Memo } from './memo.ts';
import type { Model, Operation } from './model.ts';
import { unknownOutput } from './model.ts';
import { noStates, StateSets } from './state-sets.ts';

interface Placed {
  readonly operation: number;
  readonly setIdBefore: number;
}

export interface Deepest<Input, Output> {
  readonly placed: readonly Operation<Input, Output>[];
  /** The operation whose return came although it could not be placed. */
  readonly stuck: Operation<Input, Output>;
  readonly state: string;
}

export type Progress = 'legal' | 'illegal' | 'paused' | 'full';

interface TimedEvent {
  readonly operation: number;
  readonly isCall: boolean;
  readonly time: number;
}

const head = 0;

export class Search<State, Input, Output> {
  readonly #operations: readonly Operation<Input, Output>[];
  readonly #sets: StateSets<State, Input, Output>;
  readonly #memo: Memo;
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #operationOf: Int32Array;
  readonly #callNode: Int32Array;
  /** 0 (the head) for an operation without a known return. */
  readonly #returnNode: Int32Array;
  readonly #stack: Placed[] = [];
  /** Operations with a known return that are not placed yet; the search ends at 0. */
  #requiredCount = 0;
  #cursor: number;
  #setId: number;
  #stepCount = 0;
  #deepest: Deepest<Input, Output> | undefined;

  constructor(model: Model<State, Input, Output>, operations: readonly Operation<Input, Output>[]) {
    const events = timedEvents(operations);
    this.#operations = operations;
    this.#sets = new StateSets(model);
    this.#memo = new Memo(operations.length);
    this.#next = new Int32Array(events.length + 1);
    this.#previous = new Int32Array(events.length + 1);
    this.#operationOf = new Int32Array(events.length + 1);
    this.#callNode = new Int32Array(operations.length);
    this.#returnNode = new Int32Array(operations.length);
    this.#link(events);
    this.#cursor = this.#next[head]!;
    this.#setId = this.#sets.initial();
  }

  get stepCount(): number {
    return this.#stepCount;
  }

  get sizeBytes(): number {
    return this.#memo.sizeBytes + this.#sets.sizeBytes;
  }

  /** The longest order found, with what blocked it; known once the search was blocked. */
  get deepest(): Deepest<Input, Output> | undefined {
    return this.#deepest;
  }

  /** Goes on for at most `stepMax` model steps, or until it holds more than `sizeMaxBytes`. */
  run(stepMax: number, sizeMaxBytes: number): Progress {
    const stepEnd = this.#stepCount + stepMax;
    while (this.#requiredCount > 0) {
      const operation = this.#operationOf[this.#cursor]!;
      if (this.#callNode[operation] !== this.#cursor) {
        this.#noteBlocked(operation);
        if (!this.#undo()) return 'illegal';
        continue;
      }
      if (this.#stepCount >= stepEnd) return 'paused';
      if (this.sizeBytes > sizeMaxBytes) return 'full';
      this.#tryPlace(operation);
    }
    return 'legal';
  }

  #link(events: readonly TimedEvent[]): void {
    for (const [i, event] of events.entries()) {
      const node = i + 1;
      this.#operationOf[node] = event.operation;
      (event.isCall ? this.#callNode : this.#returnNode)[event.operation] = node;
      this.#next[i] = node;
      this.#previous[node] = i;
      if (!event.isCall) this.#requiredCount += 1;
    }
    this.#previous[head] = events.length;
  }

  #tryPlace(operation: number): void {
    this.#stepCount += 1;
    const setId = this.#sets.after(this.#setId, this.#operations[operation]!);
    if (setId !== noStates) {
      this.#memo.flip(operation);
      if (this.#memo.addIfNew(setId)) {
        this.#place(operation, setId);
        return;
      }
      this.#memo.flip(operation);
    }
    this.#cursor = this.#next[this.#cursor]!;
  }

  #place(operation: number, setId: number): void {
    this.#stack.push({ operation, setIdBefore: this.#setId });
    this.#setId = setId;
    this.#unlinkNode(this.#callNode[operation]!);
    if (this.#returnNode[operation] !== head) {
      this.#unlinkNode(this.#returnNode[operation]!);
      this.#requiredCount -= 1;
    }
    this.#cursor = this.#next[head]!;
  }

  #undo(): boolean {
    const last = this.#stack.pop();
    if (last === undefined) return false;
    const { operation } = last;
    this.#setId = last.setIdBefore;
    this.#memo.flip(operation);
    // In the reverse order of the unlinking, so that each node finds its old neighbours.
    if (this.#returnNode[operation] !== head) {
      this.#relinkNode(this.#returnNode[operation]!);
      this.#requiredCount += 1;
    }
    this.#relinkNode(this.#callNode[operation]!);
    this.#cursor = this.#next[this.#callNode[operation]!]!;
    return true;
  }

  #unlinkNode(node: number): void {
    this.#next[this.#previous[node]!] = this.#next[node]!;
    this.#previous[this.#next[node]!] = this.#previous[node]!;
  }

  #relinkNode(node: number): void {
    this.#next[this.#previous[node]!] = node;
    this.#previous[this.#next[node]!] = node;
  }

  #noteBlocked(operation: number): void {
    if (this.#deepest !== undefined && this.#stack.length <= this.#deepest.placed.length) return;
    this.#deepest = {
      placed: this.#stack.map((placed) => this.#operations[placed.operation]!),
      stuck: this.#operations[operation]!,
      state: this.#sets.describe(this.#setId),
    };
  }
}

/** Intervals are closed, so at equal times the calls come before the returns. */
function timedEvents(operations: readonly Operation<unknown, unknown>[]): readonly TimedEvent[] {
  const events: TimedEvent[] = [];
  for (const [operation, { callTime, returnTime, output }] of operations.entries()) {
    events.push({ operation, isCall: true, time: callTime });
    if (output === unknownOutput) continue;
    if (!(returnTime >= callTime)) {
      throw new RangeError(`operation ${operation} returns at ${returnTime}, called ${callTime}`);
    }
    events.push({ operation, isCall: false, time: returnTime });
  }
  return events.sort((a, b) => a.time - b.time || Number(b.isCall) - Number(a.isCall));
}
