// The transport of a node: it listens, keeps a link with every peer, and knows who may link with it. Two
// nodes are joined by one pair of connections, whoever dialled them, and speak both ways on each.

import { assert } from '../base/assert.ts';
import type { Conn, ConnHandlers, Listening, NetAddress } from '../platform/net.ts';
import type { Message } from '../raft/message.ts';
import type { NodeId } from '../raft/node-id.ts';
import { type Hello, NONCE_BYTES } from '../wire/frame.ts';
import { isSent } from '../wire/message-codec.ts';
import { RpcError } from './calls/rpc-error.ts';
import { DialAttempt } from './handshake/dial-attempt.ts';
import { Handshake, type HandshakeOptions, type Proved } from './handshake/handshake.ts';
import { HandshakeRefusal } from './handshake/handshake-refusal.ts';
import { Reception } from './handshake/reception.ts';
import { AskedLane } from './links/asked-lane.ts';
import { Guests } from './links/guests.ts';
import { Link } from './links/link.ts';
import type { LinkParts } from './links/link-parts.ts';
import type { PeerStatus, RpcCall, RpcCaller, Transport, TransportOptions } from './transport.ts';
import { DEFAULT_TRANSPORT_LIMITS, DEFAULT_TRANSPORT_TIMING } from './transport-limits.ts';

/** Listens; rejects when the address cannot be had. */
export async function openTransport(options: TransportOptions): Promise<Transport> {
  const transport = new NodeTransport(options);
  await transport.listen();
  return transport;
}

/** Nodes that were peers once and are refused since; the oldest is forgotten. */
const FORMER_MAX = 256;
const CLOSING = 'the node is closing';

class NodeTransport implements Transport {
  readonly #options: TransportOptions;
  readonly #parts: LinkParts;
  readonly #life: string;
  readonly #links = new Map<NodeId, Link>();
  readonly #former = new Set<NodeId>();
  readonly #askers = new Set<AskedLane>();
  readonly #guests: Guests;
  readonly #reception: Reception;
  #listening: Listening | undefined;
  #lastCallId = 0;
  #closing: Promise<void> | undefined;

  constructor(options: TransportOptions) {
    const { clock, logger, random, self, serve, onMessage, onLinkClosed } = options;
    const timing = { ...DEFAULT_TRANSPORT_TIMING, ...options.timing };
    const limits = { ...DEFAULT_TRANSPORT_LIMITS, ...options.limits };
    this.#options = options;
    this.#life = random.uuid();
    this.#parts = {
      self,
      clock,
      random,
      logger,
      timing,
      limits,
      serve,
      onMessage,
      onLinkClosed,
      dial: (request) =>
        new DialAttempt({
          ...request,
          net: options.net,
          clock,
          timing,
          frameMaxBytes: limits.helloMaxBytes,
          handshake: this.#handshake(
            { kind: 'dialler', lane: request.lane, expected: request.expected },
            request.isStranger === true ? '' : options.clusterId(),
          ),
        }),
      nextCallId: () => {
        this.#lastCallId += 1;
        return this.#lastCallId;
      },
      belonging: () => `${options.clusterId() ?? ''} ${options.federationId?.() ?? ''}`,
    };
    this.#guests = new Guests(this.#parts);
    this.#reception = new Reception({
      clock,
      logger,
      timing,
      limits,
      handshake: () =>
        this.#handshake(
          { kind: 'listener', admit: (hello) => this.#admit(hello) },
          options.clusterId(),
        ),
      onProved: (conn, proved) => this.#take(conn, proved),
    });
  }

  async listen(): Promise<void> {
    const { net, listen } = this.#options;
    this.#listening = await net.listen(listen, (conn) => {
      // What was on its way when the transport was closed: the stores may be closed by now, too.
      if (this.#closing === undefined) this.#reception.take(conn);
      else conn.close(CLOSING);
    });
  }

  get address(): NetAddress {
    assert(this.#listening !== undefined, 'the transport listens');
    return this.#listening.address;
  }

  setPeers(peers: ReadonlyMap<NodeId, NetAddress>): void {
    if (this.#closing !== undefined) return;
    for (const [node, link] of this.#links) {
      if (link.isPeer && !peers.has(node)) this.#drop(link);
    }
    for (const [node, address] of peers) {
      if (node === this.#options.self.node) continue;
      this.#former.delete(node);
      this.#linkWith(node).setAddress(address);
    }
  }

  send(message: Message): void {
    assert(isSent(message), 'the message is one for another node', { type: message.type });
    this.#links.get(message.to)?.send(message);
  }

  call(to: NodeId | NetAddress, request: RpcCall): Promise<Uint8Array> {
    const why = this.#reasonToRefuse(request);
    if (why !== undefined) return Promise.reject(why);
    if (typeof to !== 'number') return this.#guests.call(to, request);
    const link = this.#links.get(to);
    if (link !== undefined) return link.call(request);
    const says = `${request.method} was not sent: node ${to} is no peer`;
    return Promise.reject(new RpcError('unreachable', says));
  }

  async whoIsAt(address: NetAddress, deadlineMs: number): Promise<RpcCaller> {
    if (this.#closing !== undefined) throw new RpcError('unreachable', CLOSING);
    return this.#guests.whoIsAt(address, deadlineMs);
  }

  peers(): readonly PeerStatus[] {
    return [...this.#links.values()]
      .map((link) => link.status())
      .filter((status) => status !== undefined);
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    const { clock } = this.#options;
    const { closeGraceMs } = this.#parts.timing;
    const stopped = this.#listening?.close();
    this.#reception.close(CLOSING);
    const drained = [...this.#links.values(), ...this.#askers].map((each) => each.drain());
    await new Promise<void>((resolve) => {
      const timer = clock.after(closeGraceMs, resolve);
      void Promise.all(drained).then(() => {
        timer.cancel();
        resolve();
      });
    });
    for (const link of this.#links.values()) link.close('closing', CLOSING);
    this.#links.clear();
    for (const { lane } of [...this.#askers]) lane.refuse('closing', CLOSING);
    this.#guests.close(CLOSING);
    await stopped;
  }

  #reasonToRefuse({ method, payload, hops }: RpcCall): RpcError | undefined {
    const { hopsMax, payloadMaxBytes } = this.#parts.limits;
    if (this.#closing !== undefined) {
      return new RpcError('unreachable', `${method} was not sent: ${CLOSING}`);
    }
    if (hops > hopsMax) {
      const says = `${method} was handed on ${hops} times, at most ${hopsMax} are sensible`;
      return new RpcError('too-many-hops', says);
    }
    if (payload.length <= payloadMaxBytes) return undefined;
    const says = `${method} carries ${payload.length} bytes, at most ${payloadMaxBytes} are sent`;
    return new RpcError('too-large', says);
  }

  /** The peer's number is spent: what still believes that it belongs here is told so. */
  #drop(link: Link): void {
    const { node } = link;
    this.#links.delete(node);
    const [oldest] = this.#former;
    if (this.#former.size >= FORMER_MAX && oldest !== undefined) this.#former.delete(oldest);
    this.#former.add(node);
    link.close('refused', this.#formerText(node));
  }

  #linkWith(node: NodeId): Link {
    const known = this.#links.get(node);
    if (known !== undefined) return known;
    const link: Link = new Link({
      parts: this.#parts,
      node,
      onIdle: () => {
        if (this.#links.get(node) === link) this.#links.delete(node);
      },
    });
    this.#links.set(node, link);
    return link;
  }

  /** Asked when the other node has proved itself, in the turn in which its connection is taken. */
  #admit(hello: Hello): HandshakeRefusal | undefined {
    if (this.#closing !== undefined) return new HandshakeRefusal('closing', CLOSING);
    const { guestsMax, visitorsMax } = this.#parts.limits;
    if (hello.lane === 'call') {
      return this.#askers.size < guestsMax ? undefined : busy('too many nodes are asking');
    }
    const link = this.#links.get(hello.node);
    if (link !== undefined) return link.admit(hello);
    const reason = this.#reasonAgainstVisitor(hello);
    if (reason !== undefined) return new HandshakeRefusal('refused', reason);
    const visitorCount = [...this.#links.values()].filter(({ isPeer }) => !isPeer).length;
    return visitorCount < visitorsMax ? undefined : busy('too many nodes link that are no peers');
  }

  /**
   * A member may be elected by others before this node has heard of it, and then it must be heard. So of
   * nodes that are no peers, those of the same cluster may link.
   */
  #reasonAgainstVisitor({ node, name, id, clusterId }: Hello): string | undefined {
    if (this.#former.has(node)) return this.#formerText(node);
    const own = this.#options.clusterId();
    if (own !== undefined && clusterId === own) return undefined;
    return `node ${name} (${id}) is unknown to ${this.#options.self.name}`;
  }

  #formerText(node: NodeId): string {
    return `node ${node} does not belong to the group of ${this.#options.self.name} any more`;
  }

  #take(conn: Conn, proved: Proved): ConnHandlers {
    const { node, lane } = proved.hello;
    if (lane !== 'call') return this.#linkWith(node).take(conn, proved);
    const asker: AskedLane = new AskedLane({
      parts: this.#parts,
      conn,
      proved,
      onClosed: () => this.#askers.delete(asker),
    });
    this.#askers.add(asker);
    return asker.lane;
  }

  #handshake(side: HandshakeOptions['side'], clusterId: string | undefined): Handshake {
    const { self, federationId, uses, clusterKey, acceptedKeys, random } = this.#options;
    return new Handshake({
      self,
      life: this.#life,
      clusterId: clusterId ?? '',
      federationId: federationId?.() ?? '',
      uses: uses(),
      clusterKey,
      ...(acceptedKeys !== undefined && { acceptedKeys }),
      nonce: random.bytes(NONCE_BYTES),
      side,
    });
  }
}

function busy(why: string): HandshakeRefusal {
  return new HandshakeRefusal('busy', why);
}
