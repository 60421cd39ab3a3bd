// Whole groups against transcripts: the published suites where they are at hand, and this project's own
// scenarios for what those leave out. CONCLAVE_REWRITE=1 writes new expectations into the own ones.

import { basename, join } from 'node:path';
import t from 'tap';
import { runCommand } from './support/commands.ts';
import { firstDifference, type Outcome, rewrite, runCases } from './support/datadriven.ts';
import { Group, type NodeOptions } from './support/group.ts';
import { withoutLogLines } from './support/output.ts';
import { suiteFiles, textFiles } from './support/vectors.ts';

const OWN = join(process.cwd(), 'test', 'raft', 'scenarios');

function play(path: string, fixed: Partial<NodeOptions> = {}): readonly Outcome[] {
  const group = new Group(undefined, fixed);
  return runCases(path, (testCase) => runCommand(group, testCase));
}

const suite = suiteFiles('testdata');
if ('skip' in suite) {
  t.test('published transcripts', { skip: suite.skip }, () => undefined);
} else {
  t.test('published transcripts', (t) => {
    for (const path of suite) {
      const outcomes = play(path, { asksBeforeDisk: true });
      const name = basename(path, '.txt');
      t.equal(firstDifference(outcomes, withoutLogLines), undefined, `${name}: the same happens`);
      t.equal(firstDifference(outcomes), undefined, `${name}: and is told in the same words`);
    }
    t.end();
  });
}

t.test('own scenarios', (t) => {
  for (const path of textFiles(OWN)) {
    const outcomes = play(path);
    if (process.env.CONCLAVE_REWRITE === '1') rewrite(path, outcomes);
    else t.equal(firstDifference(outcomes), undefined, basename(path, '.txt'));
  }
  t.end();
});
