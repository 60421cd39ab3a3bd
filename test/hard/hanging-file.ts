// A file on a disk that hangs: a pipe that somebody has open and nobody reads.

import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';

/** Takes some 64 KiB, and then nothing more. */
export function hangingFile(t: Test, folder: string): string {
  const pipe = join(folder, 'hangs');
  execFileSync('mkfifo', [pipe]);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  t.teardown(() => closeSync(reader));
  return pipe;
}
