// Transports on a scripted network and a clock that stands still: what each hears, logs and answers.

import type { LogFields, Logger } from '../../../cluster/platform/logger.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import type { Message } from '../../../cluster/raft/message.ts';
import { openTransport } from '../../../cluster/transport/open-transport.ts';
import type {
  PeerStatus,
  RpcCall,
  RpcRequest,
  Transport,
  TransportOptions,
} from '../../../cluster/transport/transport.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeNet } from '../../support/fake-net.ts';
import { FakeRandom, uuidNumbered } from '../../support/fake-random.ts';
import { settled, streamOf } from '../../support/simulated/simulated-world.ts';

export const KEY = Uint8Array.from({ length: 32 }, (_, place) => 200 - place);
export const CLUSTER = 'cccccccc-2222-4333-8444-000000000001';

/** Ids and nonces never repeat, and delays differ. */
class RigRandom extends FakeRandom {
  readonly #draw: () => number;

  constructor(seed: number) {
    super();
    this.#draw = streamOf(seed);
  }

  override bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => Math.floor(this.#draw() * 256));
  }

  override uuid(): string {
    return uuidNumbered(Math.floor(this.#draw() * 2 ** 40));
  }

  override fraction(): number {
    return this.#draw();
  }
}

export interface LogLine {
  readonly level: string;
  readonly text: string;
  readonly fields: LogFields;
}

export class RigNode {
  readonly name: string;
  readonly node: number;
  readonly messages: Message[] = [];
  readonly closedLinks: number[] = [];
  readonly log: LogLine[] = [];
  readonly requests: RpcRequest[] = [];
  serve: (request: RpcRequest) => Promise<Uint8Array> = async ({ payload }) => payload;
  transport!: Transport;
  /** What it says in handshakes from now on. */
  belongs: { readonly clusterId?: string | undefined; readonly federationId?: string | undefined } =
    {};

  constructor(name: string, node: number) {
    this.name = name;
    this.node = node;
  }

  get logger(): Logger {
    const at = (level: string) => (fields: LogFields, text: string) => {
      this.log.push({ level, text, fields });
    };
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  }

  get warnings(): readonly string[] {
    return this.log
      .filter(({ level }) => level === 'warn' || level === 'error')
      .map(({ text, fields }) => `${text}: ${String(fields.why ?? '')}`);
  }

  peer(other: RigNode): PeerStatus | undefined {
    return this.transport.peers().find(({ node }) => node === other.node);
  }

  isLinkedWith(other: RigNode): boolean {
    return this.peer(other)?.isLinked === true;
  }
}

export type NodeGiven = Partial<
  Pick<TransportOptions, 'clusterKey' | 'acceptedKeys' | 'limits' | 'timing'>
> & {
  readonly node: number;
  readonly clusterId?: string | undefined;
  readonly federationId?: string | undefined;
  readonly datacenter?: string;
  readonly reads?: number;
  readonly uses?: number;
  readonly id?: string;
  readonly port?: number;
};

export class Rig {
  readonly clock = new FakeClock(1_000_000);
  readonly net = new FakeNet(this.clock);
  readonly #seed: number;
  #openedCount = 0;

  constructor({ seed = 1 }: { readonly seed?: number } = {}) {
    this.#seed = seed;
  }

  async open(name: string, given: NodeGiven): Promise<RigNode> {
    const { node, id = uuidNumbered(node), datacenter = 'dc1', port = 0 } = given;
    const { acceptedKeys, limits, timing } = given;
    const clusterId = Object.hasOwn(given, 'clusterId') ? given.clusterId : CLUSTER;
    const opened = new RigNode(name, node);
    opened.belongs = { clusterId, federationId: given.federationId };
    this.#openedCount += 1;
    opened.transport = await openTransport({
      net: this.net.host(name),
      clock: this.clock,
      random: new RigRandom(this.#seed * 1000 + this.#openedCount),
      logger: opened.logger,
      self: { node, id, name, datacenter, version: '1.0.0', reads: given.reads ?? 1 },
      uses: () => given.uses ?? 1,
      clusterId: () => opened.belongs.clusterId,
      federationId: () => opened.belongs.federationId,
      clusterKey: Object.hasOwn(given, 'clusterKey') ? given.clusterKey : KEY,
      listen: { host: name, port },
      onMessage: (message) => opened.messages.push(message),
      onLinkClosed: (closed) => opened.closedLinks.push(closed),
      serve: (request) => {
        opened.requests.push(request);
        return opened.serve(request);
      },
      ...(acceptedKeys !== undefined && { acceptedKeys }),
      ...(limits !== undefined && { limits }),
      ...(timing !== undefined && { timing }),
    });
    return opened;
  }

  /** Two nodes that are each other's peers, and linked. */
  async pair(given: Partial<NodeGiven> = {}): Promise<readonly [RigNode, RigNode]> {
    const one = await this.open('one', { ...given, node: 1 });
    const two = await this.open('two', { ...given, node: 2 });
    introduce(one, two);
    await this.until(() => one.isLinkedWith(two) && two.isLinkedWith(one));
    await this.run(20);
    return [one, two];
  }

  /** Lets so much time pass, a millisecond at a time, each with all that it sets off. */
  async run(forMs: number): Promise<void> {
    for (let leftMs = forMs; leftMs > 0; leftMs -= 1) await this.tick();
  }

  async tick(byMs = 1): Promise<void> {
    this.clock.advance(byMs);
    await settled();
    this.clock.advance(0);
    await settled();
  }

  /** False when it does not come to it. */
  async until(condition: () => boolean, withinMs = 10_000): Promise<boolean> {
    for (let leftMs = withinMs; leftMs > 0 && !condition(); leftMs -= 1) await this.tick();
    return condition();
  }

  /** What a call comes to, as text, once it is known. */
  async outcome(answer: Promise<Uint8Array>, withinMs = 10_000): Promise<string> {
    let result = '';
    answer.then(
      (bytes) => {
        result = `answer ${Buffer.from(bytes).toString()}`;
      },
      (error: Error & { readonly code?: string }) => {
        result = `${error.code}: ${error.message}`;
      },
    );
    await settled();
    await this.until(() => result !== '', withinMs);
    return result;
  }
}

/** Each gets all the others as peers. */
export function introduce(...nodes: readonly RigNode[]): void {
  for (const node of nodes) {
    const others = nodes.filter((each) => each !== node);
    node.transport.setPeers(new Map(others.map((each) => [each.node, addressOf(each)])));
  }
}

export function addressOf(node: RigNode): NetAddress {
  return node.transport.address;
}

export function aCall(given: Partial<RpcCall> = {}): RpcCall {
  return {
    method: 'test.echo',
    payload: Buffer.from('hello'),
    deadlineMs: 1_000,
    hops: 0,
    ...given,
  };
}

export function aHeartbeat(from: RigNode, to: RigNode, readCount = 0): Message {
  return { type: 'heartbeat', from: from.node, to: to.node, term: 1, commitIndex: 0, readCount };
}

export function anAppend(
  from: RigNode,
  to: RigNode,
  { prevIndex, bytes }: { readonly prevIndex: number; readonly bytes: number },
): Message {
  return {
    type: 'append',
    from: from.node,
    to: to.node,
    term: 1,
    prevTerm: 1,
    prevIndex,
    commitIndex: 0,
    entries: [{ index: prevIndex + 1, term: 1, type: 'normal', data: new Uint8Array(bytes) }],
  };
}
