// One node: opens its parts in order, closes them in reverse. The parts run unchanged on any Platform,
// so a simulated node is this node.

import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Closer } from '../../cluster/base/closer.ts';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import { DurableLog } from '../../cluster/log/durable-log.ts';
import type { Replica } from '../../cluster/replica/replica.ts';
import { openSoloReplica } from '../../cluster/replica/solo-replica.ts';
import { createAuthMethods } from '../auth-methods/auth-method-types.ts';
import { createHttp } from '../http/create-http.ts';
import { MetricsRegistry } from '../http/metrics.ts';
import type { ServiceDeps } from '../service/deps.ts';
import { createOperations } from '../service/create-operations.ts';
import type { Operations } from '../service/operations.ts';
import type { Outcome } from '../state/outcome.ts';
import { StateMachine } from '../state/machine.ts';
import { httpSettingsOf, serviceSettingsOf } from './derive-settings.ts';
import { ensureBuiltins } from '../service/duties.ts';
import { LeaderDuties } from './leader-duties.ts';
import { LocalNodeInfo } from './local-node-info.ts';
import { countersIn, exportNodeMetrics } from './node-metrics.ts';
import type { Platform } from './platform.ts';
import { proposerOf } from './proposer.ts';
import { resetIndexOf } from './reset-index.ts';
import type { Settings } from './settings.ts';

export interface NodeOptions {
  readonly settings: Settings;
  readonly platform: Platform;
  /** The version of the program. */
  readonly version: string;
}

export interface RunningNode {
  readonly logger: Logger;
  /** Where it listens: HTTP first, then HTTPS. */
  readonly addresses: readonly ListeningAddress[];
  readonly operations: Operations;
  isBootstrapped(): boolean;
  /** Ends blocking queries, finishes what is under way, and closes the databases. */
  close(): Promise<void>;
}

export interface ListeningAddress {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** Opens the databases, replays the log, makes the built-ins, and listens. Rejects with what failed. */
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
  const { settings, platform } = options;
  const { clock, random, logger } = platform;
  const onFatal = (cause: Error): void => {
    logger.error(
      { cause },
      'a store failed; the process ends, because what is on disk is not known',
    );
    platform.exitAfterFatal();
  };

  const stateKv = await platform.openKv('state', onFatal);
  closer.defer(() => stateKv.close());
  const logKv = await platform.openKv('log', onFatal);
  closer.defer(() => logKv.close());
  const machine = await StateMachine.open(stateKv, { clock });
  const log = await DurableLog.open(logKv, machine.appliedEntry);
  const pendingCountMax = settings['limits.pending_writes_max'];
  const replica = await openSoloReplica({ log, machine, onFatal, limits: { pendingCountMax } });
  closer.defer(() => replica.close());

  const metrics = new MetricsRegistry();
  const deps: ServiceDeps = {
    view: machine,
    watch: machine.watch,
    propose: proposerOf(replica),
    readBarrier: () => replica.readBarrier(),
    leaderContact: () => ({ isLeader: true, knownLeader: true, lastContactMs: 0 }),
    takeResetIndex: async () => resetIndexOf(platform.takeBootstrapReset()),
    authMethods: createAuthMethods({
      http: platform.https,
      nowMs: () => clock.wallMs(),
      random,
      logger,
    }),
    clock,
    random,
    logger,
    metrics: countersIn(metrics),
    settings: serviceSettingsOf(settings),
  };
  await ensureBuiltins(deps);
  const operations = createOperations(deps);
  const duties = new LeaderDuties(deps);
  exportNodeMetrics(metrics, { replica, view: machine, duties });

  const addresses: ListeningAddress[] = [];
  const node = nodeInfoOf(options, replica, machine, addresses);
  const parts = { operations, node, metrics, logger, clock, random };
  for (const listener of listenersOf(options)) {
    const app = createHttp({ ...parts, settings: httpSettingsOf(settings, listener.tls) });
    closer.defer(() => closeInTime(app, clock));
    addresses.push(await listen(app, settings.client_addr, listener));
  }
  duties.start();
  closer.defer(() => duties.close());
  return {
    logger,
    addresses,
    operations,
    isBootstrapped: () => machine.bootstrapIndex() !== undefined,
    close: () => closer.close(),
  };
}

function nodeInfoOf(
  { settings, platform, version }: NodeOptions,
  replica: Replica<Outcome>,
  view: StateMachine,
  addresses: readonly ListeningAddress[],
): LocalNodeInfo {
  const { nodeId } = platform;
  return new LocalNodeInfo({
    settings,
    nodeId,
    version,
    replica,
    view,
    address: () => addresses[0],
  });
}

interface Listener {
  readonly scheme: 'http' | 'https';
  readonly port: number;
  readonly tls: Platform['tls'];
}

function listenersOf({ settings, platform }: NodeOptions): readonly Listener[] {
  const all: readonly Listener[] = [
    { scheme: 'http', port: settings['ports.http'], tls: undefined },
    { scheme: 'https', port: settings['ports.https'], tls: platform.tls },
  ];
  return all.filter(({ port }) => port !== -1);
}

/** A connection that is silent, half asked or not read may not keep the node from stopping. */
const CLOSE_GRACE_MS = 5_000;

/** Lets requests under way finish; whoever has not finished when the grace is over is cut off. */
async function closeInTime(app: FastifyInstance, clock: Clock): Promise<void> {
  const cut = clock.after(CLOSE_GRACE_MS, () => app.server.closeAllConnections());
  try {
    await app.close();
  } finally {
    cut.cancel();
  }
}

async function listen(
  app: FastifyInstance,
  host: string,
  { scheme, port }: Listener,
): Promise<ListeningAddress> {
  await app.listen({ host, port });
  const bound = app.server.address() as AddressInfo;
  const shownHost = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return { host: bound.address, port: bound.port, url: `${scheme}://${shownHost}:${bound.port}` };
}
