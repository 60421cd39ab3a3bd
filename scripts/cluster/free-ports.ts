// Ports that nobody uses at this moment, below those that systems give to outgoing connections and those of
// the tests: a server that was killed finds its port free when it comes back.

import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { HOST } from './cluster-plan.ts';
import { ClusterRefusal } from './cluster-refusal.ts';

const FIRST = 10_000;
const LAST = 11_999;
/** Ports looked at before giving up. */
const LOOKED_AT_MAX = 2_000;

/** So many, each different and none of `taken`. */
export async function freePorts(
  count: number,
  taken: readonly number[] = [],
): Promise<readonly number[]> {
  const found = new Set<number>();
  for (let looked = 0; found.size < count; looked += 1) {
    if (looked === LOOKED_AT_MAX)
      throw new ClusterRefusal(`no ${count} free ports were found between ${FIRST} and ${LAST}`);
    const port = randomInt(FIRST, LAST + 1);
    if (!taken.includes(port) && !found.has(port) && (await isFree(port))) found.add(port);
  }
  return [...found];
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ host: HOST, port }, () => server.close(() => resolve(true)));
  });
}
