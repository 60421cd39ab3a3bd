// The compiled test files, in the order in which they run.

import { readdirSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';

/** Folders whose tests wait most of their time, for servers, sockets and processes. All others compute. */
const WAITING: ReadonlySet<string> = new Set(['system', 'hard', 'node', 'conformance', 'client']);

/** Those that wait come first and those that compute last, so that one of each can run beside the other. */
export function testFilesBelow(folder: string): readonly string[] {
  const waits = (path: string): boolean => WAITING.has(path.split(sep)[0] ?? '');
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.js'))
    .sort();
  return [...paths.filter(waits).reverse(), ...paths.filter((path) => !waits(path))].map((path) =>
    join(folder, path),
  );
}

/** What a person named: a file, or a folder with all that is below it. */
export function testFilesNamed(path: string): readonly string[] {
  return statSync(path).isDirectory() ? testFilesBelow(path) : [path];
}
