// The environment of somebody who was looking for an error.

import type { Test } from 'tap';

/** Sets the variable by which Node checks no certificate, where nothing else says so, for as long as the test runs. */
export function trustWhoever(test: Test): void {
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  test.teardown(() => {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  });
}
