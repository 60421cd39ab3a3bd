// `conclave audit check`: what it says of files that were named in another order than they were written.

import t from 'tap';
import { FIRST_LINK, linked } from '../../src/audit/audit-chain.ts';
import { run } from './harness.ts';

/** A file as a server writes it: what it is linked with, and one record; and the link of that. */
function fileBehind(previous: string): { readonly text: string; readonly link: string } {
  const begun = linked(previous, { v: 1, event: 'continued', previous });
  const record = linked(begun.link, { v: 1, event: 'answered' });
  return { text: `${begun.line}\n${record.line}\n`, link: record.link };
}

const older = fileBehind(FIRST_LINK);
const newer = fileBehind(older.link);
const torn = linked(older.link, { v: 1, event: 'begun', torn: true, previous: older.link });
const behindZeros = Buffer.concat([
  Buffer.from(older.text),
  Buffer.alloc(3 * 1024 * 1024),
  Buffer.from(`\n${torn.line}\n`),
]);
const begun = linked(older.link, { v: 1, event: 'begun', previous: older.link });
const bytes = {
  ended: Buffer.from(`${older.text}{"v":1,"ti`),
  begun: Buffer.from(`${begun.line}\n`),
  zeros: behindZeros,
  torn: Buffer.from(`${torn.line}\n`),
  'audit.log.1': Buffer.from(older.text),
  'audit.log': Buffer.from(newer.text),
  changed: Buffer.from(older.text.replace('answered', 'removed')),
};

t.test('audit check: the oldest first', async (t) => {
  const { status, out } = await run(['audit', 'check', 'audit.log.1', 'audit.log'], { bytes });
  t.equal(status, 0);
  t.match(out, /Records: +4/);
});

t.test('audit check: the order of a shell is no sign of a change', async (t) => {
  const { status, err } = await run(['audit', 'check', 'audit.log', 'audit.log.1'], { bytes });
  t.equal(status, 1);
  t.match(err, /audit\.log\.1, line 1: .*\nNext: name the files of one server in the order/);
});

t.test('audit check: zeros that a power cut has left are a piece of a record', async (t) => {
  const { status, out } = await run(['audit', 'check', 'zeros'], { bytes });
  t.equal(status, 0);
  t.match(out, /Records: +3\n.*\nTorn: +1\n/);
  const moved = await run(['audit', 'check', 'ended', 'begun'], { bytes });
  t.match(moved, { status: 0, out: /Torn: +1\n/ }, 'so is what is at the end of an earlier file');
  const { err } = await run(['audit', 'check', 'audit.log.1', 'torn'], { bytes });
  t.match(err, /torn, line 1: the piece of a record that stood before it is missing/);
});

t.test('audit check: a record that was changed has nothing to do with order', async (t) => {
  const { status, err } = await run(['audit', 'check', 'changed'], { bytes });
  t.equal(status, 1);
  t.match(err, /^Error: changed, line 2: it, or what stood before it, is not what was written\n$/);
});
