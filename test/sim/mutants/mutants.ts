// The planted bugs. Each is put in from outside, by changing a method of the product for the length of
// a run, and each breaks one promise of the code; docs/TESTING.md holds how many seeds it takes to find
// them. One that is not found any more says that the simulator has grown blind, not that the code is well.

import { CLIENT_MUTANTS } from './client-mutants.ts';
import { DISK_MUTANTS } from './disk-mutants.ts';
import { FEDERATION_MUTANTS } from './federation-mutants.ts';
import { LOCAL_MUTANTS } from './local-mutants.ts';
import type { Mutant } from './mutant.ts';
import { NODE_MUTANTS } from './node-mutants.ts';
import { RAFT_MUTANTS } from './raft-mutants.ts';

export const MUTANTS: readonly Mutant[] = [
  ...RAFT_MUTANTS,
  ...DISK_MUTANTS,
  ...CLIENT_MUTANTS,
  ...NODE_MUTANTS,
  ...FEDERATION_MUTANTS,
  ...LOCAL_MUTANTS,
];

export function mutantNamed(name: string): Mutant {
  const mutant = MUTANTS.find((each) => each.name === name);
  if (mutant === undefined) {
    const names = MUTANTS.map((each) => each.name).join(', ');
    throw new Error(`there is no mutant ${name}; there are ${names}`);
  }
  return mutant;
}
