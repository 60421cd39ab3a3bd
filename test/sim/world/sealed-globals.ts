// The globals through which real time and real chance could get into a run: while it lasts, they are
// the run's own. The source check keeps the project's code away from them; libraries use them. Also
// knows when everything that can go on without time has gone on.

import { createRequire, syncBuiltinESMExports } from 'node:module';
import type { Stream } from './stream.ts';

const realSetImmediate = globalThis.setImmediate;
const realDate = globalThis.Date;
const WALL_START_MS = realDate.UTC(2026, 0, 1);

/** What the globals of a run fall back on. */
export interface GlobalTime {
  readonly nowMs: number;
  after(delayMs: number, action: () => void): { cancel(): void };
}

type Callback = (...values: unknown[]) => void;

export class SealedGlobals {
  #time: GlobalTime | undefined;
  #immediateCount = 0;
  /** Whatever asked the real world through a global, by the global's name. */
  readonly askedByName = new Map<string, number>();
  readonly #restores: (() => void)[] = [];

  /** From now on the globals belong to the run; `unseal` gives them back. */
  seal(time: GlobalTime, random: Stream): void {
    this.#time = time;
    this.#replaceTimers();
    this.#replaceDate();
    this.#replaceChance(random);
  }

  unseal(): void {
    for (const restore of this.#restores.splice(0).reverse()) restore();
    // Last: modules that imported one by its name get what stands there now.
    syncBuiltinESMExports();
  }

  /** Resolves when no microtask and no immediate is left. */
  async settle(): Promise<void> {
    do {
      await new Promise<void>((resolve) => realSetImmediate(resolve));
    } while (this.#immediateCount > 0);
  }

  #note(name: string): GlobalTime {
    this.askedByName.set(name, (this.askedByName.get(name) ?? 0) + 1);
    return this.#time!;
  }

  #replace(owner: object, name: string, value: unknown): void {
    const before = Reflect.get(owner, name) as unknown;
    Reflect.set(owner, name, value);
    this.#restores.push(() => Reflect.set(owner, name, before));
  }

  #replaceTimers(): void {
    this.#replace(globalThis, 'setTimeout', (run: Callback, delayMs = 0, ...values: unknown[]) =>
      this.#timer(delayMs, () => run(...values)),
    );
    this.#replace(globalThis, 'setInterval', (run: Callback, delayMs = 0, ...values: unknown[]) => {
      const timer = this.#timer(delayMs, function again() {
        run(...values);
        timer.again(again);
      });
      return timer;
    });
    const clear = (timer: { cancel?(): void } | undefined): void => timer?.cancel?.();
    this.#replace(globalThis, 'clearTimeout', clear);
    this.#replace(globalThis, 'clearInterval', clear);
    this.#replace(globalThis, 'setImmediate', (run: Callback, ...values: unknown[]) => {
      this.#immediateCount += 1;
      return realSetImmediate(() => {
        this.#immediateCount -= 1;
        run(...values);
      });
    });
  }

  #timer(delayMs: number, action: () => void): LibraryTimer {
    const time = this.#note('setTimeout');
    const await_ = (then: () => void): { cancel(): void } => time.after(delayMs, then);
    return new LibraryTimer(await_, action);
  }

  #replaceDate(): void {
    const wallMs = (): number => WALL_START_MS + this.#note('Date').nowMs;
    const SimulatedDate = class extends realDate {
      constructor(...values: readonly [] | ConstructorParameters<typeof realDate>) {
        if (values.length === 0) super(wallMs());
        else super(...values);
      }

      static override now(): number {
        return wallMs();
      }
    };
    this.#replace(globalThis, 'Date', SimulatedDate);
    this.#replace(globalThis.performance, 'now', () => this.#note('performance.now').nowMs);
    const hrtime = (): [number, number] => {
      const nowMs = this.#note('process.hrtime').nowMs;
      return [Math.floor(nowMs / 1000), Math.round((nowMs % 1000) * 1e6)];
    };
    const bigint = (): bigint => BigInt(Math.round(this.#note('process.hrtime').nowMs * 1e6));
    this.#replace(process, 'hrtime', Object.assign(hrtime, { bigint }));
  }

  #replaceChance(random: Stream): void {
    const note = (name: string): void => {
      this.#note(name);
    };
    this.#replace(Math, 'random', () => {
      note('Math.random');
      return random.fraction();
    });
    const crypto = createRequire(import.meta.url)('node:crypto') as object;
    this.#replace(crypto, 'randomUUID', () => {
      note('crypto.randomUUID');
      return random.uuid();
    });
    this.#replace(crypto, 'randomBytes', (count: number) => {
      note('crypto.randomBytes');
      return Buffer.from(random.bytes(count));
    });
    const fill = (bytes: Uint8Array): Uint8Array => {
      note('crypto.randomFill');
      bytes.set(random.bytes(bytes.length));
      return bytes;
    };
    this.#replace(crypto, 'randomFillSync', fill);
    this.#replace(globalThis.crypto, 'getRandomValues', fill);
    syncBuiltinESMExports();
  }
}

/** What libraries expect of a timer. */
class LibraryTimer {
  readonly #start: (then: () => void) => { cancel(): void };
  #scheduled: { cancel(): void };
  #action: () => void;

  constructor(start: (then: () => void) => { cancel(): void }, action: () => void) {
    this.#start = start;
    this.#action = action;
    this.#scheduled = start(action);
  }

  again(action: () => void): void {
    this.#scheduled.cancel();
    this.#action = action;
    this.#scheduled = this.#start(action);
  }

  cancel(): void {
    this.#scheduled.cancel();
  }

  refresh(): this {
    this.again(this.#action);
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }

  [Symbol.toPrimitive](): number {
    return 1;
  }
}
