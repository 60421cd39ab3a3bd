// The settings of a node that a test opens in its own process, on a folder that it has prepared.

import { readSettings, type Settings } from '../../src/node/settings/settings.ts';
import { MANAGEMENT } from './asking.ts';

export function settingsOn(dataFolder: string): Settings {
  return readSettings({
    flags: {
      'data-dir': dataFolder,
      'node-name': 'hard',
      'ports-http': '0',
      'ports-cluster': '-1',
      'log-level': 'error',
      'acl-tokens-initial-management': MANAGEMENT,
    },
    files: [],
    environment: {},
  });
}
