// The replica's dealings with snapshots: those that it makes and sends, those that it takes in, and what raft
// says to both.

import type { DurableLog } from '../../log/durable-log.ts';
import type { RaftEvent } from '../../raft/events.ts';
import type { HardState } from '../../raft/hard-state.ts';
import type { Snapshot } from '../../raft/log/snapshot.ts';
import type { SnapshotMessage } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { RawNode } from '../../raft/raw-node.ts';
import { GroupRefusal } from '../group-refusal.ts';
import type { RaftReplicaOptions, SnapshotIntake } from '../group-replica.ts';
import { SnapshotSender } from './snapshot-sender.ts';
import { resetOf, SnapshotTaker, type TakenSnapshot } from './snapshot-taker.ts';

export interface SnapshotsOptions
  extends Pick<
    RaftReplicaOptions<unknown>,
    'machine' | 'sendSnapshot' | 'clock' | 'logger' | 'log'
  > {
  readonly retryMs: number;
  /** The transfer to a node has ended, one way or the other. */
  readonly onSent: (node: NodeId, report: { readonly delivered: boolean }) => void;
  /** One came in whole: the loop is to ask raft. */
  readonly onTaken: (taken: TakenSnapshot) => void;
  /** Resolves when the machine applies nothing, and will not until `release`. */
  readonly hold: () => Promise<void>;
  readonly release: () => void;
  /** The log on disk begins anew. */
  readonly onReset: () => void;
  /** One is in the place of log and state. */
  readonly onInstalled: (index: number) => void;
}

export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #sender: SnapshotSender;
  readonly #taker: SnapshotTaker;
  readonly #log: DurableLog;
  /** Followers of whom was logged already that they need what cannot be made. */
  readonly #without = new Set<NodeId>();
  /** Raft's answer to the snapshot that is being stepped. */
  #isTaken = false;

  constructor(options: SnapshotsOptions) {
    const { machine, sendSnapshot: send, clock, logger, retryMs, onSent, onTaken, log } = options;
    this.#options = options;
    this.#log = log;
    this.#sender = new SnapshotSender({ machine, send, clock, logger, retryMs, onEnded: onSent });
    this.#taker = new SnapshotTaker({ machine, onTaken });
  }

  /** Of the machine as it is; undefined when none can be made. */
  make(): Snapshot | undefined {
    return this.#sender.make();
  }

  send(message: SnapshotMessage): void {
    this.#without.delete(message.to);
    this.#sender.send(message);
  }

  /** It does not leave; raft, which sends nothing else there until it hears of it, is told later. */
  withhold({ to }: SnapshotMessage): void {
    this.#sender.reportLater(to);
  }

  /** Another node sends one. */
  begin(message: SnapshotMessage): Promise<SnapshotIntake> {
    return this.#taker.begin(message);
  }

  observe(event: RaftEvent): void {
    if (event.kind === 'snapshot-not-ready') this.#onNone(event.node);
    else if (event.kind === 'snapshot-accepted') this.#isTaken = true;
  }

  /** Raft decides in this step, and its next Ready has the snapshot. */
  stepTaken(node: RawNode, { message, accepted, refused }: TakenSnapshot): void {
    this.#isTaken = false;
    node.step(message);
    if (this.#isTaken) accepted();
    else refused(new GroupRefusal('refused', 'the snapshot is not needed any more'));
  }

  /** The append worker's part. Nothing is applied between the switch of the log and that of the machine. */
  async install(snapshot: Snapshot, hardState: HardState): Promise<void> {
    const { hold, release, onReset, onInstalled } = this.#options;
    await this.#taker.install(snapshot, async (state) => {
      await hold();
      await this.#log.reset(resetOf(state, hardState));
      onReset();
    });
    release();
    onInstalled(snapshot.index);
  }

  /** Lets go of what raft asked for in this turn and did not send. */
  endTurn(): void {
    this.#sender.endTurn();
  }

  onLeadershipLost(): void {
    this.#without.clear();
  }

  stop(why: Error): void {
    this.#sender.stop();
    this.#taker.stop(why);
  }

  #onNone(node: NodeId): void {
    if (this.#without.has(node)) return;
    this.#without.add(node);
    const says = 'a follower lacks entries that the log no longer has, and no snapshot can be made';
    this.#options.logger.error({ node }, says);
  }
}
