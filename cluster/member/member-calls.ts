// What this node answers to calls, by their names. Those of members among themselves begin with
// 'member.'; all others are services, which only members of the group may ask.

import { assert } from '../base/assert.ts';
import type { NodeId } from '../raft/node-id.ts';
import { GroupRefusal } from '../replica/group-refusal.ts';
import { ReplicaError } from '../replica/replica.ts';
import { RpcError, RpcRefusal } from '../transport/rpc-error.ts';
import type { RpcRequest, RpcServer } from '../transport/transport.ts';
import { WireDamage } from '../wire/wire-damage.ts';

/** Of calls of members among themselves. */
export type HandlerByMethod = Readonly<Record<string, RpcServer>>;

export interface MemberCallsOptions {
  /** As the node stands at the moment: looking for a group, in one, or out of it. */
  readonly ownHandlers: () => HandlerByMethod;
  readonly isMember: (node: NodeId) => boolean;
}

const OWN_PREFIX = 'member.';

export class MemberCalls {
  readonly #options: MemberCallsOptions;
  readonly #services = new Map<string, RpcServer>();

  constructor(options: MemberCallsOptions) {
    this.#options = options;
  }

  serve(method: string, handler: RpcServer): void {
    assert(!method.startsWith(OWN_PREFIX), 'these are for members among themselves', { method });
    assert(!this.#services.has(method), 'a method has one handler', { method });
    this.#services.set(method, handler);
  }

  /** Rejects with RpcRefusal; any other failure is this node's. */
  async answer(request: RpcRequest): Promise<Uint8Array> {
    const { method } = request;
    const handler = method.startsWith(OWN_PREFIX)
      ? this.#options.ownHandlers()[method]
      : this.#serviceFor(request);
    if (handler === undefined) {
      throw new RpcRefusal('unknown-method', `this server does not answer ${method} now`);
    }
    try {
      return await handler(request);
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /** A call of this node to itself. Rejects with RpcError, as from another node. */
  async answerOwn(request: RpcRequest): Promise<Uint8Array> {
    try {
      return await this.answer(request);
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      throw new RpcError('refused', error.message, { code: error.code, says: error.message });
    }
  }

  #serviceFor({ method, from }: RpcRequest): RpcServer | undefined {
    if (this.#options.isMember(from.node)) return this.#services.get(method);
    const says = `server ${from.name} (${from.id}) is no member of the cluster of this one`;
    throw new RpcRefusal('no-member', says);
  }
}

/** What a node may hear of what went wrong here. */
function refusalOf(error: unknown): unknown {
  if (error instanceof WireDamage) return new RpcRefusal('damaged', error.message);
  // What is not known must not be told as a refusal: the caller would take it for undone.
  const isKnown = error instanceof ReplicaError && error.code !== 'outcome-unknown';
  if (isKnown || error instanceof GroupRefusal) return new RpcRefusal(error.code, error.message);
  return error;
}
