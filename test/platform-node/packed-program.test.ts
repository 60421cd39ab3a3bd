// Compiled code that was kept runs in the place of the program's text, so it must be that text's, and whole.
// Each start is a process of its own: within one, the engine remembers what it has compiled.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';

t.setTimeout(300_000);

const PACKED = new URL('../../src/platform-node/process/packed-program.js', import.meta.url).href;
const OPTIONS = ['--max-semi-space-size=16'];

const folder = mkdtempSync(join(tmpdir(), 'conclave-packed-'));
const file = join(folder, 'program.cjs');
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

/** Runs these lines with the program in `program`; gives what it printed. */
function inProcess(lines: string, options: readonly string[]): string {
  const script = `import { PackedProgram, runPacked } from ${JSON.stringify(PACKED)};
const file = ${JSON.stringify(file)};
const program = new PackedProgram(file);
${lines}`;
  const all = [...options, '--input-type=module', '--eval', script];
  return execFileSync(process.execPath, all, { encoding: 'utf8' });
}

function write(says: string): void {
  writeFileSync(
    file,
    `function said() { return '${says} from ' + require('node:path').basename(__filename) + ' ' + __dirname; }
console.log(said());
`,
  );
}

function keep(options = OPTIONS): void {
  inProcess('program.run(); program.keepCode();', options);
}

/** What a start prints, behind whether it took the code. */
function start(options = OPTIONS): string {
  return inProcess('process.stdout.write(program.isCompiled + " "); program.run();', options);
}

function codeFile(): string {
  const [name = '', ...others] = readdirSync(folder).filter((each) => each.endsWith('.code'));
  t.same(others, [], 'one file of code, and nothing unfinished');
  return join(folder, name);
}

t.test('packed: the code of an earlier run is taken, and does the same', async (t) => {
  write('one');
  t.equal(start(), `false one from program.cjs ${folder}\n`);
  keep();
  t.equal(start(), `true one from program.cjs ${folder}\n`);
});

t.test('packed: code of another text of the same length is not taken', async (t) => {
  write('one');
  keep();
  write('two');
  t.equal(start(), `false two from program.cjs ${folder}\n`);
});

t.test('packed: code that is damaged or cut is not taken', async (t) => {
  write('one');
  keep();
  const path = codeFile();
  const whole = readFileSync(path);
  // In the digest, at the head of the code, where the function lies, and at the end.
  for (const at of [0, 32, 40, whole.length >> 1, whole.indexOf('one'), whole.length - 1]) {
    const spoilt = Buffer.from(whole);
    spoilt[at] = spoilt[at]! ^ 1;
    writeFileSync(path, spoilt);
    t.equal(start(), `false one from program.cjs ${folder}\n`, `byte ${at}`);
  }
  for (const length of [0, 16, 32, whole.length - 1]) {
    writeFileSync(path, whole.subarray(0, length));
    t.equal(start(), `false one from program.cjs ${folder}\n`, `${length} bytes`);
  }
});

t.test('packed: other options of the engine have code of their own', async (t) => {
  write('one');
  rmSync(codeFile());
  keep();
  // One that changes what is compiled: newer engines share code between others.
  const others = ['--no-opt'];
  t.equal(start(others), `false one from program.cjs ${folder}\n`);
  keep(others);
  t.equal(start(others), `true one from program.cjs ${folder}\n`);
  t.equal(start(), `true one from program.cjs ${folder}\n`);
});

t.test('packed: with source maps, a trace names the sources', async (t) => {
  const map = { version: 3, sources: ['real.ts'], names: [], mappings: 'AAAA' };
  const data = Buffer.from(JSON.stringify(map)).toString('base64');
  writeFileSync(
    file,
    `console.log(new Error('here').stack);\n//# sourceMappingURL=data:application/json;base64,${data}\n`,
  );
  // Whoever runs the tests may have set it for every process of theirs.
  const run = (isMapped: boolean): string =>
    `void program; process.setSourceMapsEnabled(${isMapped}); runPacked(file);`;
  t.match(inProcess(run(true), []), /real\.ts:1/);
  t.match(inProcess(run(false), []), /program\.cjs:1/);
});
