// How the process ends when it cannot go on, in words that lead to the cause.

import { AssertionError } from '../../cluster/base/assert.ts';
import { UnreadableEntry } from '../state/rows/layout/unreadable.ts';
import type { Platform } from './platform.ts';

export function fatalOf({
  logger,
  exitAfterFatal,
}: Pick<Platform, 'logger' | 'exitAfterFatal'>): (cause: Error) => void {
  let isOver = false;
  return (cause) => {
    // What follows from the first one is no cause.
    if (isOver) return;
    isOver = true;
    logger.error({ cause }, textOf(cause));
    exitAfterFatal(isOfStore(cause));
  };
}

/** Other causes are mostly the own log or state against what other servers say: no disk has failed. */
function isOfStore(cause: Error): boolean {
  return !(cause instanceof UnreadableEntry) && !(cause instanceof AssertionError);
}

function textOf(cause: Error): string {
  if (cause instanceof UnreadableEntry) return cause.message;
  if (!isOfStore(cause)) return `the process ends: ${cause.message}`;
  return 'a store failed; the process ends, because what is on disk is not known';
}
