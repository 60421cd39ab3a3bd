// Makes another datacenter of a local cluster the primary, by handing it over: nothing is lost.

import { setTimeout as pause } from 'node:timers/promises';
import { askNode } from './ask-node.ts';
import type { ClusterDescription } from './cluster-files.ts';
import { ClusterRefusal } from './cluster-refusal.ts';

/** A hand-over waits for everything that the new one lacks. */
const MOVE_MAX_MS = 60_000;
const ASK_MAX_MS = 30_000;
/** Those that are paused or cut off are not waited for. */
const LOOK_MAX_MS = 2_000;
const PAUSE_MS = 200;
const PATH = '/v1/operator/primary';

const NO_ANSWER = { status: 0, text: '' };

interface Known {
  readonly Datacenter: string;
  readonly Epoch: number;
}

/** Resolves when it is, also if it was before. Rejects with why it is not. */
export async function movePrimary(cluster: ClusterDescription, datacenter: string): Promise<void> {
  const { nodes, management_token: secret } = cluster;
  const own = nodes.filter((node) => node.datacenter === datacenter && node.pid !== null);
  const deadlineMs = performance.now() + MOVE_MAX_MS;
  let says = `no server of ${datacenter} runs`;
  for (let place = 0; performance.now() < deadlineMs; place += 1) {
    const node = own[place % Math.max(1, own.length)];
    if (node === undefined) break;
    try {
      if ((await latestPrimary(cluster)) === datacenter) return;
      const question = { http: node.http, path: PATH, secret, timeoutMs: ASK_MAX_MS };
      const moved = await askNode({ ...question, method: 'PUT', body: { Datacenter: datacenter } });
      if (moved.status === 200) return;
      says = `${node.name} answered ${moved.status} ${moved.text}`;
    } catch (error) {
      says = `${node.name} gave no answer (${(error as Error).message})`;
    }
    await pause(PAUSE_MS);
  }
  throw new ClusterRefusal(`${datacenter} did not become the primary: ${says}`);
}

/** Of the latest epoch that any server knows: one that just lost the primary may not know of it yet. */
async function latestPrimary(cluster: ClusterDescription): Promise<string | undefined> {
  const { nodes, management_token: secret } = cluster;
  const running = nodes.filter(({ pid }) => pid !== null);
  const known = await Promise.all(
    running.map(async ({ http }) => {
      const question = { http, path: PATH, secret, timeoutMs: LOOK_MAX_MS };
      const { status, text } = await askNode(question).catch(() => NO_ANSWER);
      return status === 200 ? (JSON.parse(text) as Known) : undefined;
    }),
  );
  const [latest] = known
    .filter((each) => each !== undefined)
    .sort((one, other) => other.Epoch - one.Epoch);
  return latest?.Datacenter;
}
