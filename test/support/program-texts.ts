// What the program can say, read from its sources: the lines that it logs, and every text in it.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** What was compiled lies one folder below the root of the project. */
export const ROOT = join(import.meta.dirname, '..', '..', '..');

/** A line of the log at warn or error. */
export interface LoudLine {
  /** From the root of the project. */
  readonly file: string;
  /** All that it may be. Undefined: it is put together while the program runs. */
  readonly says: readonly string[] | undefined;
}

/** Each place that may log at warn or error. */
export function loudLines(): readonly LoudLine[] {
  return programFiles().flatMap((source) =>
    nodesOf(source).flatMap((node) => {
      const words = ts.isCallExpression(node) ? loudWordsOf(node, source) : undefined;
      if (words === undefined) return [];
      return [{ file: source.fileName.slice(ROOT.length + 1), says: textsOf(words) }];
    }),
  );
}

/** Every text of the program; of one that is put together, what is fixed of it, with `…` for the rest. */
export function programTexts(): readonly string[] {
  return programFiles().flatMap((source) => nodesOf(source).flatMap((node) => fixedOf(node) ?? []));
}

function fixedOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.templateSpans.reduce(
      (text, { literal }) => `${text}…${literal.text}`,
      node.head.text,
    );
  const isSum = ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;
  if (!isSum) return undefined;
  const [left, right] = [fixedOf(node.left), fixedOf(node.right)];
  return left === undefined && right === undefined ? undefined : `${left ?? '…'}${right ?? '…'}`;
}

let read: readonly ts.SourceFile[] | undefined;

function programFiles(): readonly ts.SourceFile[] {
  read ??= ['src', 'cluster'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(ROOT, folder, path))
      .map((path) =>
        ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ESNext, true),
      ),
  );
  return read;
}

function nodesOf(node: ts.Node): readonly ts.Node[] {
  const found: ts.Node[] = [node];
  ts.forEachChild(node, (child) => {
    found.push(...nodesOf(child));
  });
  return found;
}

/** The second argument of `logger.warn(fields, words)` and its like; of what is no such call, nothing. */
function loudWordsOf(call: ts.CallExpression, source: ts.SourceFile): ts.Expression | undefined {
  const { expression: called } = call;
  const isChosen = ts.isElementAccessExpression(called);
  if (!isChosen && !ts.isPropertyAccessExpression(called)) return undefined;
  if (!/(?:^|[.#])logger$/.test(called.expression.getText(source))) return undefined;
  // One that is chosen when the line is written may be any.
  const isLoud = isChosen || ['warn', 'error'].includes(called.name.text);
  return isLoud ? call.arguments[1] : undefined;
}

/** What an expression may be: a text, or a constant of this file that is one of some texts. */
function textsOf(node: ts.Expression): readonly string[] | undefined {
  if (ts.isStringLiteralLike(node)) return [node.text];
  const value = ts.isElementAccessExpression(node) ? node.expression : node;
  const named = ts.isIdentifier(value) ? constantOf(value) : value;
  if (named === undefined) return undefined;
  if (ts.isConditionalExpression(named)) {
    const both = [textsOf(named.whenTrue), textsOf(named.whenFalse)];
    return both.every((texts) => texts !== undefined) ? both.flat() : undefined;
  }
  if (ts.isAsExpression(named) && ts.isObjectLiteralExpression(named.expression))
    return nodesOf(named.expression)
      .filter(ts.isStringLiteral)
      .map(({ text }) => text);
  return named === node ? undefined : textsOf(named);
}

/** The nearest one that was declared around it. */
function constantOf(name: ts.Identifier): ts.Expression | undefined {
  for (let around: ts.Node = name.parent; around !== undefined; around = around.parent) {
    if (!ts.isBlock(around) && !ts.isSourceFile(around)) continue;
    for (const statement of around.statements.filter(ts.isVariableStatement))
      for (const declared of statement.declarationList.declarations)
        if (ts.isIdentifier(declared.name) && declared.name.text === name.text)
          return declared.initializer;
  }
  return undefined;
}
