// What the supervisor is asked to do: one HTTP request an order, on the loopback address, with a secret that
// only the owner of the cluster's folder can read. The answer is JSON lines: what happens, then how it ended.

import type { ClusterDescription } from '../cluster-files.ts';
import type { LineFault } from '../lines.ts';
import type { Between } from '../local-cluster.ts';
import type { ProcessState } from '../server-process.ts';

export type Order =
  /** `isNew`: when whoever asked goes away before the end, nothing of the cluster is left, unless some of it ran. */
  | { readonly kind: 'up'; readonly isNew: boolean }
  | { readonly kind: 'state' }
  | { readonly kind: 'kill' | 'pause' | 'resume' | 'remove' | 'promote'; readonly name: string }
  | { readonly kind: 'restart'; readonly name: string; readonly isDiskReplaced: boolean }
  | { readonly kind: 'partition'; readonly between: Between }
  | { readonly kind: 'delay'; readonly between: Between; readonly delayMs: number }
  /** Without `between`: everywhere. */
  | { readonly kind: 'heal'; readonly between?: Between }
  | { readonly kind: 'add'; readonly datacenter: string }
  /** `isKept`: the data stays. */
  | { readonly kind: 'down'; readonly isKept: boolean };

export interface ClusterState {
  readonly cluster: ClusterDescription;
  readonly states: Readonly<Record<string, ProcessState>>;
  readonly faults: readonly LineFault[];
}

/** A line of an answer; the last one is `done` or `refused`. */
export type OrderNews =
  | { readonly kind: 'says'; readonly says: string }
  | { readonly kind: 'done'; readonly state: ClusterState }
  | { readonly kind: 'refused'; readonly why: string };

/** Whether any server runs. */
export function hasServers({ cluster }: ClusterState): boolean {
  return cluster.nodes.some(({ pid }) => pid !== null);
}
