// Who is at the other end of a connection. Both sides say hello, then prove that they have the cluster key
// by a keyed hash over both hellos (each holds a nonce, so no proof serves twice) and the side they are on
// (so none can be sent back). The key itself never travels. While a key is being replaced, others are accepted
// beside it: the listening side proves that it has the one that the dialling side proved. Pure: bytes in,
// bytes out.

import { assert } from '../../base/assert.ts';
import type { NodeId } from '../../raft/node-id.ts';
import { type Hello, type Lane, NEWEST_PROTOCOL, OLDEST_PROTOCOL } from '../../wire/frame.ts';
import { decodeFrame, encodeFrame } from '../../wire/frame-codec.ts';
import { hmacSha256, isSameSecret } from '../../wire/hmac.ts';
import type { TransportSelf } from '../transport.ts';
import { HandshakeRefusal } from './handshake-refusal.ts';
import { refusalOfHello, whoIs } from './hello-check.ts';

export type Side = 'dialler' | 'listener';

export interface HandshakeOptions {
  readonly self: TransportSelf;
  /** Of this process: see Hello. */
  readonly life: string;
  /** Empty: none yet. */
  readonly clusterId: string;
  /** Empty: none yet. */
  readonly federationId: string;
  /** See Hello. */
  readonly uses: number;
  readonly clusterKey: Uint8Array | undefined;
  /** Keys that are taken from whoever dials, besides. */
  readonly acceptedKeys?: readonly Uint8Array[];
  readonly nonce: Uint8Array;
  readonly side: DiallingSide | ListeningSide;
}

export interface DiallingSide {
  readonly kind: 'dialler';
  readonly lane: Lane;
  /** Who should answer, if it is known. */
  readonly expected: NodeId | undefined;
}

export interface ListeningSide {
  readonly kind: 'listener';
  /** Whether the node, who has proved that it is what it says, may have the lane. */
  readonly admit: (hello: Hello) => HandshakeRefusal | undefined;
}

/** Who is there, and how both will speak from now on. */
export interface Proved {
  readonly hello: Hello;
  readonly version: number;
}

export interface HandshakeStep {
  /** To be sent. */
  readonly reply?: Uint8Array;
  /** The handshake is done. */
  readonly proved?: Proved;
}

const NO_MAC = new Uint8Array(0);
/** What a keyed hash is for goes into it: a proof of one side is none of the other. */
const PURPOSE: Readonly<Record<Side, string>> = {
  dialler: 'conclave link, dialling side',
  listener: 'conclave link, listening side',
};

export class Handshake {
  readonly #options: HandshakeOptions;
  #ownHello: { readonly hello: Hello; readonly bytes: Uint8Array } | undefined;
  #theirHello: { readonly hello: Hello; readonly bytes: Uint8Array } | undefined;
  #hasSentProof = false;
  /** The one that both sides have. */
  #key: Uint8Array | undefined;

  constructor(options: HandshakeOptions) {
    this.#options = options;
    this.#key = options.clusterKey;
  }

  /** From now on the other side may take the link for made. */
  get hasSentProof(): boolean {
    return this.#hasSentProof;
  }

  /** What the other side said of itself; unproved before the handshake is done. */
  get theirHello(): Hello | undefined {
    return this.#theirHello?.hello;
  }

  /** What the dialling side sends first; the listening side waits. */
  begin(): HandshakeStep {
    const { side } = this.#options;
    return side.kind === 'dialler' ? { reply: this.#sayHello(side.lane) } : {};
  }

  /** Takes the next frame of the other side. Throws HandshakeRefusal or WireDamage. */
  take(bytes: Uint8Array): HandshakeStep {
    const { side } = this.#options;
    const frame = decodeFrame(bytes);
    if (frame.kind === 'refused') throw new HandshakeRefusal(frame.code, frame.why, 'theirs');
    if (this.#theirHello === undefined) {
      if (frame.kind !== 'hello') throw unexpected(frame.kind, 'hello');
      return this.#onHello(frame, bytes);
    }
    if (side.kind === 'listener') {
      if (frame.kind !== 'proof') throw unexpected(frame.kind, 'proof');
      return this.#onProof(frame.mac, side);
    }
    if (frame.kind !== 'accepted') throw unexpected(frame.kind, 'accepted');
    return this.#onAccepted(frame);
  }

  #onHello(hello: Hello, bytes: Uint8Array): HandshakeStep {
    const { side } = this.#options;
    const refusal = this.#refusalOf(hello);
    if (refusal !== undefined) throw refusal;
    this.#theirHello = { hello, bytes: new Uint8Array(bytes) };
    if (side.kind === 'listener') return { reply: this.#sayHello(hello.lane) };
    this.#hasSentProof = true;
    return { reply: encodeFrame({ kind: 'proof', mac: this.#macOf('dialler') }) };
  }

  #onProof(mac: Uint8Array, { admit }: ListeningSide): HandshakeStep {
    this.#key =
      this.#options.acceptedKeys?.find((key) => isSameSecret(mac, this.#macOf('dialler', key))) ??
      this.#key;
    this.#requireProof(mac, 'dialler');
    const hello = this.#theirHello!.hello;
    const refusal = admit(hello);
    if (refusal !== undefined) throw refusal;
    const version = commonVersion(hello);
    const reply = encodeFrame({ kind: 'accepted', version, mac: this.#macOf('listener') });
    return { reply, proved: { hello, version } };
  }

  #onAccepted({ mac, version }: { readonly mac: Uint8Array; readonly version: number }) {
    this.#requireProof(mac, 'listener');
    const hello = this.#theirHello!.hello;
    if (version !== commonVersion(hello)) {
      const says = `${whoIs(hello)} chose protocol ${version}, not ${commonVersion(hello)}`;
      throw new HandshakeRefusal('refused', says);
    }
    return { proved: { hello, version } };
  }

  #refusalOf(hello: Hello): HandshakeRefusal | undefined {
    const { self, clusterId, federationId, uses, clusterKey, side } = this.#options;
    const hasKey = clusterKey !== undefined;
    const refusal = refusalOfHello(hello, { self, clusterId, federationId, uses, hasKey });
    if (refusal !== undefined || side.kind === 'listener') return refusal;
    if (side.expected !== undefined && hello.node !== side.expected) {
      const says = `${whoIs(hello)} is node ${hello.node}, and node ${side.expected} was looked for there`;
      return new HandshakeRefusal('refused', says);
    }
    if (hello.lane === side.lane) return undefined;
    return new HandshakeRefusal(
      'refused',
      `${whoIs(hello)} answers for another lane than was asked`,
    );
  }

  #requireProof(mac: Uint8Array, of: Side): void {
    if (isSameSecret(mac, this.#macOf(of))) return;
    const { self } = this.#options;
    const says = `${whoIs(this.#theirHello!.hello)} does not have the cluster_key of ${self.name}`;
    throw new HandshakeRefusal('refused', says);
  }

  #sayHello(lane: Lane): Uint8Array {
    const { self, life, clusterId, federationId, uses, clusterKey, nonce } = this.#options;
    const hello: Hello = {
      kind: 'hello',
      oldestVersion: OLDEST_PROTOCOL,
      newestVersion: NEWEST_PROTOCOL,
      clusterId,
      datacenter: self.datacenter,
      node: self.node,
      id: self.id,
      name: self.name,
      programVersion: self.version,
      life,
      lane,
      hasKey: clusterKey !== undefined,
      nonce,
      federationId,
      reads: self.reads,
      uses,
    };
    const bytes = encodeFrame(hello);
    this.#ownHello = { hello, bytes };
    return bytes;
  }

  #macOf(of: Side, key = this.#key): Uint8Array {
    const { side } = this.#options;
    if (key === undefined) return NO_MAC;
    const own = this.#ownHello;
    const theirs = this.#theirHello;
    assert(own !== undefined && theirs !== undefined, 'both have said hello');
    const [first, second] = side.kind === 'dialler' ? [own, theirs] : [theirs, own];
    const parts = [
      new TextEncoder().encode(PURPOSE[of]),
      first.hello.nonce,
      second.hello.nonce,
      first.bytes,
      second.bytes,
    ];
    return hmacSha256(key, withLengths(parts));
  }
}

function commonVersion({ newestVersion }: Hello): number {
  return Math.min(newestVersion, NEWEST_PROTOCOL);
}

/** No two lists of parts give the same bytes. */
function withLengths(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      return [length, part];
    }),
  );
}

function unexpected(kind: string, awaited: string): HandshakeRefusal {
  return new HandshakeRefusal(
    'refused',
    `a frame ${kind} came in the handshake where a frame ${awaited} is due`,
  );
}
