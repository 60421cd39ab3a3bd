// The real outside world of a node: this machine's clock, randomness, disk and network.

import type { Kv } from '../../cluster/platform/kv.ts';
import { adoptRunningSha256 } from '../../cluster/platform/running-sha256.ts';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import type { AuditFile } from '../audit/audit-trail.ts';
import type { Platform } from '../node/platform.ts';
import type { Settings } from '../node/settings/settings.ts';
import { OutputFile, RotatingFile } from './disk/audit-file.ts';
import { makeFolder } from './disk/durable-files.ts';
import {
  databaseFolder,
  databaseGenerations,
  deleteFolder,
  keptNodeId,
  takeBootstrapReset,
} from './disk/files.ts';
import { openLevelKv } from './disk/level-kv.ts';
import { fileSharesOf, openFilesMax } from './disk/open-files.ts';
import { TableChecks } from './disk/table-checks.ts';
import { systemRunningSha256 } from './hashes/system-running-sha256.ts';
import { systemSha256 } from './hashes/system-sha256.ts';
import { adoptWasmBlake2b256 } from './hashes/wasm-blake2b.ts';
import { NodeCertificates } from './net/certificates.ts';
import { ConnectionRoom } from './net/connection-room.ts';
import { serveHttp } from './net/http-serving.ts';
import { NodeHttpsClient } from './net/https-client.ts';
import { openWsNet } from './net/ws-net.ts';
import { openJsonLog } from './process/json-log.ts';
import { watchLoopDelay } from './process/loop-delay.ts';
import { placeObjectsYoung } from './process/object-placement.ts';
import { END_MAX_MS, endAfterFatal } from './process/stopped-in-time.ts';
import { systemClock } from './system-clock.ts';
import { systemRandom } from './system-random.ts';

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
  adoptWasmBlake2b256(logger);
  const certificates = new NodeCertificates(settings, logger);
  const { clientsMax, strangersMax } = fileSharesOf(openFilesMax());
  const room = new ConnectionRoom({ max: clientsMax, clock: systemClock, logger });
  const tls = certificates.cluster;
  const auditFile = auditFileOf(settings);
  const openStores = new Set<Kv>();
  return {
    clock: systemClock,
    random: systemRandom,
    logger,
    net: openWsNet({ tls, strangersMax, clock: systemClock, logger }),
    serveHttp: (app, at) => serveHttp(app, at, { clock: systemClock, logger, room }),
    watchLoopDelay,
    https: new NodeHttpsClient(),
    nodeId: keptNodeId(dataFolder, systemRandom.uuid()),
    openKv: async (name, generation, onFatal) => {
      const folder = databaseFolder(dataFolder, name, generation);
      const onClosed = (): void => void openStores.delete(kv);
      const kv = await openLevelKv({ folder, name, onFatal, onClosed, tableChecks });
      openStores.add(kv);
      return kv;
    },
    dropKv: (name, generation) => deleteFolder(databaseFolder(dataFolder, name, generation)),
    kvGenerations: async (name) => databaseGenerations(dataFolder, name),
    takeBootstrapReset: (isForAsker) => takeBootstrapReset(dataFolder, isForAsker),
    certificates,
    auditFile,
    exitAfterFatal: (isOfStore) => {
      if (!isOfStore) process.exit(1);
      endAfterFatal(
        () => Promise.allSettled([...openStores, auditFile].map((each) => each?.close())),
        () => logger.error({ afterMs: END_MAX_MS }, 'it does not end: the process kills itself'),
      );
    },
  };
}

function auditFileOf(settings: Settings): AuditFile | undefined {
  const path = settings['audit.file'];
  if (path === '') return undefined;
  return path === '-' ? new OutputFile() : new RotatingFile(path, settings['audit.max_files']);
}
