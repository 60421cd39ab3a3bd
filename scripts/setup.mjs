// Makes a clone ready to run: installs the pinned packages when they are missing or the lock file
// changed, compiles when a source changed, and packs the program. Does nothing (in a few milliseconds)
// otherwise.
// Plain JavaScript, because it runs before the compiler is there.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCE_FOLDERS = ['cluster', 'src', 'scripts', 'test'];

/** Runs a command in the project's root and ends this process with its status when it fails. */
function run(command, args, says) {
  process.stderr.write(`conclave: ${says}\n`);
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (result.status === 0) return;
  process.stderr.write(
    `conclave: \`${command} ${args.join(' ')}\` failed (${result.error?.message ?? `exit status ${result.status}`})\n`,
  );
  process.exit(result.status ?? 1);
}

function digestOf(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
}

/** Path, size and time of change of every source file, in a fixed order. */
function* sourceMarks(folder) {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true }).sort((a, b) =>
    a.name < b.name ? -1 : 1,
  )) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* sourceMarks(path);
    else {
      const { size, mtimeMs } = statSync(join(root, path));
      yield `${path} ${size} ${mtimeMs}`;
    }
  }
}

const NATIVE = ['classic-level', 'msgpackr-extract'];
/** Fastify's compilers of schemas; see src/http/create-http.ts. */
const NEVER_LOADED = ['@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler'];

/**
 * Puts the program and all that it imports into a handful of files: some fifteen hundred would cost it
 * more than half a second at each start. What a native package loads stays where it is.
 */
async function packProgram() {
  const { build } = await import('esbuild');
  const built = join(root, 'dist', 'src');
  await build({
    entryPoints: {
      main: join(built, 'main.js'),
      'table-reader': join(built, 'platform-node', 'table-reader.js'),
    },
    outdir: built,
    allowOverwrite: true,
    bundle: true,
    // What only a server needs is a file of its own, loaded while its tables are already being read.
    splitting: true,
    chunkNames: 'packed-[name]-[hash]',
    external: [...NATIVE, ...NEVER_LOADED],
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    logLevel: 'warning',
    // Packages of the older form ask for these.
    banner: {
      js: [
        "import { createRequire as requireFrom } from 'node:module';",
        'const require = requireFrom(import.meta.url);',
        'const { dirname: __dirname, filename: __filename } = import.meta;',
      ].join('\n'),
    },
  });
  // The compiler writes plain files; this one is started by its name.
  chmodSync(join(built, 'main.js'), 0o755);
}

function upToDate(stampPath, digest) {
  return existsSync(stampPath) && readFileSync(stampPath, 'utf8') === digest;
}

const lockDigest = digestOf([readFileSync(join(root, 'package-lock.json'))]);
const installStamp = join(root, 'node_modules', '.conclave-installed');
if (!upToDate(installStamp, lockDigest)) {
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], 'installing packages (once)');
  writeFileSync(installStamp, lockDigest);
}

const sourceDigest = digestOf([
  lockDigest,
  readFileSync(join(root, 'tsconfig.json')),
  ...SOURCE_FOLDERS.filter((folder) => existsSync(join(root, folder))).flatMap((folder) => [
    ...sourceMarks(folder),
  ]),
]);
const buildStamp = join(root, 'dist', '.built');
if (!upToDate(buildStamp, sourceDigest)) {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  run(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json'],
    'compiling',
  );
  await packProgram();
  writeFileSync(buildStamp, sourceDigest);
}
