// Makes a clone ready to run: installs the pinned packages when they are missing or the lock file
// changed, compiles when a source changed, and packs the program. Does nothing (in a few milliseconds)
// otherwise.
// Plain JavaScript, because it runs before the compiler is there.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
  run(process.execPath, [join(root, 'dist/scripts/pack/main.js')], 'packing');
  writeFileSync(buildStamp, sourceDigest);
}
