// Carrying out what raft wants: messages leave, the log's worker writes, the machine's worker applies, and
// what the workers vouch for goes back to raft. Messages leave first: followers write while this node does.

import type { Message } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { RawNode, Ready } from '../../raft/raw-node.ts';
import type { ReadBarriers } from '../requests/read-barriers.ts';
import type { Snapshots } from '../snapshots/snapshots.ts';
import type { AppendWorker } from '../workers/append-worker.ts';
import type { ApplyWorker } from '../workers/apply-worker.ts';
import type { DiskWatch } from '../workers/disk-watch.ts';

export interface RaftWorkOptions {
  readonly node: RawNode;
  readonly self: NodeId;
  readonly appends: AppendWorker;
  readonly applies: Pick<ApplyWorker<unknown>, 'push' | 'start' | 'appliedIndex'>;
  readonly reads: ReadBarriers;
  readonly snapshots: Snapshots;
  readonly diskWatch: Pick<DiskWatch, 'isSilent'>;
  readonly send: (to: NodeId, message: Message) => void;
  /** This node's standing, term or commit index is another one. */
  readonly onStanding: () => void;
  /** Whether a read can be asked for now. */
  readonly knowsLeader: () => boolean;
}

export class RaftWork {
  readonly #options: RaftWorkOptions;

  constructor(options: RaftWorkOptions) {
    this.#options = options;
  }

  /** Until raft wants nothing more and no worker can begin anything. */
  carryOutAll(): void {
    const { node, applies, appends } = this.#options;
    for (;;) {
      this.#askReads();
      if (node.hasReady()) {
        this.#carryOut(node.ready());
        continue;
      }
      applies.start();
      const replies = appends.start();
      if (replies === undefined) return;
      this.deliver(replies);
    }
  }

  /** What a worker has to say, now that its work is on disk: to raft here, or to other nodes. */
  deliver(messages: readonly Message[]): void {
    const { node, self } = this.#options;
    for (const message of messages) {
      if (message.to === self) node.step(message);
      else this.#send(message);
    }
  }

  #askReads(): void {
    const { node, reads, knowsLeader } = this.#options;
    if (!knowsLeader()) return;
    for (;;) {
      const context = reads.takeRound();
      if (context === undefined) return;
      node.readIndex(context);
    }
  }

  #carryOut({ softState, hardState, readStates, messages }: Ready): void {
    const { reads, applies, appends, onStanding } = this.#options;
    if (softState !== undefined || hardState !== undefined) onStanding();
    for (const { context, index } of readStates) reads.confirm(context, index);
    reads.release(applies.appliedIndex);
    for (const message of messages) {
      if (message.type === 'storage-append') appends.push(message);
      else if (message.type === 'storage-apply') applies.push(message);
      else this.#send(message);
    }
  }

  #send(message: Message): void {
    const { diskWatch, snapshots, send } = this.#options;
    const isLeading =
      message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot';
    const isWithheld = diskWatch.isSilent && isLeading;
    if (message.type === 'snapshot') {
      if (isWithheld) snapshots.withhold(message);
      else snapshots.send(message);
    } else if (!isWithheld) {
      send(message.to, message);
    }
  }
}
