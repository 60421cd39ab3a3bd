// Owns the local cluster while it runs: takes orders over HTTP and carries them out one after the other. It
// ends with the cluster, and leaves nothing running when it ends in good order.

import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { HOST } from '../cluster-plan.ts';
import { ClusterRefusal } from '../cluster-refusal.ts';
import type { LocalCluster, Tell } from '../local-cluster.ts';
import { type ClusterState, hasServers, type Order, type OrderNews } from './orders.ts';

const ORDER_MAX_BYTES = 64 * 1024;

export class Supervisor {
  readonly #cluster: LocalCluster;
  readonly #secret: Buffer;
  readonly #onEnd: () => void;
  readonly #server: Server;
  /** Orders that change something, one at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #ending: Promise<void> | undefined;

  /** `onEnd` is called when nothing runs any more. */
  constructor(cluster: LocalCluster, secret: string, onEnd: () => void) {
    this.#cluster = cluster;
    this.#secret = Buffer.from(`Bearer ${secret}`);
    this.#onEnd = onEnd;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Resolves with the port. */
  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: HOST, port: 0 }, () =>
        resolve((this.#server.address() as AddressInfo).port),
      );
    });
  }

  /** Ends all servers, then itself. */
  end({ isKept }: { readonly isKept: boolean }): Promise<void> {
    this.#ending ??= this.#end(isKept);
    return this.#ending;
  }

  async #end(isKept: boolean): Promise<void> {
    await this.#cluster.close();
    const { files } = this.#cluster;
    files.forgetDescription();
    files.forgetSupervisor();
    if (!isKept) files.removeAll();
    // Whoever asked for it hears that it is done.
    this.#server.close(() => this.#onEnd());
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#isOwner(request.headers.authorization ?? '')) {
      response.writeHead(403).end('this takes the secret of supervisor.json\n');
      return;
    }
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
    const news = (one: OrderNews): void => void response.write(`${JSON.stringify(one)}\n`);
    try {
      const order = JSON.parse(await bodyOf(request)) as Order;
      const tell: Tell = (says) => news({ kind: 'says', says });
      const gone = new Promise<never>((_, reject) =>
        response.once('close', () => reject(new Error('whoever asked went away'))),
      );
      gone.catch(() => undefined);
      const state = await this.#run(order, tell, gone);
      news({ kind: 'done', state });
    } catch (error) {
      news({
        kind: 'refused',
        why: error instanceof ClusterRefusal ? error.message : textOf(error),
      });
    }
    response.end();
  }

  #isOwner(given: string): boolean {
    const bytes = Buffer.from(given);
    return bytes.length === this.#secret.length && timingSafeEqual(bytes, this.#secret);
  }

  async #run(order: Order, tell: Tell, gone: Promise<never>): Promise<ClusterState> {
    if (order.kind === 'state') return this.#state();
    if (order.kind === 'up') return await this.#up(order.isNew, tell, gone);
    if (order.kind === 'down') {
      const state = this.#state();
      await this.end(order);
      return state;
    }
    const mine = this.#last.then(() => this.#carryOut(order, tell));
    this.#last = mine.catch(() => undefined);
    await mine;
    return this.#state();
  }

  /** What ran before runs on, whatever becomes of the rest. */
  async #up(isNew: boolean, tell: Tell, gone: Promise<never>): Promise<ClusterState> {
    const hasRun = hasServers(this.#state());
    const started = this.#cluster.startAll(tell);
    this.#last = started.catch(() => undefined);
    try {
      await Promise.race([started, gone]);
      return this.#state();
    } catch (error) {
      started.catch(() => undefined);
      // What went wrong is in the logs; somebody who only went away needs none.
      // And what was started needs nobody who waits until it is ready.
      if (hasRun) this.#last = Promise.resolve();
      else await this.end({ isKept: !isNew || error instanceof ClusterRefusal });
      throw error;
    }
  }

  #carryOut(
    order: Exclude<Order, { readonly kind: 'up' | 'down' | 'state' }>,
    tell: Tell,
  ): Promise<unknown> | undefined {
    const cluster = this.#cluster;
    switch (order.kind) {
      case 'kill':
        return cluster.kill(order.name);
      case 'pause':
        return cluster.pause(order.name);
      case 'resume':
        return cluster.resume(order.name);
      case 'promote':
        return cluster.promote(order.name);
      case 'remove':
        return cluster.remove(order.name, tell);
      case 'restart':
        return cluster.restart(order.name, order, tell);
      case 'partition':
        cluster.partition(order.between);
        return;
      case 'delay':
        cluster.delay(order.between, order.delayMs);
        return;
      case 'heal':
        cluster.heal(order.between);
        return;
      case 'add':
        return cluster.add(order.datacenter, tell);
      default:
        return unreachable(order);
    }
  }

  #state(): ClusterState {
    const cluster = this.#cluster;
    const names = cluster.plan.nodes.map(({ name }) => name);
    return {
      cluster: cluster.describe(),
      states: Object.fromEntries(names.map((name) => [name, cluster.stateOf(name)])),
      faults: cluster.lineFaults(),
    };
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > ORDER_MAX_BYTES) throw new ClusterRefusal('the order is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
