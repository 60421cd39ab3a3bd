// The nodes of a run: which host is up, who restarts what ended, and how a client reaches them. A node
// that ends by itself is restarted by its supervisor; one whose disk is damaged may refuse to start,
// and stays down.

import type { Violations } from '../checks/violations.ts';
import type { LiveNode, Subject } from '../subject/subject.ts';
import type { Ending } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { SimProcess } from '../world/sim-process.ts';
import type { Stream } from '../world/stream.ts';
import type { World } from '../world/world.ts';

/** What came of asking a node. */
export type Reply<T> =
  /** Nothing reached it. */
  | { readonly kind: 'not-sent' }
  /** It may have done what was asked. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'answered'; readonly value: T }
  | { readonly kind: 'refused'; readonly error: unknown };

export interface SimGroupOptions {
  readonly world: World;
  readonly subject: Subject;
  readonly violations: Violations;
  /** Part of the questions, and of the answers, of clients that get lost. */
  readonly clientLossRate: number;
}

/** After that many failed starts a node is left alone. */
const STARTS_MAX = 4;
/** After that a node that was asked to stop is killed. */
const STOP_MAX_MS = 10_000;

export class SimGroup {
  readonly #options: SimGroupOptions;
  readonly #liveByHost = new Map<SimHost, LiveNode>();
  readonly #failedStarts = new Map<SimHost, number>();
  /** Down by a fault, until the fault is over. */
  readonly #heldDown = new Set<SimHost>();
  /** Disks that were damaged on purpose: their nodes may refuse to start, and end. */
  readonly damaged = new Set<SimHost>();
  /** Disks that fail writes at times: their nodes may end. */
  readonly failing = new Set<SimHost>();
  readonly #stream: Stream;
  #clientLossRate: number;

  constructor(options: SimGroupOptions) {
    this.#options = options;
    this.#stream = options.world.stream.fork('clients');
    this.#clientLossRate = options.clientLossRate;
  }

  live(host: SimHost): LiveNode | undefined {
    return host.process === undefined ? undefined : this.#liveByHost.get(host);
  }

  /** Who of these leads in the highest term, if anybody does. */
  leader(hosts: readonly SimHost[]): SimHost | undefined {
    let best: { readonly host: SimHost; readonly term: number } | undefined;
    for (const host of hosts) {
      const status = this.live(host)?.status();
      if (status?.standing !== 'leader') continue;
      if (best === undefined || status.term > best.term) best = { host, term: status.term };
    }
    return best?.host;
  }

  /** From now on no question of a client gets lost, and no answer, but with the host that had it. */
  healClients(): void {
    this.#clientLossRate = 0;
  }

  start(host: SimHost): void {
    this.#heldDown.delete(host);
    if (host.process === undefined) void this.#boot(host);
  }

  crash(host: SimHost, ending: Ending): void {
    this.#heldDown.add(host);
    this.#end(host, ending);
  }

  /** As an operator's stop; resolves when it is down. */
  async stop(host: SimHost): Promise<void> {
    const { process } = host;
    const live = this.live(host);
    this.#heldDown.add(host);
    if (process === undefined || live === undefined) {
      this.#end(host, 'process');
      return;
    }
    this.#killLater(host, process);
    try {
      await live.close();
    } catch (error) {
      if (!this.#mayFail(host)) this.#violate(host, 'closing failed', error);
    }
    if (host.process !== process) return;
    this.#end(host, 'process');
    this.#restartLater(host);
  }

  /** One that does not come to an end is ended. */
  #killLater(host: SimHost, process: SimProcess): void {
    const { time, trace } = this.#options.world;
    time.after(STOP_MAX_MS, () => {
      if (host.process !== process) return;
      trace.mark('a stop took too long');
      this.#end(host, 'process');
      this.#restartLater(host);
    });
  }

  /** Asks a node, over the wire of a client. */
  ask<T>(
    host: SimHost,
    timeoutMs: number,
    question: (node: LiveNode) => Promise<T>,
  ): Promise<Reply<T>> {
    const { time, net } = this.#options.world;
    return new Promise((resolve) => {
      let sent = false;
      time.after(timeoutMs, () => resolve({ kind: sent ? 'lost' : 'not-sent' }));
      if (this.#isLost()) {
        sent = true;
        return;
      }
      this.#travel(() => {
        const { process } = host;
        if (process === undefined) {
          if (!net.isDark(host.name)) resolve({ kind: 'not-sent' });
          return;
        }
        sent = true;
        process.onOver(() => {
          if (!net.isDark(host.name)) this.#travel(() => resolve({ kind: 'lost' }));
        });
        process.deliver(() => this.#answer(host, question, resolve));
      });
    });
  }

  #answer<T>(
    host: SimHost,
    question: (node: LiveNode) => Promise<T>,
    resolve: (reply: Reply<T>) => void,
  ): void {
    const live = this.live(host);
    const back = (reply: Reply<T>): void => {
      if (this.#isLost()) return;
      this.#travel(() => resolve(reply));
    };
    if (live === undefined) {
      back({ kind: 'not-sent' });
      return;
    }
    const ask = async (): Promise<T> => question(live);
    ask().then(
      (value) => back({ kind: 'answered', value }),
      (error: unknown) => back({ kind: 'refused', error }),
    );
  }

  #isLost(): boolean {
    return this.#stream.chance(this.#clientLossRate);
  }

  #travel(action: () => void): void {
    this.#options.world.time.after(this.#stream.exponential(0.1, 0.5), action);
  }

  async #boot(host: SimHost): Promise<void> {
    const { subject, world } = this.#options;
    const process = host.boot();
    try {
      const live = await subject.start(host, process, (cause) =>
        this.#onExit(host, process, cause),
      );
      if (process.isOver) return;
      this.#liveByHost.set(host, live);
      this.#failedStarts.delete(host);
      world.trace.note('up', host.name, host.lifeCount);
    } catch (error) {
      if (process.isOver) return;
      world.trace.mark('a node refused to start');
      world.trace.note('refused', host.name, host.lifeCount, () => String(error));
      if (!this.#mayFail(host)) this.#violate(host, 'the node does not start', error);
      this.#failedStarts.set(host, (this.#failedStarts.get(host) ?? 0) + 1);
      this.#end(host, 'process');
      this.#restartLater(host);
    }
  }

  #onExit(host: SimHost, process: SimProcess, cause: Error): void {
    if (process.isOver) return;
    this.#options.world.trace.note('exit', host.name, host.lifeCount, () => String(cause));
    this.#options.world.trace.mark('a node ended itself');
    if (!this.#mayFail(host)) this.#violate(host, 'the node ended itself', cause);
    this.#end(host, 'process');
    this.#restartLater(host);
  }

  #restartLater(host: SimHost): void {
    const delayMs = this.#stream.between(200, 2000);
    this.#options.world.time.after(delayMs, () => {
      if ((this.#failedStarts.get(host) ?? 0) >= STARTS_MAX) return;
      if (!this.#heldDown.has(host) && host.process === undefined) void this.#boot(host);
    });
  }

  #end(host: SimHost, ending: Ending): void {
    this.#liveByHost.delete(host);
    host.crash(ending);
  }

  #mayFail(host: SimHost): boolean {
    return this.damaged.has(host) || this.failing.has(host);
  }

  #violate(host: SimHost, what: string, error: unknown): void {
    const shown = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#options.violations.add('assertions', `${host.name}: ${what}: ${shown}`);
  }
}
