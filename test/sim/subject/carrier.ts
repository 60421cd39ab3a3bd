// Brings messages and snapshots from replica to replica over the network of the world, in the plainest
// way: one connection to each other node, dialled again when it ends. Stands in for the transport where
// the replica runs alone.

import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Conn, Net } from '../../../cluster/platform/net.ts';
import type { Message, SnapshotMessage } from '../../../cluster/raft/message.ts';
import type { NodeId } from '../../../cluster/raft/node-id.ts';
import type { SnapshotIntake } from '../../../cluster/replica/group-replica.ts';
import type { MachineSnapshot } from '../../../cluster/replica/replica.ts';
import { decodeFrame, encodeFrame } from '../../../cluster/wire/frame-codec.ts';
import { textOf } from '../world/key-text.ts';

/** First bytes of frames. */
const KIND = { hello: 1, messages: 2, begin: 3, chunk: 4, end: 5, done: 6, failed: 7 } as const;

const DIAL_TIMEOUT_MS = 1000;
const REDIAL_MS = 100;
const TRANSFER_TIMEOUT_MS = 8000;
/** Beyond it messages are lost. */
const LANE_MAX_BYTES = 1024 * 1024;

export const CARRIER_PORT = 8300;

export interface CarrierOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly self: NodeId;
  readonly host: string;
  readonly hostOf: (node: NodeId) => string | undefined;
  readonly onMessage: (message: Message) => void;
  readonly onLinkClosed: (node: NodeId) => void;
  readonly beginSnapshot: (message: SnapshotMessage) => Promise<SnapshotIntake>;
}

interface Transfer {
  /** The next step of the sender may begin. */
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class Carrier {
  readonly #options: CarrierOptions;
  readonly #connByNode = new Map<NodeId, Conn | 'dialling'>();
  readonly #transfers = new Map<NodeId, Transfer>();
  #isClosed = false;

  constructor(options: CarrierOptions) {
    this.#options = options;
  }

  async listen(): Promise<void> {
    const { net, host } = this.#options;
    await net.listen({ host, port: CARRIER_PORT }, (conn) => new Incoming(conn, this.#options));
  }

  send(to: NodeId, message: Message): void {
    const conn = this.#connTo(to);
    if (conn === undefined || conn.bufferedBytes() > LANE_MAX_BYTES) return;
    const frame = encodeFrame({ kind: 'messages', messages: [message] });
    conn.send(framed(KIND.messages, frame));
  }

  async sendSnapshot(
    to: NodeId,
    message: SnapshotMessage,
    snapshot: MachineSnapshot,
  ): Promise<void> {
    const frame = encodeFrame({ kind: 'messages', messages: [message] });
    await this.#step(to, framed(KIND.begin, frame));
    for await (const chunk of snapshot.chunks()) await this.#step(to, framed(KIND.chunk, chunk));
    await this.#step(to, framed(KIND.end, new Uint8Array(0)));
  }

  close(): void {
    this.#isClosed = true;
    for (const conn of this.#connByNode.values()) {
      if (conn !== 'dialling') conn.close('the node closes');
    }
  }

  /** One piece of a snapshot; resolves when the other side has taken it. */
  #step(to: NodeId, frame: Uint8Array): Promise<void> {
    const conn = this.#connTo(to);
    if (conn === undefined) return Promise.reject(new Error(`${to} is not linked`));
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.after(TRANSFER_TIMEOUT_MS, () => {
        this.#transfers.delete(to);
        reject(new Error('the snapshot does not get through'));
      });
      const over = (action: () => void): void => {
        timer.cancel();
        this.#transfers.delete(to);
        action();
      };
      this.#transfers.set(to, {
        resolve: () => over(resolve),
        reject: (error) => over(() => reject(error)),
      });
      conn.send(frame);
    });
  }

  #connTo(node: NodeId): Conn | undefined {
    const conn = this.#connByNode.get(node);
    if (conn === undefined) void this.#dial(node);
    return conn === 'dialling' ? undefined : conn;
  }

  async #dial(node: NodeId): Promise<void> {
    const { net, clock, self, hostOf } = this.#options;
    const host = hostOf(node);
    if (host === undefined || this.#isClosed) return;
    this.#connByNode.set(node, 'dialling');
    try {
      const conn = await net.dial({ host, port: CARRIER_PORT }, { timeoutMs: DIAL_TIMEOUT_MS });
      conn.handle({
        onFrame: (frame) => this.#onAnswer(node, frame),
        onClose: () => this.#onClosed(node, conn),
      });
      conn.send(framed(KIND.hello, Buffer.from(String(self))));
      this.#connByNode.set(node, conn);
    } catch {
      clock.after(REDIAL_MS, () => this.#connByNode.delete(node));
    }
  }

  #onAnswer(node: NodeId, frame: Uint8Array): void {
    const transfer = this.#transfers.get(node);
    if (frame[0] === KIND.done) transfer?.resolve();
    else transfer?.reject(new Error(textOf(frame.subarray(1))));
  }

  #onClosed(node: NodeId, conn: Conn): void {
    if (this.#connByNode.get(node) !== conn) return;
    this.#connByNode.delete(node);
    this.#transfers.get(node)?.reject(new Error('the connection ended'));
    if (!this.#isClosed) this.#options.onLinkClosed(node);
  }
}

/** The side that listens: what another node says. */
class Incoming {
  readonly #conn: Conn;
  readonly #options: CarrierOptions;
  #from = 0;
  #intake: SnapshotIntake | undefined;

  constructor(conn: Conn, options: CarrierOptions) {
    this.#conn = conn;
    this.#options = options;
    conn.handle({
      onFrame: (frame) => this.#onFrame(frame),
      onClose: () => {
        void this.#intake?.abandon();
        this.#intake = undefined;
        if (this.#from > 0) options.onLinkClosed(this.#from);
      },
    });
  }

  #onFrame(frame: Uint8Array): void {
    const body = frame.subarray(1);
    if (frame[0] === KIND.hello) {
      this.#from = Number(textOf(body));
      return;
    }
    if (frame[0] === KIND.messages) {
      const { onMessage, self } = this.#options;
      for (const message of messagesOf(body)) if (message.to === self) onMessage(message);
      return;
    }
    this.#take(frame[0]!, body).then(
      () => this.#conn.send(framed(KIND.done, new Uint8Array(0))),
      (error: unknown) => {
        void this.#intake?.abandon();
        this.#intake = undefined;
        this.#conn.send(framed(KIND.failed, Buffer.from(String(error))));
      },
    );
  }

  async #take(kind: number, body: Uint8Array): Promise<void> {
    if (kind === KIND.begin) {
      const [message] = messagesOf(body);
      await this.#intake?.abandon();
      this.#intake = undefined;
      if (message?.type !== 'snapshot') throw new Error('a snapshot begins with its message');
      this.#intake = await this.#options.beginSnapshot(message);
      return;
    }
    const intake = this.#intake;
    if (intake === undefined) throw new Error('no snapshot was begun');
    if (kind === KIND.chunk) {
      await intake.add(Uint8Array.from(body));
      return;
    }
    this.#intake = undefined;
    await intake.finish();
  }
}

/** What a frame of a carrier says to raft. */
export function messagesInFrame(frame: Uint8Array): readonly Message[] {
  const isOne = frame[0] === KIND.messages || frame[0] === KIND.begin;
  return isOne ? messagesOf(frame.subarray(1)) : [];
}

function messagesOf(body: Uint8Array): readonly Message[] {
  const frame = decodeFrame(body);
  return frame.kind === 'messages' ? frame.messages : [];
}

function framed(kind: number, body: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(kind), body]);
}
