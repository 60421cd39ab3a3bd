// The packed program, with what V8 compiled of it at an earlier run: to compile it anew is a third of an empty
// start. That code is what runs, whatever the program's text says, and V8 looks at little more than the length
// of the text. So it is taken only where a digest says that it is whole and belongs to this very text.

import type { Script as CompiledScript } from 'node:vm';

// An import of theirs would make views of all that they hold, which costs a start some milliseconds.
const { createHash } = process.getBuiltinModule('node:crypto');
const { readFileSync, renameSync, writeFileSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { dirname } = process.getBuiltinModule('node:path');
const { cachedDataVersionTag } = process.getBuiltinModule('node:v8');
const { Script } = process.getBuiltinModule('node:vm');

/** Before the kept code: SHA-256 of the text of the program, then of the code. */
const DIGEST_BYTES = 32;

type Inner = (require: NodeJS.Require, fileName: string, folder: string) => void;

/** Runs the program in this file. */
export function runPacked(file: string): void {
  // Node's own loader compiles it anew, but knows from which sources it was made.
  if (process.sourceMapsEnabled) createRequire(file)(file);
  else new PackedProgram(file).run();
}

/** A program in one file of CommonJS that exports nothing, all of it ASCII. */
export class PackedProgram {
  readonly #file: string;
  readonly #text: Buffer;
  readonly #script: CompiledScript;

  /** Reads the program, and the code kept for this engine and its options where there is some. */
  constructor(file: string) {
    this.#file = file;
    this.#text = readFileSync(file);
    const cachedData = this.#keptCode();
    // One byte a character takes half of the memory.
    const text = this.#text.toString('latin1');
    this.#script = new Script(`(function (require, __filename, __dirname) {\n${text}\n})`, {
      filename: file,
      lineOffset: -1,
      ...(cachedData === undefined ? {} : { cachedData }),
    });
  }

  /** Whether its code was there. The engine itself refuses that of another release, or of other options. */
  get isCompiled(): boolean {
    return this.#script.cachedDataRejected === false;
  }

  run(): void {
    const inner = this.#script.runInThisContext() as Inner;
    inner(createRequire(this.#file), this.#file, dirname(this.#file));
  }

  /** Keeps the code of all functions that have run, for the next start with the same options. */
  keepCode(): void {
    const code = this.#script.createCachedData();
    const path = this.#codePath();
    const unfinished = `${path}.unfinished`;
    writeFileSync(unfinished, Buffer.concat([this.#digestOf(code), code]));
    renameSync(unfinished, path);
  }

  #keptCode(): Buffer | undefined {
    const kept = readIfThere(this.#codePath());
    if (kept === undefined) return undefined;
    const code = kept.subarray(DIGEST_BYTES);
    const isIntact = this.#digestOf(code).equals(kept.subarray(0, DIGEST_BYTES));
    return isIntact ? code : undefined;
  }

  /** Code serves one release of the engine, on one sort of processor, with the same options. */
  #codePath(): string {
    return `${this.#file}.${cachedDataVersionTag().toString(16)}.code`;
  }

  #digestOf(code: Uint8Array): Buffer {
    const ofText = createHash('sha256').update(this.#text).digest();
    return createHash('sha256').update(ofText).update(code).digest();
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    // Whatever keeps it from being read, the program can be compiled.
    return undefined;
  }
}
