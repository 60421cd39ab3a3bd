// One node of a simulated group: its disks, its machine, and what runs on them while it lives.

import type { GroupReplica } from '../../../cluster/replica/group-replica.ts';
import type { Register } from './register-machine.ts';
import type { SimulatedKv, WriteQueue } from './simulated-disk.ts';

export interface GroupNode {
  readonly id: number;
  /** Of the log's disk. */
  readonly queue: WriteQueue;
  /** Of the machine's. */
  readonly stateQueue: WriteQueue;
  readonly disk: SimulatedKv;
  readonly register: Register;
  /** Undefined while it is down. */
  replica: GroupReplica<number> | undefined;
  /** Grows with every crash: what belongs to an earlier life does nothing any more. */
  life: number;
  pausedUntilMs: number;
  fatal: Error | undefined;
  readonly log: string[];
}

export function termOf(node: GroupNode): number {
  return node.replica?.status().term ?? 0;
}

/** What a node promises is worth nothing when it has died. */
export function alive<T>(node: GroupNode, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    work.then(resolve, reject);
    node.queue.onCrash(() => reject(new Error('the node died')));
  });
}
