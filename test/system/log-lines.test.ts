// Every line at warn or error that the program can log is in OPERATING, where whoever reads it at night finds what
// to do.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { LEVEL_OF_EVENT } from '../../cluster/raft/events.ts';

const root = join(import.meta.dirname, '..', '..', '..');

function* sources(folder: string): Iterable<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (path.endsWith('.ts')) yield path;
  }
}

/** The words of calls such as `logger.warn(fields, 'words')`; of those that are put together, nothing. */
function* linesIn(path: string): Iterable<string> {
  const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ESNext, true);
  const found: string[] = [];
  const look = (node: ts.Node): void => {
    const called = ts.isCallExpression(node) ? node.expression : undefined;
    if (
      ts.isCallExpression(node) &&
      called !== undefined &&
      (ts.isPropertyAccessExpression(called) || ts.isElementAccessExpression(called))
    ) {
      const isLogger = /(?:^|[.#])logger$/.test(called.expression.getText(file));
      const words = node.arguments[1];
      // One that is chosen when the line is written may be any.
      const isLoud =
        ts.isElementAccessExpression(called) || ['warn', 'error'].includes(called.name.text);
      if (isLogger && isLoud && words !== undefined && ts.isStringLiteral(words)) {
        found.push(words.text);
      }
    }
    ts.forEachChild(node, look);
  };
  look(file);
  yield* found;
}

t.test('log lines: each that is loud is explained', (t) => {
  const operating = readFileSync(join(root, 'docs', 'OPERATING.md'), 'utf8');
  const lines = ['src', 'cluster'].flatMap((folder) =>
    [...sources(join(root, folder))].flatMap((path) => [...linesIn(path)]),
  );
  t.ok(lines.length > 40, `${lines.length} lines`);
  // The Raft core's are called by what has happened, and a table says how loud each is.
  const events = Object.entries(LEVEL_OF_EVENT)
    .filter(([, level]) => level === 'warn' || level === 'error')
    .map(([kind]) => kind);
  t.ok(events.length > 3, `${events.length} events`);
  const missing = [...new Set([...lines, ...events])].filter(
    (line) => !operating.includes(`\`${line}\``),
  );
  t.same(missing, []);
  t.end();
});
