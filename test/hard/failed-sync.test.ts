// A disk whose syncs fail while its writes succeed: a file system in a file that has holes, on a disk that is full
// before the holes are filled. The kernel takes every write, and finds out at the sync. Only root may mount such a
// thing, in a namespace of its own.

import t from 'tap';
import { leadTwoLives, mayRun } from './two-lives.ts';

t.setTimeout(240_000);

/** What the file may take of its disk, and what the file system in it believes to have. */
const BEHIND_MIB = 16;
const BELIEVED_MIB = 96;
const NAMESPACE = ['--mount'];
const MAKE = (behind: string, disk: string): string => `
  mount -t tmpfs -o size=${BEHIND_MIB}m tmpfs "${behind}" &&
  truncate -s ${BELIEVED_MIB}m "${behind}/image" &&
  mkfs.ext4 -q -F -E nodiscard "${behind}/image" &&
  mount -o loop,errors=continue "${behind}/image" "${disk}"
`;
/** In a /tmp of its own, gone with the namespace. */
const TRIAL = `
  mount -t tmpfs tmpfs /tmp && mkdir /tmp/behind /tmp/disk && ${MAKE('/tmp/behind', '/tmp/disk')}
`;
/** The operator gives the file room, and has the file system looked through. */
const SCRIPT = `
  mkdir "$DISK/behind" "$DISK/disk"
  ROOT="$DISK"
  ( ${MAKE('$DISK/behind', '$DISK/disk')} ) || exit 9
  DISK="$ROOT/disk"
  live
  umount "$ROOT/disk" || exit 8
  mount -o remount,size=${2 * BELIEVED_MIB}m "$ROOT/behind" || exit 7
  e2fsck -fy "$ROOT/behind/image" || [ $? -lt 4 ] || exit 6
  mount -o loop "$ROOT/behind/image" "$ROOT/disk" || exit 5
  live
`;

t.test(
  'failed syncs: the server ends at the first one, and nothing that was answered is lost',
  // No user may make a disk fail: only root can mount one that does, and not everywhere.
  {
    skip: mayRun(NAMESPACE, TRIAL)
      ? false
      : 'needs root, and a loop device, to mount a file system in a file with holes',
  },
  async (t) => {
    const { answered, lost, output } = await leadTwoLives(t, {
      namespace: NAMESPACE,
      script: SCRIPT,
    });
    t.ok(answered.length > 5, `${answered.length} writes were answered`);
    t.match(output, 'a life ended with 1\n');
    t.match(output, 'a store failed; the process ends, because what is on disk is not known');
    t.match(output, 'Input/output error');
    t.same(lost, []);
  },
);
