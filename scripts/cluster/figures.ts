// What the servers of a local cluster say about themselves, asked of all at the same time.

import { askNode } from './ask-node.ts';
import type { ClusterDescription, NodeDescription } from './cluster-files.ts';

/** Undefined where it is not known. */
export interface Figures {
  readonly role: string | undefined;
  readonly term: number | undefined;
  readonly commitIndex: number | undefined;
  readonly appliedIndex: number | undefined;
  /** The index that clients see. */
  readonly index: number | undefined;
  /** `epoch.seq` */
  readonly position: string | undefined;
  readonly digestAll: string | undefined;
  readonly digestGlobal: string | undefined;
  /** `ready`, or why not. */
  readonly health: string;
}

const ASK_MAX_MS = 2_000;

export async function figuresOfAll(
  cluster: ClusterDescription,
): Promise<ReadonlyMap<string, Figures>> {
  const pairs = cluster.nodes.map(
    async (node) => [node.name, await figuresOf(cluster, node)] as const,
  );
  return new Map(await Promise.all(pairs));
}

/** Never rejects. */
export async function figuresOf(
  { management_token: secret }: Pick<ClusterDescription, 'management_token'>,
  { http, pid }: NodeDescription,
): Promise<Figures> {
  if (pid === null) return nothingKnown('does not run');
  try {
    const [ready, self] = await Promise.all([
      askNode({ http, path: '/readyz', timeoutMs: ASK_MAX_MS }),
      askNode({ http, path: '/v1/agent/self?stale', secret, timeoutMs: ASK_MAX_MS }),
    ]);
    const health = ready.status === 200 ? 'ready' : ready.text.trim().replaceAll('\n', '; ');
    return self.status === 200 ? figuresIn(self.text, health) : nothingKnown(health);
  } catch (error) {
    return nothingKnown(reasonOf(error));
  }
}

interface Self {
  readonly Stats: {
    readonly raft: Readonly<Record<string, string>>;
    readonly state: Readonly<Record<string, string>>;
  };
}

function figuresIn(text: string, health: string): Figures {
  const { raft, state } = (JSON.parse(text) as Self).Stats;
  return {
    role: raft.state?.toLowerCase(),
    term: Number(raft.term),
    commitIndex: Number(raft.commit_index),
    appliedIndex: Number(raft.applied_index),
    index: Number(state.index),
    position: state.position,
    digestAll: state.digest_all,
    digestGlobal: state.digest_global,
    health,
  };
}

function nothingKnown(health: string): Figures {
  return {
    ...{ role: undefined, term: undefined, commitIndex: undefined, appliedIndex: undefined },
    ...{ index: undefined, position: undefined, digestAll: undefined, digestGlobal: undefined },
    health,
  };
}

function reasonOf(error: unknown): string {
  const { name, code } = error as NodeJS.ErrnoException;
  if (name === 'TimeoutError' || name === 'AbortError')
    return `no answer in ${ASK_MAX_MS / 1000} s`;
  return code === 'ECONNREFUSED' ? 'does not listen' : `no answer (${code ?? name})`;
}

/** The seq of the position: entries of the global log that it has. */
export function seqOf(figures: Figures | undefined): number | undefined {
  const seq = figures?.position?.split('.')[1];
  return seq === undefined ? undefined : Number(seq);
}

/** Entries of the global log that somebody has and this one has not. */
export function behindOf(headSeq: number, figures: Figures | undefined): number | undefined {
  const seq = seqOf(figures);
  return seq === undefined ? undefined : headSeq - seq;
}
