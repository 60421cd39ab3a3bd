// Makes another datacenter of a local cluster the primary, by handing it over: nothing is lost.

import { askNode } from './ask-node.ts';
import type { ClusterDescription } from './cluster-files.ts';
import { ClusterRefusal } from './cluster-refusal.ts';

/** A hand-over waits for everything that the new one lacks. */
const MOVE_MAX_MS = 60_000;
const ASK_MAX_MS = 30_000;
const PAUSE_MS = 200;
const PATH = '/v1/operator/primary';

/** Resolves when it is, also if it was before. Rejects with why it is not. */
export async function movePrimary(cluster: ClusterDescription, datacenter: string): Promise<void> {
  const { nodes, management_token: secret } = cluster;
  const own = nodes.filter((node) => node.datacenter === datacenter && node.pid !== null);
  const deadlineMs = performance.now() + MOVE_MAX_MS;
  let says = `no server of ${datacenter} runs`;
  for (let place = 0; performance.now() < deadlineMs; place += 1) {
    const node = own[place % Math.max(1, own.length)];
    if (node === undefined) break;
    const question = { http: node.http, path: PATH, secret, timeoutMs: ASK_MAX_MS };
    try {
      const known = await askNode(question);
      const isThere = known.status === 200 && JSON.parse(known.text).Datacenter === datacenter;
      if (isThere) return;
      const moved = await askNode({ ...question, method: 'PUT', body: { Datacenter: datacenter } });
      if (moved.status === 200) return;
      says = `${node.name} answered ${moved.status} ${moved.text}`;
    } catch (error) {
      says = `${node.name} gave no answer (${(error as Error).message})`;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  throw new ClusterRefusal(`${datacenter} did not become the primary: ${says}`);
}
