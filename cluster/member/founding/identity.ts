// What a node has on disk before it has a log: to which cluster it belongs, and to which founding it has
// promised itself. One write at a time, each looked at again when its turn comes, so that no two
// promises are ever out together. Once it belongs to a cluster, nothing is written here any more: the
// database is the log's then.

import { assert } from '../../base/assert.ts';
import { SerialWork } from '../../base/serial-work.ts';
import {
  type Founding,
  readClusterId,
  readPromise,
  writeClusterId,
  writeFounding,
  writePromise,
} from '../../log/cluster-identity.ts';
import type { Kv } from '../../platform/kv.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import { type FoundingPromise, promiseOf, promiseText } from './founding.ts';

export class Identity {
  readonly #kv: Kv;
  readonly #selfId: string;
  readonly #disk = new SerialWork();
  #clusterId: string | undefined;
  #promise: FoundingPromise | undefined;
  #isClosed = false;

  constructor(kv: Kv, selfId: string) {
    this.#kv = kv;
    this.#selfId = selfId;
    this.#clusterId = readClusterId(kv);
    const text = readPromise(kv);
    this.#promise = text === undefined ? undefined : promiseOf(text);
  }

  get clusterId(): string | undefined {
    return this.#clusterId;
  }

  /** As it is on disk; it binds until it is released or fulfilled. */
  get promise(): FoundingPromise | undefined {
    return this.#promise;
  }

  /** The promise that another founder has of this node. */
  get given(): FoundingPromise | undefined {
    return this.#promise?.founderId === this.#selfId ? undefined : this.#promise;
  }

  /**
   * Promises this node to a founder; resolves when it is on disk. Asked again for the same one it says
   * the same. Rejects with RpcRefusal when the node is not free.
   */
  grant(promise: FoundingPromise): Promise<void> {
    return this.#disk.run(async () => {
      this.#requireFree(promise);
      if (this.#promise === undefined) await this.#writePromise(promise);
    });
  }

  /** Promises this node to its own founding. False when it is not free. */
  begin(promise: FoundingPromise): Promise<boolean> {
    assert(promise.founderId === this.#selfId, 'this node is the founder', promise);
    return this.#disk.run(async () => {
      if (!this.#isFree || this.#promise !== undefined) return false;
      await this.#writePromise(promise);
      return true;
    });
  }

  /** That founding is given up: whoever asks is told so from now on. False when it was not promised. */
  release(foundingId: string): Promise<boolean> {
    return this.#disk.run(async () => {
      if (!this.#isFree || this.#promise?.foundingId !== foundingId) return false;
      await this.#writePromise(undefined);
      return true;
    });
  }

  /** Writes the founding that this node has promised itself to. False when it has not. */
  found(founding: Founding): Promise<boolean> {
    return this.#disk.run(async () => {
      if (!this.#isFree || this.#promise?.foundingId !== founding.clusterId) return false;
      await writeFounding(this.#kv, founding);
      this.#settle(founding.clusterId);
      return true;
    });
  }

  /** Founds a group of this node alone. */
  foundAlone(founding: Founding): Promise<void> {
    return this.#disk.run(async () => {
      assert(
        this.#isFree && this.given === undefined,
        'a node that is promised founds nothing alone',
      );
      await writeFounding(this.#kv, founding);
      this.#settle(founding.clusterId);
    });
  }

  /** The node belongs to that cluster, with an empty log. False when it is promised to another founding. */
  join(clusterId: string): Promise<boolean> {
    return this.#disk.run(async () => {
      const mayJoin = this.#promise === undefined || this.#promise.foundingId === clusterId;
      if (!this.#isFree || !mayJoin) return false;
      await writeClusterId(this.#kv, clusterId);
      this.#settle(clusterId);
      return true;
    });
  }

  /** One that a crash has left behind, beside the cluster that it was for. Before the log is written to. */
  forgetPromise(): Promise<void> {
    return this.#disk.run(async () => {
      assert(this.#clusterId !== undefined, 'the node belongs to a cluster');
      if (readPromise(this.#kv) !== undefined) await writePromise(this.#kv, undefined);
    });
  }

  /** A log without the id of a cluster is from before there were any. Before the log is written to. */
  adopt(clusterId: string): Promise<void> {
    return this.#disk.run(async () => {
      await writeClusterId(this.#kv, clusterId);
      this.#settle(clusterId);
    });
  }

  /** Resolves when nothing is written any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#disk.idle();
  }

  get #isFree(): boolean {
    return !this.#isClosed && this.#clusterId === undefined;
  }

  #requireFree(asked: FoundingPromise): void {
    if (this.#clusterId !== undefined) {
      throw new RpcRefusal('has-cluster', 'it belongs to a cluster already');
    }
    if (this.#isClosed) throw new RpcRefusal('closing', 'it is closing');
    const promise = this.#promise;
    if (promise === undefined || promise.foundingId === asked.foundingId) return;
    const says =
      promise.founderId === this.#selfId
        ? 'it is about to found a cluster itself'
        : `it has promised itself to server ${promise.founderName}`;
    throw new RpcRefusal('promised', says);
  }

  async #writePromise(promise: FoundingPromise | undefined): Promise<void> {
    await writePromise(this.#kv, promise === undefined ? undefined : promiseText(promise));
    this.#promise = promise;
  }

  #settle(clusterId: string): void {
    this.#clusterId = clusterId;
    this.#promise = undefined;
  }
}
