// Turns a refusal into a value that a table can hold: `code: message`, or 'accepted'.

import { AclError } from '../../src/acl/error.ts';

/** What `work` refuses with. Anything but an AclError passes through: it is a fault, not a refusal. */
export function refusalOf(work: () => unknown): string {
  try {
    work();
    return 'accepted';
  } catch (error) {
    if (error instanceof AclError) return `${error.code}: ${error.message}`;
    throw error;
  }
}
