// What a text of rules is refused with, as a value that a table can hold.

import { AclError } from '../../src/acl/error.ts';

/** The words of the AclError that `run` throws; anything else passes through. */
export function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof AclError) return error.message;
    throw error;
  }
  return 'no refusal';
}
