// Reads and checks transcripts: a command line, optional input lines, `----`, and the expected output up
// to a blank line. Lines that start with # between the cases are comments.

import { readFileSync, writeFileSync } from 'node:fs';

/** One word of a command line: `key`, `key=value` or `key=(value,value)`. */
export interface Argument {
  readonly key: string;
  readonly values: readonly string[];
}

/** One case of a transcript. */
export interface Case {
  readonly line: number;
  readonly command: string;
  readonly args: readonly Argument[];
  readonly input: string;
  readonly expected: string;
}

/** A case and what its command printed. */
export interface Outcome {
  readonly testCase: Case;
  readonly actual: string;
}

const FAILED = 'failed:';

/** Reads all cases of a file. */
export function readCases(path: string): readonly Case[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  const cases: Case[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const head = (lines[at] ?? '').trim();
    if (head === '' || head.startsWith('#')) continue;
    const separatorAt = lines.indexOf('----', at);
    if (separatorAt === -1) throw new Error(`${path}:${at + 1}: a command without ----`);
    const blankAt = lines.findIndex((text, index) => index > separatorAt && text.trim() === '');
    const endAt = blankAt === -1 ? lines.length : blankAt;
    cases.push({
      line: at + 1,
      ...parseCommand(head),
      input: lines.slice(at + 1, separatorAt).join('\n'),
      expected: lines
        .slice(separatorAt + 1, endAt)
        .join('\n')
        .trimEnd(),
    });
    at = endAt;
  }
  return cases;
}

/**
 * Runs the cases in order; `run` keeps its own state from one to the next. A command that throws is the
 * last one, and its error is its output.
 */
export function runCases(path: string, run: (testCase: Case) => string): readonly Outcome[] {
  const outcomes: Outcome[] = [];
  for (const testCase of readCases(path)) {
    try {
      outcomes.push({ testCase, actual: run(testCase).trimEnd() });
    } catch (error) {
      outcomes.push({ testCase, actual: `${FAILED} ${String(error)}` });
      break;
    }
  }
  return outcomes;
}

/** The first case whose output differs, as text for a person; undefined when all agree. */
export function firstDifference(
  outcomes: readonly Outcome[],
  normalize: (text: string) => string = (text) => text,
): string | undefined {
  for (const { testCase, actual } of outcomes) {
    if (normalize(actual) === normalize(testCase.expected)) continue;
    const head = `line ${testCase.line}: ${testCase.command}`;
    return `${head}\n--- expected\n${testCase.expected}\n--- actual\n${actual}`;
  }
  return undefined;
}

/**
 * Writes what the commands printed over what a file expects. Read the difference before keeping it. A
 * file with a command that failed is left as it was.
 */
export function rewrite(path: string, outcomes: readonly Outcome[]): void {
  const failed = outcomes.find(({ actual }) => actual.startsWith(FAILED));
  if (failed !== undefined) throw new Error(`${path}:${failed.testCase.line}: ${failed.actual}`);
  const lines = readFileSync(path, 'utf8').split('\n');
  for (const { testCase, actual } of [...outcomes].reverse()) {
    const separatorAt = lines.indexOf('----', testCase.line - 1);
    const expectedLines = testCase.expected === '' ? 0 : testCase.expected.split('\n').length;
    lines.splice(separatorAt + 1, expectedLines, ...actual.split('\n'));
  }
  writeFileSync(path, lines.join('\n'));
}

function parseCommand(head: string): Pick<Case, 'command' | 'args'> {
  const words = head.match(/[^\s=]+=\([^)]*\)|\S+/g) ?? [];
  const [command = '', ...rest] = words;
  return { command, args: rest.map(parseArgument) };
}

function parseArgument(word: string): Argument {
  const [, key = word, list, single] = /^([^=]+)=(?:\(([^)]*)\)|(.*))$/.exec(word) ?? [];
  if (list !== undefined) {
    const values = list.split(',').map((value) => value.trim());
    return { key, values: values.filter((value) => value !== '') };
  }
  return { key, values: single === undefined ? [] : [single] };
}
