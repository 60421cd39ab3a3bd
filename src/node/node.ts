// One node: opens its parts in order, closes them in reverse. The parts run unchanged on any Platform,
// so a simulated node is this node. It listens before it belongs to a group, and says what it waits for.

import { Closer } from '../../cluster/base/closer.ts';
import type { Promotion } from '../../cluster/federation/promotion/promotion.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import { addressText, type NetAddress } from '../../cluster/platform/net.ts';
import type { ReplicaStatus } from '../../cluster/replica/replica.ts';
import { createHttp } from '../http/create-http.ts';
import { MetricsRegistry } from '../http/figures/metrics.ts';
import { clientLimitsOf } from '../http/limits/client-limits.ts';
import type { HttpParts } from '../http/parts.ts';
import { DefaultToken } from '../http/serving/default-token.ts';
import type { NodeInfo } from '../http/serving/node-info.ts';
import type { Operations } from '../service/operations.ts';
import { NEWEST_LEVEL } from '../state/commands/feature-levels.ts';
import { fatalOf } from './fatal.ts';
import { exportFederationMetrics } from './federation/shown/federation-metrics.ts';
import { GroupNodeInfo } from './group-node-info.ts';
import { exportCertificateMetrics, exportNodeMetrics } from './node-metrics.ts';
import { NodeService } from './node-service.ts';
import { doorsFor, openAudit } from './open-audit.ts';
import { type OpenGroup, openGroup } from './open-group.ts';
import { openOperators } from './operators/operators.ts';
import type { Platform } from './platform.ts';
import { ClockWatch } from './reign/clock-watch.ts';
import { LoopWatch } from './reign/loop-watch.ts';
import { groupPlanOf } from './settings/cluster-settings.ts';
import { httpSettingsOf, secretOf } from './settings/derive-settings.ts';
import { federationPlanOf } from './settings/federation-settings.ts';
import type { Settings } from './settings/settings.ts';

export interface NodeOptions {
  readonly settings: Settings;
  readonly platform: Platform;
  /** The version of the program. */
  readonly version: string;
  /** Up to which feature level it reads; left out: what this release does. */
  readonly reads?: number;
  /** It is to stop: who waits for it to be ready waits no longer. */
  readonly stopped?: Promise<unknown>;
}

export interface RunningNode {
  readonly logger: Logger;
  /** Where it listens: HTTP first, then HTTPS. */
  readonly addresses: readonly ListeningAddress[];
  /** Where it listens for other servers; undefined when nowhere. */
  readonly clusterAddress: NetAddress | undefined;
  readonly operations: Operations;
  readonly info: NodeInfo;
  /** Makes its datacenter primary, or another one in its place, when it leads. */
  readonly promotion: Promotion;
  /** Resolves when it is ready for the first time; never when it is closed before. */
  readonly opened: Promise<void>;
  isBootstrapped(): boolean;
  /** How it stands in the log of its datacenter. */
  status(): ReplicaStatus;
  /** Its certificates, for connections that are made later, and goes on with the audit log under its name. */
  readFilesAnew(): Promise<void>;
  /** Hands its leadership over, finishes what is under way, and closes the databases. */
  close(): Promise<void>;
}

export interface ListeningAddress extends NetAddress {
  readonly url: string;
}

/** So long a node that waits for nobody may take to be ready, before it is said to run all the same. */
const ALONE_READY_MS = 10_000;
/** For this part of an election timeout the event loop may stand still before the log says so. */
const ALARM_FRACTION = 1 / 3;

/**
 * Opens the databases, joins the group and listens. Resolves when it listens; a node that is alone,
 * when it is ready. Rejects with what failed.
 */
export async function openNode(options: NodeOptions): Promise<RunningNode> {
  const closer = new Closer();
  try {
    return await openParts(options, closer);
  } catch (error) {
    await closer.close();
    throw error;
  }
}

async function openParts(options: NodeOptions, closer: Closer): Promise<RunningNode> {
  const { settings, platform, version, reads = NEWEST_LEVEL } = options;
  const { clock, random, logger } = platform;
  const addresses: ListeningAddress[] = [];
  const clocks = new ClockWatch({ clock, logger });
  const groupOptions = {
    ...options,
    reads,
    onFatal: fatalOf(platform),
    httpAddress: () => (addresses[0] === undefined ? '' : addressText(addresses[0])),
    onCommandTime: (timeMs: number) => clocks.note(timeMs),
  };
  const group = await openGroup(groupOptions, closer);
  const { member, machine, clusterId } = group;
  const metrics = new MetricsRegistry();
  const service = new NodeService(
    { settings, platform, member, machine, clusterId, metrics, reads, clocks },
    closer,
  );
  const { door: operations, opening, federation } = service;
  const operator = openOperators({ platform, version, group, service }, closer);
  const loop = watchLoop(options, closer);
  exportNodeMetrics(metrics, { ...service, member, view: machine, loop, clocks });
  exportCertificateMetrics(metrics, platform);
  exportFederationMetrics(metrics, federation, machine);

  const info = new GroupNodeInfo({
    settings,
    nodeId: platform.nodeId,
    version,
    reads,
    group: member,
    view: machine,
    federation,
    httpAddress: () => addresses[0],
    notReadyReasons: () => opening.notReadyReasons(),
  });
  const audit = await openAudit(
    { settings, platform, view: machine, group: member, metrics },
    closer,
  );
  const parts = {
    ...doorsFor(audit, { operations, operator }),
    defaultToken: new DefaultToken(secretOf(settings['acl.tokens.default'])),
    clientLimits: clientLimitsOf(httpSettingsOf(settings, undefined), clock, logger),
    ...{ node: info, metrics, logger, clock, random },
  };
  for (const listener of listenersOf(options)) {
    addresses.push(await listen(options, listener, { parts, closer }));
  }
  if (waitsForNobody(settings, group)) await readyOrStopped(opening.opened, options);
  return {
    ...{ logger, addresses, clusterAddress: member.address, operations, info },
    promotion: federation.promotion,
    opened: opening.opened,
    isBootstrapped: () => machine.bootstrapIndex() !== undefined,
    status: () => member.status(),
    readFilesAnew: async () => {
      platform.certificates.renew();
      await audit?.trail.reopen();
    },
    close: async () => {
      await handOver(group, logger);
      await closer.close();
    },
  };
}

function watchLoop({ settings, platform }: NodeOptions, closer: Closer): LoopWatch {
  const { clock, logger } = platform;
  const alarmMs = groupPlanOf(settings).electionMs * ALARM_FRACTION;
  const loop = new LoopWatch({ delay: platform.watchLoopDelay(), clock, logger, alarmMs });
  closer.defer(() => loop.close());
  return loop;
}

interface Listener {
  readonly scheme: 'http' | 'https';
  readonly port: number;
  readonly tls: Platform['certificates']['https'];
}

function listenersOf({ settings, platform }: NodeOptions): readonly Listener[] {
  const all: readonly Listener[] = [
    { scheme: 'http', port: settings['ports.http'], tls: undefined },
    { scheme: 'https', port: settings['ports.https'], tls: platform.certificates.https },
  ];
  return all.filter(({ port }) => port !== -1);
}

async function listen(
  { settings, platform }: NodeOptions,
  { scheme, port, tls }: Listener,
  { parts, closer }: { readonly parts: Omit<HttpParts, 'settings'>; readonly closer: Closer },
): Promise<ListeningAddress> {
  const http = httpSettingsOf(settings, tls);
  const app = createHttp({ ...parts, settings: http });
  const at = { host: settings.client_addr, port, tls: http.tls };
  const served = await platform.serveHttp(app, at);
  closer.defer(() => served.close());
  return { ...served.address, url: `${scheme}://${addressText(served.address)}` };
}

/** Whether nobody else is needed for it to be ready. */
function waitsForNobody(settings: Settings, { member }: OpenGroup): boolean {
  const { kind } = member.standing();
  const isOver = kind === 'removed' || kind === 'quarantined';
  const isAlone = settings.bootstrap_expect === 1 && settings.retry_join.length === 0;
  // A secondary waits for the primary.
  if (federationPlanOf(settings).firstPrimary !== settings.datacenter) return false;
  return !isOver && isAlone && member.members().length <= 1;
}

async function readyOrStopped(
  opened: Promise<void>,
  { platform, stopped }: NodeOptions,
): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = platform.clock.after(ALONE_READY_MS, resolve);
    const end = (): void => {
      timer.cancel();
      resolve();
    };
    void opened.then(end);
    void stopped?.then(end);
  });
}

/** While everything still runs, so that clients of all servers hardly notice. */
async function handOver({ member }: OpenGroup, logger: Logger): Promise<void> {
  const at = member.standing();
  if (at.kind !== 'member' || !at.isLeader || member.members().length <= 1) return;
  try {
    await member.transferLeadership(undefined);
  } catch (cause) {
    logger.warn({ cause }, 'nobody took the leadership over; the others will elect');
  }
}
