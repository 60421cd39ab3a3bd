// Somebody who speaks frames without being a node, and what it says.

import type { Conn } from '../../../cluster/platform/net.ts';
import { type Frame, type Hello, NEWEST_PROTOCOL } from '../../../cluster/wire/frame.ts';
import { decodeFrame, encodeFrame } from '../../../cluster/wire/frame-codec.ts';
import { FRAMES } from '../wire-frames.ts';
import { addressOf, CLUSTER, type Rig, type RigNode } from './rig.ts';

export const SEED = Number(process.env.CONCLAVE_SEED ?? 7);

/** Somebody who speaks frames without being a node. */
export class Impostor {
  readonly frames: Frame[] = [];
  readonly bytes: Uint8Array[] = [];
  closedWhy: string | undefined;
  /** In which what comes is read. */
  protocol = NEWEST_PROTOCOL;
  readonly #conn: Conn;

  constructor(conn: Conn) {
    this.#conn = conn;
    conn.handle({
      onFrame: (frame) => {
        this.bytes.push(frame);
        this.frames.push(decodeFrame(frame, this.protocol));
      },
      onClose: (why) => {
        this.closedWhy = why;
      },
    });
  }

  static async dial(rig: Rig, to: RigNode, from = 'elsewhere'): Promise<Impostor> {
    const dialled = rig.net.host(from).dial(addressOf(to), { timeoutMs: 100 });
    await rig.run(5);
    return new Impostor(await dialled);
  }

  send(frame: Frame | Uint8Array): void {
    this.#conn.send(frame instanceof Uint8Array ? frame : encodeFrame(frame));
  }

  get refusedWhy(): string | undefined {
    const refused = this.frames.find((frame) => frame.kind === 'refused');
    return refused?.kind === 'refused' ? refused.why : undefined;
  }
}

export function aHello(given: Partial<Hello> = {}): Hello {
  return {
    ...(FRAMES.hello as Hello),
    node: 77,
    newestVersion: 1,
    reads: 1,
    uses: 1,
    clusterId: CLUSTER,
    lane: 'control',
    ...given,
  };
}
