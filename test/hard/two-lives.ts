// A server on a small disk that fails under it, and its second life when the disk was repaired. A shell script
// makes the disk, in a mount namespace of its own.

import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { endWithProcess } from '../../scripts/exit-at-signals.ts';
import { ask, MANAGEMENT } from './asking.ts';
import { temporaryFolder } from './server-process.ts';

interface Owner {
  teardown(action: () => Promise<unknown> | undefined): void;
}

export interface TwoLives {
  /** Of `unshare`. */
  readonly namespace: readonly string[];
  /** Makes the disk in the folder `$DISK`, calls `live`, repairs the disk, and calls `live` again. */
  readonly script: string;
}

export interface LivesLed {
  /** Tokens whose creation was answered in the first life. */
  readonly answered: readonly string[];
  /** Those of them that the second life does not know. */
  readonly lost: readonly string[];
  /** Of both lives. */
  readonly output: string;
}

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.js');
const LIVE = `
live() {
  "$NODE" "$MAIN" agent --data-dir "$DISK/data" --node-name hard --ports-http 0 --ports-cluster -1
  echo "a life ended with $?"
}
`;
const PAUSE_MS = 20;

/** Whether this system lets this user do what the script asks for. */
export function mayRun(namespace: readonly string[], script: string): boolean {
  return spawnSync('unshare', [...namespace, 'sh', '-c', script]).status === 0;
}

/** Writes until the first life has ended, and reads everything that was answered in the second. */
export async function leadTwoLives(owner: Owner, lives: TwoLives): Promise<LivesLed> {
  const child = spawn('unshare', [...lives.namespace, 'sh', '-c', LIVE + lives.script], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that the server in it can be ended with it.
    detached: true,
    env: {
      PATH: process.env.PATH,
      NODE: process.execPath,
      MAIN,
      DISK: temporaryFolder(owner),
      CONCLAVE_ACL_TOKENS_INITIAL_MANAGEMENT: MANAGEMENT,
    },
  });
  endWithProcess(child, () => void process.kill(-child.pid!, 'SIGKILL'));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  owner.teardown(async () => {
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL');
    await ended;
  });
  let output = '';
  let onOutput: () => void = () => undefined;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (piece: string) => {
      output += piece;
      onOutput();
    });
  const said = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      onOutput = () => {
        const found = pattern.exec(output);
        if (found !== null) resolve(found[1] ?? '');
      };
      onOutput();
      void ended.then(() => reject(new Error(output)));
    });

  const port = Number(await said(/listening +http:\S+:(\d+)/));
  const answered: string[] = [];
  for (let serial = 0; !output.includes('a life ended'); serial += 1) {
    const Description = `${serial} ${'x'.repeat(100_000)}`;
    const asked = { method: 'PUT', path: '/v1/acl/token', body: { Description } };
    const answer = await ask(port, asked).catch(() => undefined);
    if (answer?.status === 200)
      answered.push((JSON.parse(answer.text) as { AccessorID: string }).AccessorID);
    else await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const again = Number(await said(/a life ended[\s\S]*listening +http:\S+:(\d+)/));
  const lost: string[] = [];
  for (const accessor of answered) {
    const { status } = await ask(again, { path: `/v1/acl/token/${accessor}` });
    if (status !== 200) lost.push(accessor);
  }
  return { answered, lost, output };
}
