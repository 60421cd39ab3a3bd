// `conclave operator …`: what people do to the servers of a datacenter, and to the datacenters.

import type { Command } from 'commander';
import { addGroup } from '../../command-line.ts';
import type { Surroundings } from '../../surroundings.ts';
import { addAutopilotCommands } from './autopilot.ts';
import { addDatacenterCommands } from './datacenters.ts';
import { addDivergenceCommands } from './divergence.ts';
import { addPrimaryCommands } from './primary.ts';
import { addRaftCommands } from './raft.ts';

/** Adds `operator` and everything below it to the program. */
export function addOperatorCommands(program: Command, surroundings: Surroundings): void {
  const operator = addGroup(program, 'operator', 'look after the servers and the datacenters');
  addRaftCommands(operator, surroundings);
  addAutopilotCommands(operator, surroundings);
  addDatacenterCommands(operator, surroundings);
  addPrimaryCommands(operator, surroundings);
  addDivergenceCommands(operator, surroundings);
}
