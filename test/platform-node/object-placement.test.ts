// A server tells the engine where to make objects, and whoever keeps compiled code takes that back. What the
// engine was told is part of its tag for such code.

import { cachedDataVersionTag } from 'node:v8';
import t from 'tap';
import { readSettings } from '../../src/node/settings/settings.ts';
import { placeObjectsAsUsual } from '../../src/platform-node/process/object-placement.ts';
import { openSystemPlatform } from '../../src/platform-node/system-platform.ts';

t.test(
  'a server places objects young, and the tag is as before when that is taken back',
  async (test) => {
    const asUsual = cachedDataVersionTag();
    const flags = { 'data-dir': test.testdir(), 'log-level': 'error' };
    openSystemPlatform(readSettings({ flags, files: [], environment: {} }));
    test.not(cachedDataVersionTag(), asUsual);
    placeObjectsAsUsual();
    test.equal(cachedDataVersionTag(), asUsual);
  },
);
