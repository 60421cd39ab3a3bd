// `conclave operator …`: what people do to the group of servers.

import type { Command } from 'commander';
import { addGroup } from '../command-line.ts';
import type { Surroundings } from '../surroundings.ts';
import { addAutopilotCommands } from './operator-autopilot.ts';
import { addRaftCommands } from './operator-raft.ts';

/** Adds `operator` and everything below it to the program. */
export function addOperatorCommands(program: Command, surroundings: Surroundings): void {
  const operator = addGroup(program, 'operator', 'look after the group of servers');
  addRaftCommands(operator, surroundings);
  addAutopilotCommands(operator, surroundings);
}
