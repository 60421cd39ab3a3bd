// Every line at warn or error that the program can log is in OPERATING, where whoever reads it at night finds what
// to do; and what OPERATING quotes, the program says.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { LEVEL_OF_EVENT } from '../../cluster/raft/events.ts';
import { loudLines, programTexts, ROOT } from '../support/program-texts.ts';

const OPERATING = readFileSync(join(ROOT, 'docs', 'OPERATING.md'), 'utf8');

/** Where lines are logged that are put together: what is fixed of each is in OPERATING, too. */
const PUT_TOGETHER: Readonly<Record<string, readonly string[]>> = {
  'src/node/fatal.ts': ['the process ends: ', 'a store failed; the process ends, because '],
  'cluster/member.ts': ['was removed from the cluster. ', 'the state of this server is not that'],
  'cluster/federation/feed/subscriber-record.ts': ['what this datacenter has is not what '],
  'cluster/federation/slots/slots.ts': ['of the global log are kept: it will need a snapshot'],
  // By what has happened, see below.
  'cluster/replica/turn/raft-events.ts': [],
};

t.test('log lines: each that is loud is explained', (t) => {
  const lines = loudLines();
  t.ok(lines.length > 60, `${lines.length} lines`);
  // The Raft core's are called by what has happened, and a table says how loud each is.
  const events = Object.entries(LEVEL_OF_EVENT)
    .filter(([, level]) => level === 'warn' || level === 'error')
    .map(([kind]) => kind);
  t.ok(events.length > 3, `${events.length} events`);
  const known = lines.flatMap(({ says }) => says ?? []);
  const missing = [...new Set([...known, ...events])].filter(
    (line) => !OPERATING.includes(`\`${line}\``),
  );
  t.same(missing, []);
  const unknown = lines.filter(({ says }) => says === undefined).map(({ file }) => file);
  t.same(new Set(unknown), new Set(Object.keys(PUT_TOGETHER)));
  for (const piece of Object.values(PUT_TOGETHER).flat()) t.ok(OPERATING.includes(piece), piece);
  t.end();
});

/** The rows of the tables below a heading of the second level. */
function rowsBelow(heading: string): readonly (readonly string[])[] {
  const [, section = ''] = OPERATING.split(`\n## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  return own
    .split('\n')
    .filter((line) => /^\| (?!-)/.test(line))
    .map((line) => line.slice(2).split(' | '));
}

/** What the system says, and what is put together within words. */
const NOT_SOUGHT: readonly string[] = [
  'listen EADDRINUSE',
  'ENOENT',
  'open',
  'the data folder has state-',
  'whether the change took effect is not known',
  'whether the restore',
];
/** What stands for something else: `…`, numbers, and names of files. */
const PLACES = /…|\b[NM]\b|\S*\/\S*|NNNNNN\.\w+|'/;

t.test('log lines: what OPERATING quotes of them, and of refusals, the program says', (t) => {
  const cells = [
    ...rowsBelow('Log lines').map(([, says = '']) => says),
    ...rowsBelow('Messages and what to do').map(([says = '']) => says),
  ];
  const quoted = cells.flatMap((cell) =>
    // In brackets it says where a text is met.
    [...cell.replaceAll(/ \([^`]*(?:`[^`]*`[^`)]*)*\)(?=,|;|$)/g, '').matchAll(/`([^`]+)`/g)].map(
      ([, text]) => text!,
    ),
  );
  t.ok(quoted.length > 180, `${quoted.length} texts`);
  const events = Object.keys(LEVEL_OF_EVENT);
  const said = [...programTexts(), ...events].join('\n');
  const isSaid = (text: string): boolean => text === '' || said.includes(text);
  const strange = quoted.flatMap((text) =>
    text
      .split(PLACES)
      .map((piece) => piece.trim().replace(/^[:,.] ?|[:,.]$/g, ''))
      // What is put together is put together at such places.
      .filter((piece) => !isSaid(piece) && !piece.split(/[:,;] |\. /).every(isSaid))
      .filter((piece) => !NOT_SOUGHT.includes(piece))
      .map((piece) => `${piece} <- ${text}`),
  );
  t.same(strange, []);
  t.end();
});
