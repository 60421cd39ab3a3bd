// Whether the documents name files that are there, their links lead somewhere, and each rule has a number of its own.
// A path is named whole, or as a file name that some folder has; a test without `test/` before and its ending behind.
// What decisions and the changelog name is of their own time; their links are not.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface DocFault {
  readonly file: string;
  readonly line: number;
  readonly says: string;
}

/** Its rows name tests by the folders that these are in; elsewhere that may be a path of the interface. */
const RULES = 'docs/INVARIANTS.md';
const RULE_NUMBER = /^\| (\d+) \|/;

const FOLDERS: readonly string[] = ['cluster', 'docs', 'scripts', 'src', 'test'];
/** What a document sets as code and has the shape of a path or of a file of code. */
const NAMED = /`([\w.-]+(?:\/[\w.-]+)+\/?|[\w-]+\.(?:ts|mjs))`/g;

/** Each name of a file or folder in the documents that is in vain, and each number that a second rule has. */
export function docFaultsIn(root: string): readonly DocFault[] {
  const paths = new Set(FOLDERS.flatMap((folder) => [folder, ...pathsIn(root, folder)]));
  const docs = readdirSync(join(root, 'docs')).map((name) => `docs/${name}`);
  const inVain = ['README.md', ...docs]
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) =>
      linesOf(root, file).flatMap((text, place) =>
        namesIn(text)
          .filter((name) => !isThere(name, paths, file === RULES))
          .map((name) => ({ file, line: place + 1, says: `there is no ${name}` })),
      ),
    );
  return [...inVain, ...deadLinksIn(root), ...repeatedNumbersIn(root)];
}

/** Behind the text of a link: a file or folder, and a heading of it. */
const LINKED = /\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)/g;

function deadLinksIn(root: string): readonly DocFault[] {
  const below = pathsIn(root, 'docs').filter((path) => path.endsWith('.md'));
  return ['README.md', 'CHANGELOG.md', ...below].flatMap((file) =>
    linesOf(root, file).flatMap((text, place) =>
      [...text.matchAll(LINKED)]
        .filter(([, path = '', heading]) => {
          const target = path === '' ? file : join(dirname(file), path);
          if (!existsSync(join(root, target))) return true;
          return heading !== undefined && !headingsIn(root, target).has(heading);
        })
        .map(([link]) => ({
          file,
          line: place + 1,
          says: `a link leads nowhere: ${link.slice(1)}`,
        })),
    ),
  );
}

/** As they stand behind `#` in a link. */
function headingsIn(root: string, file: string): ReadonlySet<string> {
  const titles = linesOf(root, file).flatMap((text) => /^#+ (.*)$/.exec(text)?.[1] ?? []);
  const ids = titles.map((title) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .trim(),
  );
  return new Set(ids.map((id) => id.replaceAll(' ', '-')));
}

function repeatedNumbersIn(root: string): readonly DocFault[] {
  const seen = new Set<string>();
  return linesOf(root, RULES).flatMap((text, place) => {
    const number = RULE_NUMBER.exec(text)?.[1];
    if (number === undefined) return [];
    const isSecond = seen.has(number);
    seen.add(number);
    if (!isSecond) return [];
    return [{ file: RULES, line: place + 1, says: `a second rule ${number}` }];
  });
}

function linesOf(root: string, file: string): readonly string[] {
  return readFileSync(join(root, file), 'utf8').split('\n');
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

function isThere(name: string, paths: ReadonlySet<string>, namesTests: boolean): boolean {
  const test = `test/${name}`;
  const [folder] = name.split('/');
  const isTest = namesTests && name.includes('/') && paths.has(`test/${folder}`);
  const isWhole = isTest || FOLDERS.some((folder) => name.startsWith(`${folder}/`));
  if (!isWhole && !/\.(?:ts|mjs)$/.test(name)) return true;
  if ([name, `${name}.ts`, test, `${test}.test.ts`].some((path) => paths.has(path))) return true;
  return !isWhole && [...paths].some((path) => path.endsWith(`/${name}`));
}
