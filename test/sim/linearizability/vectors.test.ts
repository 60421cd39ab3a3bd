// The published histories with their known verdicts. Promises that every file named in the verdicts
// is checked; skips with a message when the files are not on this machine.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { checkOperations } from './checker.ts';
import { keyValueModel } from './key-value-model.ts';
import { parseKeyValueLog, parseRegisterLog } from './porcupine-logs.ts';
import { registerModel } from './register-model.ts';

interface Verdicts {
  readonly jepsen: Readonly<Record<string, boolean>>;
  readonly kv: Readonly<Record<string, boolean>>;
}

const root = process.env.CONCLAVE_VECTORS ?? join(projectRoot(), '../shared/vectors');
const folder = join(root, 'porcupine');
const absent = !existsSync(join(folder, 'verdicts.json')) && `no histories in ${folder}`;

function projectRoot(): string {
  let at = import.meta.dirname;
  while (!existsSync(join(at, 'package.json')) && dirname(at) !== at) at = dirname(at);
  return at;
}

function verdicts(): Verdicts {
  return JSON.parse(readFileSync(join(folder, 'verdicts.json'), 'utf8')) as Verdicts;
}

function load(path: string): string {
  return readFileSync(join(folder, 'test_data', path), 'utf8');
}

function kindOf(legal: boolean): string {
  return legal ? 'legal' : 'illegal';
}

t.test('checker: gives the known verdict on every etcd register history', { skip: absent }, (t) => {
  const cases = Object.entries(verdicts().jepsen);
  t.equal(cases.length, 102);
  for (const [name, legal] of cases) {
    const operations = parseRegisterLog(load(`jepsen/${name}.log`));
    t.equal(checkOperations(registerModel, operations).kind, kindOf(legal), name);
  }
  t.end();
});

t.test('checker: gives the known verdict on every key-value history', { skip: absent }, (t) => {
  const cases = Object.entries(verdicts().kv);
  t.equal(cases.length, 6);
  for (const [name, legal] of cases) {
    const operations = parseKeyValueLog(load(`kv/${name}.txt`));
    t.equal(checkOperations(keyValueModel, operations).kind, kindOf(legal), name);
  }
  t.end();
});
