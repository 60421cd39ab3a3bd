// Ports for servers that must be found again under the number that they had. They are below those that
// systems give away by themselves, so that no connection and no other test sits on one while its server
// is away; each process has a block of its own.

import { createServer } from 'node:net';

/** First of all blocks, and how many ports they have together: up to where the usual range begins. */
const FIRST = 12_000;
const COUNT = 20_000;
const BLOCK = 40;

const blockOfProcess = FIRST + ((process.pid * BLOCK) % COUNT);
let given = 0;

/** Ports that nobody uses. Throws when a process asks for more than a block has. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    if (given === BLOCK) throw new Error(`more than ${BLOCK} ports in one process`);
    const port = blockOfProcess + given;
    given += 1;
    if (await isFree(port)) ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port }, () => server.close(() => resolve(true)));
  });
}
