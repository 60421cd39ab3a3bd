// Every command that the program or a document tells somebody to type is there, with the flags that it is given; so is
// every setting and figure that a document names.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import t from 'tap';
import { agentCommand } from '../../src/cli/agent/agent.ts';
import { processSurroundings } from '../../src/cli/process-surroundings.ts';
import { assembled } from '../../src/cli/program.ts';
import { METRICS } from '../../src/http/figures/metric-descriptions.ts';
import { SETTING_KEYS } from '../../src/node/settings/settings-keys.ts';
import { programTexts, ROOT } from '../support/program-texts.ts';

const DOCS = [
  'README.md',
  'docs/OPERATING.md',
  'docs/HTTP.md',
  'docs/STATUS.md',
  'docs/TESTING.md',
];
/** In backquotes, or behind the prompt of a shell; what it is piped into is another one. */
const TYPED = /(?:`|^\$ (?:.*?; )?)(?:npx |node \S*\/)?(?:conclave|main\.js) ([^`|\n]*)/gm;

function textsBy(): readonly (readonly [from: string, text: string])[] {
  const deploy = readdirSync(join(ROOT, 'docs', 'deploy')).map((name) => `docs/deploy/${name}`);
  const files = [...DOCS, ...deploy].map(
    (file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const,
  );
  return [...files, ...programTexts().map((text) => ['the program', text] as const)];
}

/** What is wrong with the words behind `conclave`; undefined: nothing. */
function faultOf(program: Command, words: readonly string[]): string | undefined {
  let command = program;
  let place = 0;
  for (; place < words.length; place += 1) {
    const next = command.commands.find((each) => each.name() === words[place]);
    if (next === undefined) break;
    command = next;
  }
  const flags = words.slice(place).filter((word) => /^--?[a-z]/.test(word));
  const known = command.options.flatMap(({ long, short }) => [long, short]);
  const strange = flags
    .map((flag) => flag.replace(/=.*/, ''))
    .find((flag) => !known.includes(flag));
  if (strange !== undefined && strange !== '--help') return `${command.name()} has no ${strange}`;
  const isGroup = command.commands.length > 0;
  const [rest] = words.slice(place);
  return isGroup && rest !== undefined && rest !== '…' ? `no command ${rest}` : undefined;
}

t.test('commands: each that somebody is told to type is there, with its flags', (t) => {
  const program = assembled(processSurroundings('0.0.0'), agentCommand('0.0.0'));
  let count = 0;
  for (const [from, text] of textsBy())
    for (const [whole, typed = ''] of text.matchAll(TYPED)) {
      const words = typed.trim().split(/\s+/);
      count += 1;
      const fault = faultOf(program, words);
      if (fault !== undefined) t.fail(`${from}: ${whole}: ${fault}`);
    }
  t.ok(count > 100, `${count} commands`);
  t.end();
});

/** Names of settings and figures, these without `conclave.`, in backquotes; `*` stands for the rest of a name. */
const NAMED = /`(?:conclave\.)?([a-z]\w*(?:\.[\w*]+)+)`/g;

t.test('settings and figures: what OPERATING names is there', (t) => {
  const settings = SETTING_KEYS.map(({ name }) => name);
  const figures = Object.keys(METRICS).map((name) => name.replace('conclave.', ''));
  const all = [...settings, ...figures];
  const groups = new Set(
    all.filter((name) => name.includes('.')).map((name) => name.split('.')[0]),
  );
  const page = readFileSync(join(ROOT, 'docs', 'OPERATING.md'), 'utf8').replaceAll('audit.log', '');
  const named = [...page.matchAll(NAMED)]
    .map(([, name = '']) => name)
    .filter((name) => groups.has(name.split('.')[0]));
  t.ok(named.length > 200, `${named.length} names`);
  const isThere = (name: string): boolean => {
    const pattern = new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}(?:\\.|$)`);
    return all.some((each) => pattern.test(each));
  };
  t.same(
    named.filter((name) => !isThere(name)),
    [],
  );
  t.end();
});
