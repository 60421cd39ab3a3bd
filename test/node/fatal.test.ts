// What the log says last when the process cannot go on.

import t from 'tap';
import { AssertionError } from '../../cluster/base/assert.ts';
import { fatalOf } from '../../src/node/fatal.ts';

t.test('fatal: the last line leads to the cause, and blames no disk that is whole', (t) => {
  const lines: string[] = [];
  const exits: boolean[] = [];
  const silent = (): void => undefined;
  const newProcess = () =>
    fatalOf({
      logger: {
        debug: silent,
        info: silent,
        warn: silent,
        error: (fields, text) => void lines.push(`${text} (${String(fields.cause)})`),
      },
      exitAfterFatal: (isOfStore) => void exits.push(isOfStore),
    });
  newProcess()(new AssertionError('committed entries are missing {"index":8}'));
  const onFatal = newProcess();
  onFatal(new Error('I/O error'));
  onFatal(new Error('the store failed before'));
  t.equal(lines.length, 2, 'what follows from it is no cause');
  t.match(lines[0], /^the process ends: committed entries are missing \{"index":8\} \(/);
  t.match(lines[1], /^a store failed; .* not known \(Error: I\/O error\)$/);
  t.same(exits, [false, true], 'what failed is a store, or the process itself');
  t.end();
});
