// The real outside world of a node: this machine's clock, randomness, disk and network.

import { adoptRunningSha256 } from '../../cluster/platform/running-sha256.ts';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Platform, TlsTexts } from '../node/platform.ts';
import type { Settings } from '../node/settings.ts';
import { makeFolder } from './durable-files.ts';
import {
  databaseFolder,
  databaseGenerations,
  deleteFolder,
  keptNodeId,
  takeBootstrapReset,
} from './files.ts';
import { serveHttp } from './http-serving.ts';
import { NodeHttpsClient } from './https-client.ts';
import { openJsonLog } from './json-log.ts';
import { openLevelKv } from './level-kv.ts';
import { watchLoopDelay } from './loop-delay.ts';
import { placeObjectsYoung } from './object-placement.ts';
import { systemClock } from './system-clock.ts';
import { systemRandom } from './system-random.ts';
import { systemRunningSha256 } from './system-running-sha256.ts';
import { systemSha256 } from './system-sha256.ts';
import { TableChecks } from './table-checks.ts';
import { certificatesOutOfTime, type TlsFiles, tlsTextsIn } from './tls-files.ts';
import { type ClusterTls, openWsNet } from './ws-net.ts';

const STANDARD_ERROR = 2;

/**
 * Makes the data folder when it is missing. Throws what the disk says, with the path; SettingsError for a
 * certificate that cannot be used.
 */
export function openSystemPlatform(
  settings: Settings,
  tableChecks: TableChecks = new TableChecks(),
): Platform {
  const dataFolder = settings.data_dir;
  makeFolder(dataFolder);
  adoptSha256(systemSha256);
  adoptRunningSha256(systemRunningSha256);
  placeObjectsYoung();
  const logger = openJsonLog(settings.log_level, STANDARD_ERROR);
  return {
    clock: systemClock,
    random: systemRandom,
    logger,
    net: openWsNet({ tls: clusterTlsOf(settings, logger), clock: systemClock, logger }),
    serveHttp: (app, at) => serveHttp(app, at, systemClock),
    watchLoopDelay,
    https: new NodeHttpsClient(),
    nodeId: keptNodeId(dataFolder, systemRandom.uuid()),
    openKv: (name, generation, onFatal) => {
      const folder = databaseFolder(dataFolder, name, generation);
      return openLevelKv({ folder, name, onFatal, tableChecks });
    },
    dropKv: (name, generation) => deleteFolder(databaseFolder(dataFolder, name, generation)),
    kvGenerations: async (name) => databaseGenerations(dataFolder, name),
    takeBootstrapReset: () => takeBootstrapReset(dataFolder),
    tls: tlsTextsOf(settings, logger),
    exitAfterFatal: () => process.exit(1),
  };
}

function tlsTextsOf(settings: Settings, logger: Logger): TlsTexts | undefined {
  if (settings['ports.https'] === -1) return undefined;
  const files = {
    settings: 'tls.',
    key: settings['tls.key_file'],
    cert: settings['tls.cert_file'],
    ca: settings['tls.ca_file'],
  };
  return readTls(files, logger);
}

function clusterTlsOf(settings: Settings, logger: Logger): ClusterTls | undefined {
  const cert = settings['tls.cluster.cert_file'];
  if (cert === '' || settings['ports.cluster'] === -1) return undefined;
  const key = settings['tls.cluster.key_file'];
  const ca = settings['tls.cluster.ca_file'];
  return readTls({ settings: 'tls.cluster.', key, cert, ca }, logger);
}

function readTls(files: TlsFiles, logger: Logger): TlsTexts {
  const texts = tlsTextsIn(files);
  // Not refused: the clock may be what is wrong. Whoever connects only sees that the line is closed.
  for (const certificate of certificatesOutOfTime(files, texts, Date.now())) {
    logger.warn({ ...certificate }, 'a certificate is not valid at this time');
  }
  return texts;
}
