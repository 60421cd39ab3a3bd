#!/usr/bin/env node
// The program: everything that it can do is a command.

import { join } from 'node:path';
import { agentCommand } from './cli/agent.ts';
import { processSurroundings } from './cli/process-surroundings.ts';
import { runProgram } from './cli/program.ts';
import { readTextFile } from './platform-node/files.ts';

const description = readTextFile(join(import.meta.dirname, '..', '..', 'package.json'));
const { version } = JSON.parse(description) as { readonly version: string };

process.exitCode = await runProgram(
  process.argv.slice(2),
  processSurroundings(version),
  agentCommand(version),
);
