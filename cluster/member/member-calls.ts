// What this node answers to calls, by their names. Those of members among themselves begin with
// 'member.', and no other datacenter has a part in them. All others are services: each says whether only
// members of the group may ask, or nodes of the other datacenters of the federation too.

import { assert } from '../base/assert.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { NodeId } from '../raft/node-id.ts';
import { GroupRefusal } from '../replica/group-refusal.ts';
import { ReplicaError } from '../replica/replica.ts';
import { RpcError, RpcRefusal } from '../transport/calls/rpc-error.ts';
import { RefusalLog } from '../transport/handshake/refusal-log.ts';
import type { RpcCaller, RpcRequest, RpcServer } from '../transport/transport.ts';
import { WireDamage } from '../wire/wire-damage.ts';

/** Of calls of members among themselves. */
export type HandlerByMethod = Readonly<Record<string, RpcServer>>;

/** Whom a service answers. */
export type ServiceCallers = 'own-datacenter' | 'datacenters';

export interface MemberCallsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly self: { readonly name: string; readonly datacenter: string };
  /** As the node stands at the moment: looking for a group, in one, or out of it. */
  readonly ownHandlers: () => HandlerByMethod;
  readonly isMember: (node: NodeId) => boolean;
}

interface Service {
  readonly handler: RpcServer;
  readonly from: ServiceCallers;
}

const OWN_PREFIX = 'member.';

export class MemberCalls {
  readonly #options: MemberCallsOptions;
  readonly #refusals: RefusalLog;
  readonly #services = new Map<string, Service>();

  constructor(options: MemberCallsOptions) {
    this.#options = options;
    this.#refusals = new RefusalLog(options);
  }

  serve(method: string, handler: RpcServer, from: ServiceCallers): void {
    assert(!method.startsWith(OWN_PREFIX), 'these are for members among themselves', { method });
    assert(!this.#services.has(method), 'a method has one handler', { method });
    this.#services.set(method, { handler, from });
  }

  /** Rejects with RpcRefusal; any other failure is this node's. */
  async answer(request: RpcRequest): Promise<Uint8Array> {
    const { method } = request;
    const handler = method.startsWith(OWN_PREFIX)
      ? this.#ownHandlerFor(request)
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

  #ownHandlerFor({ method, from }: RpcRequest): RpcServer | undefined {
    if (!this.#isOfOther(from)) return this.#options.ownHandlers()[method];
    throw this.#otherDatacenter(method, from);
  }

  #serviceFor({ method, from }: RpcRequest): RpcServer | undefined {
    const service = this.#services.get(method);
    if (this.#isOfOther(from)) {
      if (service?.from === 'own-datacenter') throw this.#otherDatacenter(method, from);
      return service?.handler;
    }
    if (this.#options.isMember(from.node)) return service?.handler;
    const says = `server ${from.name} (${from.id}) is no member of the cluster of this one`;
    throw new RpcRefusal('no-member', says);
  }

  #isOfOther({ datacenter }: RpcCaller): boolean {
    return datacenter !== this.#options.self.datacenter;
  }

  #otherDatacenter(method: string, from: RpcCaller): RpcRefusal {
    const { self } = this.#options;
    const two = `${from.name} is of datacenter "${from.datacenter}", ${self.name} of "${self.datacenter}"`;
    const says = `${method} is for servers of one datacenter: server ${two}`;
    this.#refusals.note({
      what: 'call',
      remote: from.remote,
      name: from.name,
      why: says,
      level: 'warn',
    });
    return new RpcRefusal('other-datacenter', says);
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
