// A disk that is full in the middle of a write: a small file system in memory, mounted in a namespace of its own, where
// the system lets a plain user do that. What was answered is there when room has been made, and the log says
// why the server ended.

import t from 'tap';
import { leadTwoLives, mayRun } from './two-lives.ts';

t.setTimeout(120_000);

const SIZE_MIB = 24;
/** Removed between both lives of the server, as an operator makes room. */
const FILLER_MIB = 10;
const NAMESPACE = ['--user', '--map-root-user', '--mount'];
const SCRIPT = `
  mount -t tmpfs -o size=${SIZE_MIB}m tmpfs "$DISK" || exit 9
  head -c ${FILLER_MIB * 1024 * 1024} /dev/zero > "$DISK/filler"
  live
  rm "$DISK/filler"
  live
`;

t.test(
  'full disk: the server ends and says why, and nothing that was answered is lost',
  // Without a small file system there is no disk to fill: that of the machine belongs to others.
  {
    skip: mayRun(NAMESPACE, 'mount -t tmpfs -o size=1m tmpfs /mnt')
      ? false
      : 'needs a small file system of its own, and unshare --user --mount may not mount one here',
  },
  async (t) => {
    const { answered, lost, output } = await leadTwoLives(t, {
      namespace: NAMESPACE,
      script: SCRIPT,
    });
    t.ok(answered.length > 10, `${answered.length} writes were answered`);
    t.match(output, 'a life ended with 1\n');
    t.match(output, 'a store failed; the process ends, because what is on disk is not known');
    t.match(output, 'No space left on device');
    t.same(lost, []);
  },
);
