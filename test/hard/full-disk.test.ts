// A disk that is full in the middle of a write: a small file system in memory, mounted in a namespace of its own, where
// the system lets a plain user do that. What was answered is there when room has been made, and the log says
// why the server ended.

import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { ask, MANAGEMENT } from './asking.ts';
import { temporaryFolder } from './server-process.ts';

t.setTimeout(120_000);

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.js');
const SIZE_MIB = 24;
/** Removed between both lives of the server, as an operator makes room. */
const FILLER_MIB = 10;
const NAMESPACE = ['--user', '--map-root-user', '--mount', 'sh', '-c'];
const mayMount =
  spawnSync('unshare', [...NAMESPACE, 'mount -t tmpfs -o size=1m tmpfs /mnt']).status === 0;

/** Mounts, runs a server until the disk is full, makes room, runs it again. */
const SCRIPT = `
  mount -t tmpfs -o size=${SIZE_MIB}m tmpfs "$DISK" || exit 9
  head -c ${FILLER_MIB * 1024 * 1024} /dev/zero > "$DISK/filler"
  run() { "$NODE" "$MAIN" agent --data-dir "$DISK/data" --node-name hard --ports-http 0 --ports-cluster -1; }
  run
  echo "first life ended with $?"
  rm "$DISK/filler"
  run
`;

t.test(
  'full disk: the server ends and says why, and nothing that was answered is lost',
  // Without a small file system there is no disk to fill: that of the machine belongs to others.
  {
    skip: mayMount
      ? false
      : 'needs a small file system of its own, and unshare --user --mount may not mount one here',
  },
  async (t) => {
    const child = spawn('unshare', [...NAMESPACE, SCRIPT], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that the server in it can be ended with it.
      detached: true,
      env: {
        PATH: process.env.PATH,
        NODE: process.execPath,
        MAIN,
        DISK: temporaryFolder(t),
        CONCLAVE_ACL_TOKENS_INITIAL_MANAGEMENT: MANAGEMENT,
      },
    });
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    t.teardown(async () => {
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
    for (let serial = 0; !output.includes('first life ended'); serial += 1) {
      const Description = `${serial} ${'x'.repeat(100_000)}`;
      const asked = { method: 'PUT', path: '/v1/acl/token', body: { Description } };
      const answer = await ask(port, asked).catch(() => undefined);
      if (answer?.status === 200)
        answered.push((JSON.parse(answer.text) as { AccessorID: string }).AccessorID);
      else await new Promise((resolve) => setTimeout(resolve, 20));
    }
    t.ok(answered.length > 10, `${answered.length} writes were answered`);
    t.match(output, /first life ended with 1\n/);
    t.match(output, 'a store failed; the process ends, because what is on disk is not known');
    t.match(output, 'No space left on device');
    const again = Number(await said(/first life ended[\s\S]*listening +http:\S+:(\d+)/));
    for (const accessor of answered) {
      const { status } = await ask(again, { path: `/v1/acl/token/${accessor}` });
      if (status !== 200) t.fail(`${accessor}: ${status}`);
    }
    t.pass('all of them are there');
  },
);
