// Clients that think, ask, and think again, until they are told to stop.

import type { Stream } from '../world/stream.ts';
import type { World } from '../world/world.ts';

export interface ClientLoopOptions<Client> {
  readonly world: World;
  /** Between an answer and the next question, on average. */
  readonly thinkMs: number;
  readonly next: (client: Client) => Promise<void>;
}

export class ClientLoop<Client extends { readonly stream: Stream }> {
  readonly #options: ClientLoopOptions<Client>;
  #openCount = 0;
  #isStopped = false;

  constructor(options: ClientLoopOptions<Client>) {
    this.#options = options;
  }

  /** Whether nothing is under way. */
  get isIdle(): boolean {
    return this.#openCount === 0;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Thinks, asks, and so on. */
  begin(client: Client): void {
    const { world, thinkMs, next } = this.#options;
    world.time.after(client.stream.exponential(0, thinkMs), () => {
      if (this.#isStopped) return;
      this.#openCount += 1;
      void next(client).then(() => {
        this.#openCount -= 1;
        this.begin(client);
      });
    });
  }

  stop(): void {
    this.#isStopped = true;
  }
}

/** Whether an attempt came through before `endMs`; with a pause between two. */
export async function triedUntil(
  {
    world,
    endMs,
    pauseMs,
  }: { readonly world: World; readonly endMs: number; readonly pauseMs: number },
  attempt: () => Promise<boolean>,
): Promise<boolean> {
  while (world.time.nowMs < endMs) {
    if (await attempt()) return true;
    await world.time.pause(pauseMs);
  }
  return false;
}
