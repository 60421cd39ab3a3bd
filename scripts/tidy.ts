// The source check: what breaks the house fails here, with file, line and the rule's name.
// It reads and never writes. Lengths are printed as places to look at, not as limits.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { docFaultsIn } from './tidy-docs.ts';
import { writesOldFunction } from './tidy-old-functions.ts';
import { patternFaultOf } from './tidy-patterns.ts';
import {
  BANNED_GLOBALS,
  BANNED_MODULES,
  BARREL_ALLOWED,
  CLUSTER_WORDS,
  COMMENT_LINE_MAX,
  DO_NOT_SAY,
  ENTRY_FILES,
  FOLDER_FILES_MAX,
  floorOf,
  isOutside,
  PURE_FOLDERS,
  REAL_WORLD_FOLDERS,
} from './tidy-rules.ts';

interface Finding {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
  readonly says: string;
}

interface Source {
  readonly path: string;
  readonly tree: ts.SourceFile;
  readonly text: string;
  readonly imports: readonly {
    readonly path: string;
    readonly module: string;
    readonly node: ts.Node;
  }[];
}

/** Among the names that are asked of a file: whatever it exports. */
const ANYTHING = '*';
const root = resolve(import.meta.dirname, '..', '..');
const findings: Finding[] = [];
const sources = new Map<string, Source>();
for (const folder of ['cluster', 'src', 'scripts', 'test']) readFolder(folder);
for (const source of sources.values()) checkSource(source);
checkFolders();
checkRings();
checkUnused();
checkExports();
checkRegistry();
for (const fault of docFaultsIn(root)) findings.push({ ...fault, rule: 'docs' });
report();

function readFolder(folder: string): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) readFolder(path);
    else if (path.endsWith('.ts')) sources.set(path, readSource(path));
  }
}

function readSource(path: string): Source {
  const text = readFileSync(join(root, path), 'utf8');
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  const imports: { path: string; module: string; node: ts.Node }[] = [];
  walk(tree, (node) => {
    const module = moduleNamed(node);
    if (module === undefined) return;
    const target = module.startsWith('.') ? relative(root, resolve(root, path, '..', module)) : '';
    imports.push({ path: target, module, node });
  });
  return { path, tree, text, imports };
}

function moduleNamed(node: ts.Node): string | undefined {
  if (
    (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) &&
    node.moduleSpecifier !== undefined
  )
    return (node.moduleSpecifier as ts.StringLiteral).text;
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
    return (node.argument.literal as ts.StringLiteral).text;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    if (argument !== undefined && ts.isStringLiteral(argument)) return argument.text;
  }
  return undefined;
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

function find(source: Source, node: ts.Node | number, rule: string, says: string): void {
  const position = typeof node === 'number' ? node : node.getStart(source.tree);
  const line = source.tree.getLineAndCharacterOfPosition(position).line + 1;
  findings.push({ file: source.path, line, rule, says });
}

function checkFolders(): void {
  const counts = new Map<string, number>();
  for (const path of sources.keys()) {
    const folder = dirname(path);
    if (!isOutside(path)) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  for (const [folder, count] of counts) {
    if (count <= FOLDER_FILES_MAX) continue;
    const says = `${count} files side by side, at most ${FOLDER_FILES_MAX}`;
    findings.push({ file: folder, line: 1, rule: 'folder', says });
  }
}

function checkSource(source: Source): void {
  checkFloors(source);
  checkBarrel(source);
  checkComments(source);
  if (source.path.startsWith('cluster/')) checkClusterWords(source);
  const isProduct = source.path.startsWith('src/') || source.path.startsWith('cluster/');
  if (isProduct && !REAL_WORLD_FOLDERS.some((folder) => source.path.startsWith(folder)))
    checkRealWorld(source);
  if (PURE_FOLDERS.some((folder) => source.path.startsWith(folder))) checkPure(source);
  if (isProduct) walk(source.tree, (node) => checkNode(source, node));
}

function checkFloors(source: Source): void {
  const own = floorOf(source.path);
  for (const { path, node } of source.imports) {
    if (path === '') continue;
    if (!sources.has(path)) find(source, node, 'import', `${path} does not exist`);
    const target = floorOf(path);
    if (source.path.startsWith('cluster/') && !path.startsWith('cluster/'))
      find(source, node, 'floors', `cluster imports ${path}`);
    else if (isOutside(path) && !isOutside(source.path))
      find(source, node, 'floors', `nothing in the product imports ${path}`);
    else if (target.floor > own.floor) find(source, node, 'floors', `imports upwards: ${path}`);
    else if (
      target.floor === own.floor &&
      target.room !== own.room &&
      !own.neighbours.includes(target.room)
    )
      find(source, node, 'floors', `${own.room} and ${target.room} share a floor`);
  }
}

/** A file opens with what it is. The formatter leaves comments as they are. */
function checkComments(source: Source): void {
  if (!/^(?:#!.*\n)?\/\/ /.test(source.text))
    find(source, 0, 'comment', 'the file does not open with what it is');
  for (const [index, line] of source.text.split('\n').entries()) {
    if (line.length <= COMMENT_LINE_MAX || !/^\s*(?:\/\/|\/?\*)/.test(line)) continue;
    const start = source.tree.getPositionOfLineAndCharacter(index, 0);
    find(source, start, 'comment', `${line.length} characters, at most ${COMMENT_LINE_MAX}`);
  }
}

function checkBarrel(source: Source): void {
  if (BARREL_ALLOWED.has(source.path)) return;
  for (const statement of source.tree.statements)
    if (ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined)
      find(source, statement, 'barrel', 're-exports another file');
}

function checkClusterWords(source: Source): void {
  for (const match of source.text.matchAll(CLUSTER_WORDS))
    find(source, match.index, 'cluster-words', `cluster does not know the word "${match[0]}"`);
}

function checkRealWorld(source: Source): void {
  for (const { module, node } of source.imports)
    if (BANNED_MODULES.has(module) && !isTypeOnly(node))
      find(source, node, 'real-world', `imports ${module} outside src/platform-node`);
  walk(source.tree, (node) => {
    const name = usedGlobal(node);
    if (name !== undefined && BANNED_GLOBALS.has(name))
      find(source, node, 'real-world', `uses ${name} outside src/platform-node`);
  });
}

function isTypeOnly(node: ts.Node): boolean {
  return (
    ts.isImportDeclaration(node) && node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
  );
}

/** `Date.now` for a property access on a global, `setTimeout` for a call, `new Date()` without arguments. */
function usedGlobal(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression))
    return `${node.expression.text}.${node.name.text}`;
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression))
    return `${node.expression.text}()`;
  if (
    ts.isNewExpression(node) &&
    ts.isIdentifier(node.expression) &&
    (node.arguments?.length ?? 0) === 0
  )
    return `new ${node.expression.text}()`;
  return undefined;
}

function checkPure(source: Source): void {
  for (const { module, node } of source.imports)
    if (module.startsWith('node:')) find(source, node, 'pure', `a pure folder imports ${module}`);
  walk(source.tree, (node) => {
    if (node.kind === ts.SyntaxKind.AsyncKeyword || ts.isAwaitExpression(node))
      find(source, node, 'pure', 'async in a pure folder');
    if (ts.isImportDeclaration(node) && /platform\/logger/.test(node.getText(source.tree)))
      find(source, node, 'pure', 'a logger in a pure folder');
  });
}

function checkNode(source: Source, node: ts.Node): void {
  if (ts.isSwitchStatement(node)) checkSwitch(source, node);
  const slow = patternFaultOf(node);
  if (slow !== undefined) find(source, slow.node, 'patterns', slow.says);
  if (writesOldFunction(node))
    find(
      source,
      node,
      'garbage',
      'a function that is written into a property: give it a name first',
    );
  const name = exportedName(node);
  if (name === undefined) return;
  for (const word of name.split(/(?=[A-Z])|_/))
    if (DO_NOT_SAY.has(word.toLowerCase()))
      find(
        source,
        node,
        'glossary',
        `exported name ${name} says "${word}"; say "${DO_NOT_SAY.get(word.toLowerCase())}"`,
      );
}

/** A switch must end in a `default` that calls `unreachable`, or refuses or returns on purpose. */
function checkSwitch(source: Source, node: ts.SwitchStatement): void {
  if (!node.caseBlock.clauses.some(ts.isDefaultClause))
    find(source, node, 'switch', 'no default: end it in unreachable(value)');
}

function exportedName(node: ts.Node): string | undefined {
  const exported =
    ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some((each) => each.kind === ts.SyntaxKind.ExportKeyword);
  if (exported !== true) return undefined;
  if (ts.isVariableStatement(node)) return node.declarationList.declarations[0]?.name.getText();
  return (node as ts.NamedDeclaration as { name?: ts.Identifier }).name?.text;
}

/** Depth-first search over all imports, type imports included. */
function checkRings(): void {
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): void => {
    if (done.has(path)) return;
    const at = trail.indexOf(path);
    const source = sources.get(path);
    if (source === undefined) return;
    if (at >= 0) {
      find(source, 0, 'ring', [...trail.slice(at), path].join(' -> '));
      return;
    }
    trail.push(path);
    for (const { path: target } of source.imports) visit(target);
    trail.pop();
    done.add(path);
  };
  for (const path of sources.keys()) visit(path);
}

function checkUnused(): void {
  const imported = new Set(
    [...sources.values()].flatMap((source) => source.imports.map(({ path }) => path)),
  );
  const productImported = new Set(
    [...sources.values()]
      .filter(({ path }) => !path.startsWith('test/'))
      .flatMap((source) => source.imports.map(({ path }) => path)),
  );
  for (const source of sources.values()) {
    if (ENTRY_FILES.some((pattern) => pattern.test(source.path))) continue;
    if (!imported.has(source.path)) find(source, 0, 'unused', 'nobody imports this file');
    else if (!source.path.startsWith('test/') && !productImported.has(source.path))
      find(source, 0, 'unused', 'only tests import this file');
  }
}

/** A value that no other file asks for by name stays with its file; a type may be part of what others get. */
function checkExports(): void {
  const asked = new Map<string, Set<string>>();
  for (const { imports } of sources.values())
    for (const { path, node } of imports)
      asked.set(path, new Set([...(asked.get(path) ?? []), ...namesAsked(node)]));
  for (const source of sources.values()) {
    const names = asked.get(source.path);
    const isEntry = ENTRY_FILES.some((pattern) => pattern.test(source.path));
    if (isEntry || isOutside(source.path) || names?.has(ANYTHING)) continue;
    for (const statement of source.tree.statements) {
      if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) continue;
      const name = exportedName(statement);
      if (name !== undefined && names?.has(name) !== true)
        find(source, statement, 'exports', `${name} is exported for nobody`);
    }
  }
}

function namesAsked(node: ts.Node): readonly string[] {
  const clause = ts.isImportDeclaration(node)
    ? node.importClause?.namedBindings
    : ts.isExportDeclaration(node)
      ? node.exportClause
      : undefined;
  if (clause === undefined || !(ts.isNamedImports(clause) || ts.isNamedExports(clause)))
    return [ANYTHING];
  return clause.elements.map(({ name, propertyName }) => (propertyName ?? name).text);
}

/** By file, by the constant that holds them, by number: the name that the number was given once. */
type Registry = Readonly<
  Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>
>;

/** Numbers on disk are for ever: each that was ever used must still stand for what it stood for. */
function checkRegistry(): void {
  const text = readFileSync(join(root, 'scripts/registry.json'), 'utf8');
  for (const [path, tables] of Object.entries(JSON.parse(text) as Registry)) {
    const source = sources.get(path);
    if (source === undefined) {
      findings.push({ file: path, line: 1, rule: 'registry', says: 'the registry file is gone' });
      continue;
    }
    for (const [constant, registered] of Object.entries(tables))
      checkNumbers(source, constant, registered);
  }
}

function checkNumbers(
  source: Source,
  constant: string,
  registered: Readonly<Record<string, string>>,
): void {
  const { node, numbers } = numbersIn(source, constant);
  for (const [number, name] of Object.entries(registered))
    if (numbers.get(name) !== number)
      find(source, node, 'registry', `${constant}: ${name} was ${number} and must stay so`);
  for (const [name, number] of numbers)
    if (registered[number] !== name)
      find(source, node, 'registry', `${constant}: enter ${name} = ${number} into the registry`);
}

/** What the object literal of a constant says, `name: number` for `name: number`. */
function numbersIn(
  source: Source,
  constant: string,
): { readonly node: ts.Node | number; readonly numbers: ReadonlyMap<string, string> } {
  const numbers = new Map<string, string>();
  let found: ts.Node | undefined;
  walk(source.tree, (node) => {
    if (!ts.isVariableDeclaration(node) || node.name.getText(source.tree) !== constant) return;
    found = node;
    walk(node, (inner) => {
      if (!ts.isPropertyAssignment(inner) || !ts.isNumericLiteral(inner.initializer)) return;
      const name = ts.isStringLiteral(inner.name)
        ? inner.name.text
        : inner.name.getText(source.tree);
      numbers.set(name, inner.initializer.text);
    });
  });
  return { node: found ?? 0, numbers };
}

function report(): void {
  for (const { file, line, rule, says } of findings)
    process.stdout.write(`${file}:${line}: ${rule}: ${says}\n`);
  const longest = [...sources.values()]
    .filter(({ path }) => path.startsWith('src/') || path.startsWith('cluster/'))
    .map(({ path, text }) => ({ path, lines: text.split('\n').length }))
    .sort((a, b) => b.lines - a.lines)
    .slice(0, 5);
  process.stdout.write(`tidy: ${sources.size} files, ${findings.length} findings; longest files: `);
  process.stdout.write(`${longest.map(({ path, lines }) => `${path} ${lines}`).join(', ')}\n`);
  process.stdout.write(`tidy: longest functions: ${longestFunctions().join(', ')}\n`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}

function longestFunctions(): string[] {
  const lengths: { says: string; lines: number }[] = [];
  for (const { path, tree } of sources.values()) {
    if (!path.startsWith('src/') && !path.startsWith('cluster/')) continue;
    walk(tree, (node) => {
      if (!ts.isFunctionDeclaration(node) && !ts.isMethodDeclaration(node)) return;
      const from = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line;
      const lines = tree.getLineAndCharacterOfPosition(node.end).line - from + 1;
      lengths.push({ says: `${path}:${from + 1} ${lines}`, lines });
    });
  }
  return lengths
    .sort((a, b) => b.lines - a.lines)
    .slice(0, 5)
    .map(({ says }) => says);
}
