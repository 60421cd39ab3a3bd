// The real outside world of a node: this machine's clock, randomness, disk and network.

import { join } from 'node:path';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import type { Platform, TlsTexts } from '../node/platform.ts';
import type { Settings } from '../node/settings.ts';
import { ensureFolder, keptNodeId, readTextFile, takeBootstrapReset } from './files.ts';
import { NodeHttpsClient } from './https-client.ts';
import { openJsonLog } from './json-log.ts';
import { openLevelKv } from './level-kv.ts';
import { systemClock } from './system-clock.ts';
import { systemRandom } from './system-random.ts';
import { systemSha256 } from './system-sha256.ts';

const STANDARD_ERROR = 2;

/** Makes the data folder when it is missing. Throws what the disk says, with the path. */
export function openSystemPlatform(settings: Settings): Platform {
  const dataFolder = settings.data_dir;
  ensureFolder(dataFolder);
  adoptSha256(systemSha256);
  return {
    clock: systemClock,
    random: systemRandom,
    logger: openJsonLog(settings.log_level, STANDARD_ERROR),
    https: new NodeHttpsClient(),
    nodeId: keptNodeId(dataFolder, systemRandom.uuid()),
    openKv: (name, onFatal) => openLevelKv({ folder: join(dataFolder, name), name, onFatal }),
    takeBootstrapReset: () => takeBootstrapReset(dataFolder),
    tls: tlsTextsOf(settings),
    exitAfterFatal: () => process.exit(1),
  };
}

function tlsTextsOf(settings: Settings): TlsTexts | undefined {
  if (settings['ports.https'] === -1) return undefined;
  const ca = settings['tls.ca_file'];
  return {
    key: readTextFile(settings['tls.key_file']),
    cert: readTextFile(settings['tls.cert_file']),
    ca: ca === '' ? undefined : readTextFile(ca),
  };
}
