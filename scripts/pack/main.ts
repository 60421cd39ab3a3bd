// Puts the compiled program and all that it imports into a handful of files: some fifteen hundred would cost it
// more than half a second at each start. What a native package loads stays where it is. `scripts/setup.mjs`
// runs this once, behind the compiler.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { messageOf } from '../../cluster/base/message-of.ts';
import { startChild } from '../bench/child.ts';

const here = import.meta.dirname;
const built = join(dirname(dirname(here)), 'src');

const NATIVE = ['classic-level', 'msgpackr-extract'];
/** Fastify's compilers of schemas; see src/http/fastify-options.ts. */
const NEVER_LOADED = ['@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler'];

const COMMON: BuildOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  logLevel: 'warning',
};

/** As commands are run, as `npm start` runs a server, and as docs/deploy and docs/OPERATING.md do. */
const STARTED_WITH: readonly (readonly string[])[] = [
  [],
  ['--max-semi-space-size=16'],
  ['--max-semi-space-size=32'],
];

await packProgram();
await packEntries();
const kept = new Set<string>();
for (const options of STARTED_WITH) {
  const tag = codeTagWith(options);
  if (!kept.has(tag)) await keepCode(options);
  kept.add(tag);
}

/** One script, because the engine gives the code that it compiled of a script only. */
async function packProgram(): Promise<void> {
  await build({
    ...COMMON,
    entryPoints: { program: join(built, 'program.js') },
    outdir: built,
    outExtension: { '.js': '.cjs' },
    external: [...NATIVE, ...NEVER_LOADED],
    format: 'cjs',
    charset: 'ascii',
    // Its modules, of which one is needed; what it gives to Node is one script with all of them.
    alias: { 'hash-wasm': 'hash-wasm/dist/index.esm.js' },
    // What is imported late is in the script already, or of Node.
    supported: { 'dynamic-import': false },
    banner: { js: "const packedUrl = require('node:url').pathToFileURL(__filename).href;" },
    define: { 'import.meta.dirname': '__dirname', 'import.meta.url': 'packedUrl' },
  });
}

/** Whatever Node is started with: the program's first file, and the thread that reads tables. */
async function packEntries(): Promise<void> {
  await build({
    ...COMMON,
    entryPoints: {
      main: join(built, 'packed-main.js'),
      'table-reader': join(built, 'platform-node', 'disk', 'table-reader.js'),
    },
    outdir: built,
    allowOverwrite: true,
    format: 'esm',
  });
  // The compiler writes plain files; this one is started by its name.
  chmodSync(join(built, 'main.js'), 0o755);
}

/** Whoever starts with an equal one takes the same code. Newer engines leave out what changes no code. */
function codeTagWith(nodeOptions: readonly string[]): string {
  const says = 'process.stdout.write(String(require("node:v8").cachedDataVersionTag()))';
  return execFileSync(process.execPath, [...nodeOptions, '--eval', says], { encoding: 'utf8' });
}

/** Lets a server start and stop, and keeps what was compiled for it. */
async function keepCode(nodeOptions: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-pack-'));
  try {
    const server = await startChild({
      script: join(dirname(here), 'keep-code', 'main.js'),
      nodeOptions,
      arguments: [folder],
      portOf: (output) => Number(/listening\s+http:\/\/[^:]+:(\d+)/.exec(output)?.[1]) || undefined,
    });
    await server.stop();
  } catch (error) {
    const cause = messageOf(error);
    process.stderr.write(`conclave: no compiled code is kept, starts will be slower: ${cause}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
