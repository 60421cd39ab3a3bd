// The program: everything that it can do is a command.

import { join } from 'node:path';
import { agentCommand } from './cli/agent/agent.ts';
import { processSurroundings } from './cli/process-surroundings.ts';
import { runProgram } from './cli/program.ts';
import { readTextFile } from './platform-node/disk/files.ts';
import { exitWith } from './platform-node/process/exit-status.ts';

const description = readTextFile(join(import.meta.dirname, '..', '..', 'package.json'));
const { version } = JSON.parse(description) as { readonly version: string };

// Not awaited here: it is packed into a script, which cannot wait.
exitWith(runProgram(process.argv.slice(2), processSurroundings(version), agentCommand(version)));
