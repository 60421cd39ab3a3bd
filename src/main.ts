#!/usr/bin/env node
// The program as it is compiled. Where it is packed, `packed-main.ts` stands in the place of this.

import './program.ts';
