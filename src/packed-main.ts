#!/usr/bin/env node
// Where the packed program begins (scripts/pack).

import { join } from 'node:path';
import { runPacked } from './platform-node/process/packed-program.ts';

runPacked(join(import.meta.dirname, 'program.cjs'));
