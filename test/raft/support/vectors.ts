// Where the published Raft text suites are, if they are. They are not part of the project: tests that
// need them skip, and say so, when the folder is absent.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOTS = [process.env.CONCLAVE_VECTORS, join(process.cwd(), '..', 'shared', 'vectors')];

/** The files of one suite in alphabetical order, or a reason to skip it. */
export function suiteFiles(
  ...path: readonly string[]
): readonly string[] | { readonly skip: string } {
  for (const root of ROOTS) {
    const folder = root === undefined ? undefined : join(root, 'etcd-raft', ...path);
    if (folder !== undefined && existsSync(folder)) return textFiles(folder);
  }
  return { skip: 'no vectors here: set CONCLAVE_VECTORS to the folder that holds etcd-raft' };
}

/** The text files of a folder, in alphabetical order. */
export function textFiles(folder: string): readonly string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  return names.sort().map((name) => join(folder, name));
}
