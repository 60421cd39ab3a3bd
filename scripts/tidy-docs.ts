// Whether the documents name files that are there. A path is named whole, or as a file name that some folder has;
// a test without `test/` before and its ending behind. Decisions and the changelog tell of their own time.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface DocFault {
  readonly file: string;
  readonly line: number;
  readonly says: string;
}

const FOLDERS: readonly string[] = ['cluster', 'docs', 'scripts', 'src', 'test'];
/** What a document sets as code and has the shape of a path or of a file of code. */
const NAMED = /`([\w.-]+(?:\/[\w.-]+)+\/?|[\w-]+\.(?:ts|mjs))`/g;

/** Each name of a file or folder in the documents that is in vain. */
export function docFaultsIn(root: string): readonly DocFault[] {
  const paths = new Set(FOLDERS.flatMap((folder) => [folder, ...pathsIn(root, folder)]));
  const docs = readdirSync(join(root, 'docs')).map((name) => `docs/${name}`);
  return ['README.md', ...docs]
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => {
      const lines = readFileSync(join(root, file), 'utf8').split('\n');
      return lines.flatMap((text, place) =>
        namesIn(text)
          .filter((name) => !isThere(name, paths))
          .map((name) => ({ file, line: place + 1, says: `there is no ${name}` })),
      );
    });
}

function pathsIn(root: string, folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? [path, ...pathsIn(root, path)] : [path];
  });
}

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(NAMED)].map(([, name = '']) => name.replace(/\/$/, ''));
}

function isThere(name: string, paths: ReadonlySet<string>): boolean {
  const isWhole = FOLDERS.some((folder) => name.startsWith(`${folder}/`));
  if (!isWhole && !/\.(?:ts|mjs)$/.test(name)) return true;
  const test = `test/${name}`;
  if ([name, `${name}.ts`, test, `${test}.test.ts`].some((path) => paths.has(path))) return true;
  return !isWhole && [...paths].some((path) => path.endsWith(`/${name}`));
}
