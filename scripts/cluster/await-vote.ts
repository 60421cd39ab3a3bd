// A server on a new disk comes back as another member, without a vote until its leader has seen it healthy for
// a while. Until then the group can bear no other loss.

import { setTimeout as pause } from 'node:timers/promises';
import { askNode } from './ask-node.ts';
import type { ClusterDescription } from './cluster-files.ts';
import { ClusterRefusal } from './cluster-refusal.ts';

/** Each new leader looks anew for as long as `ServerStabilizationTime` says. */
const VOTE_MAX_MS = 120_000;
const ASK_MAX_MS = 5_000;
const PAUSE_MS = 200;

/** Resolves when it votes. Rejects with why it does not. */
export async function awaitVote(cluster: ClusterDescription, name: string): Promise<void> {
  const { nodes, management_token: secret } = cluster;
  const { http, cluster: address } = nodes.find((node) => node.name === name)!;
  const question = { http, path: '/v1/operator/raft/configuration', secret, timeoutMs: ASK_MAX_MS };
  const deadlineMs = performance.now() + VOTE_MAX_MS;
  for (;;) {
    let says = 'its group has not given it one yet';
    try {
      const { status, text } = await askNode(question);
      if (status === 200) {
        const { Servers } = JSON.parse(text) as { Servers: { Address: string; Voter: boolean }[] };
        if (Servers.some((server) => server.Address === address && server.Voter)) return;
      } else says = `it answered ${status} ${text}`;
    } catch (error) {
      says = `it gave no answer (${(error as Error).message})`;
    }
    if (performance.now() > deadlineMs)
      throw new ClusterRefusal(`${name} is ready, and has no vote: ${says}`);
    await pause(PAUSE_MS);
  }
}
