// What the file says that lets an operator bootstrap again.

import t from 'tap';
import { resetIndexOf } from '../../src/node/settings/reset-index.ts';

t.test('reset index: a number, nothing, or what no bootstrap has', (t) => {
  t.equal(
    resetIndexOf(() => '12'),
    12,
  );
  t.equal(
    resetIndexOf(() => undefined),
    undefined,
  );
  t.same(
    resetIndexOf(() => 'twelve'),
    Number.NaN,
  );
  t.end();
});

t.test(
  'reset index: a file of another user is named to whoever needs it, without its path',
  (t) => {
    const closed = Object.assign(new Error("EACCES: permission denied, open '/secret/place'"), {
      code: 'EACCES',
    });
    const take = (): never => {
      throw closed;
    };
    t.throws(() => resetIndexOf(take), {
      code: 'invalid',
      message: /^the leader cannot read and delete its file acl-bootstrap-reset \(EACCES\): give /,
      cause: closed,
    });
    t.end();
  },
);
