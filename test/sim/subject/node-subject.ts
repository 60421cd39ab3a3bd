// The whole node, as it is opened in production, on a platform of simulated hosts: member, transport,
// state machine, service and HTTP. Only what src/platform-node does otherwise is another.

import type { FastifyInstance } from 'fastify';
import type { Promotion } from '../../../cluster/federation/promotion/promotion.ts';
import { nodeNumberOf } from '../../../cluster/member/founding/node-number.ts';
import type { Message } from '../../../cluster/raft/message.ts';
import type { GroupTiming } from '../../../cluster/replica/group-limits.ts';
import type { ReplicaStatus } from '../../../cluster/replica/replica.ts';
import { decodeFrame } from '../../../cluster/wire/frame-codec.ts';
import { openNode, type RunningNode } from '../../../src/node/node.ts';
import type { Platform, ServedAt } from '../../../src/node/platform.ts';
import { readSettings, type Settings } from '../../../src/node/settings/settings.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { decodeMeta } from '../../../src/state/rows/meta.ts';
import { META_KEY } from '../../../src/state/rows/tables.ts';
import { textOf } from '../world/key-text.ts';
import type { SimStore } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { LeavingFrame } from '../world/sim-net.ts';
import type { SimProcess } from '../world/sim-process.ts';
import { Stream } from '../world/stream.ts';
import {
  isStateStore,
  type LiveNode,
  LOG_STORE,
  type StoredStanding,
  type Subject,
  stateStoreName,
} from './subject.ts';

export interface HttpQuestion {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** What is sent as it is, in the place of a body. */
  readonly bytes?: Uint8Array;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** The same as it came, where it is no text. */
  readonly bytes?: Uint8Array;
}

/** A node that is up, and answers over HTTP. */
export interface LiveServer extends LiveNode {
  http(question: HttpQuestion): Promise<HttpAnswer>;
  readonly promotion: Promotion;
}

export interface NodeSubjectOptions {
  /** All that the group can have. */
  readonly hosts: readonly SimHost[];
  /** How many of them found it. */
  readonly founderCount: number;
  readonly timing: GroupTiming;
  /** Applied entries that each server keeps; left out: so many that a run has no snapshot. */
  readonly keptCount?: number | undefined;
  /** Settings beyond those that a group of its own needs, as they are when a server starts. */
  readonly flags?: () => Readonly<Record<string, string>>;
  /** The feature level that the server reads in the life that begins; left out: the newest. */
  readonly reads?: (host: SimHost) => number;
  /** What answers where production has the world outside. */
  readonly https?: Platform['https'];
}

/** The secret that clients present. */
export const MANAGEMENT_SECRET = '5ec3e700-0000-4000-8000-000000000001';
const CLUSTER_KEY = Buffer.alloc(32, 7).toString('base64');
export const CLUSTER_PORT = 8300;
const META = textOf(META_KEY);
const NO_WORLD: Platform['https'] = {
  request: () => Promise.reject(new Error('there is no world outside')),
};

export class NodeSubject implements Subject {
  readonly name = 'node';
  readonly timing: GroupTiming;
  readonly #options: NodeSubjectOptions;
  readonly #idByDisk = new Map<string, string>();

  constructor(options: NodeSubjectOptions) {
    this.#options = options;
    this.timing = options.timing;
  }

  /** As the data folder keeps it: a new disk has a new one. */
  idOf(host: SimHost): string {
    const disk = `${host.name}/${host.diskNumber}`;
    const id = this.#idByDisk.get(disk) ?? new Stream(host.diskNumber, disk).uuid();
    this.#idByDisk.set(disk, id);
    return id;
  }

  nodeOf(host: SimHost): number {
    return nodeNumberOf(this.idOf(host));
  }

  hostOf(node: number): SimHost | undefined {
    return this.#options.hosts.find((host) => this.nodeOf(host) === node);
  }

  messagesIn({ frame }: LeavingFrame): readonly Message[] {
    const said = decodeFrame(frame);
    return said.kind === 'messages' ? said.messages : [];
  }

  standingIn({ synced }: SimStore): StoredStanding | undefined {
    const row = synced.get(META);
    if (row === undefined) return undefined;
    const { appliedEntry, groupRecord } = decodeMeta(row);
    return appliedEntry === undefined ? undefined : { appliedEntry, groupRecord };
  }

  async start(
    host: SimHost,
    process: SimProcess,
    onExit: (cause: Error) => void,
  ): Promise<LiveServer> {
    const served: Served = { app: undefined, underWay: new Set() };
    const platform = this.#platformOf(host, process, served, onExit);
    const settings = this.#settingsOf(host);
    const reads = this.#options.reads?.(host) ?? NEWEST_LEVEL;
    const node = await openNode({ settings, platform, version: 'sim', reads });
    return liveServerOf(node, served, (to) => this.idOf(to));
  }

  #platformOf(
    host: SimHost,
    process: SimProcess,
    served: Served,
    onExit: (cause: Error) => void,
  ): Platform {
    const { clock, random, logger } = process;
    let lastCause: unknown;
    return {
      clock,
      random,
      logger: {
        ...logger,
        error: (fields, message) => {
          lastCause = fields.cause ?? message;
          logger.error(fields, message);
        },
      },
      net: host.netOf(process),
      serveHttp: (app, { host: address, port }) =>
        serve(served, app, { address: { host: address, port }, clock }),
      watchLoopDelay: () => ({
        take: () => ({ p50Ms: 0, p99Ms: 0, maxMs: 0 }),
        close: () => undefined,
      }),
      https: through(process, this.#options.https ?? NO_WORLD),
      nodeId: this.idOf(host),
      openKv: (name, generation, onFatal) =>
        host.openKv(name === 'log' ? LOG_STORE : stateStoreName(generation), process, onFatal),
      dropKv: (_name, generation) => {
        if (!process.isOver) host.disk.drop(stateStoreName(generation));
        return Promise.resolve();
      },
      kvGenerations: () =>
        Promise.resolve(host.disk.storeNames.filter(isStateStore).map(generationOf)),
      takeBootstrapReset: () => undefined,
      auditFile: undefined,
      certificates: { https: undefined, ends: () => [], renew: () => undefined },
      exitAfterFatal: () =>
        onExit(lastCause instanceof Error ? lastCause : new Error(String(lastCause))),
    };
  }

  #settingsOf(host: SimHost): Settings {
    const { hosts, founderCount, timing, keptCount, flags } = this.#options;
    const others = hosts.filter((each) => each !== host);
    const heartbeatMs = timing.tickMs * timing.heartbeatTicks;
    return readSettings({
      flags: {
        'node-name': host.name,
        'bind-addr': host.name,
        'client-addr': host.name,
        'ports-cluster': String(CLUSTER_PORT),
        'bootstrap-expect': String(founderCount),
        'cluster-key': CLUSTER_KEY,
        'raft-heartbeat-interval': `${heartbeatMs}ms`,
        'raft-election-timeout': `${timing.tickMs * timing.electionTicks}ms`,
        ...(keptCount !== undefined && { 'raft-trailing-logs': String(keptCount) }),
        'acl-tokens-initial-management': MANAGEMENT_SECRET,
        'retry-join': others.map(({ name }) => `${name}:${CLUSTER_PORT}`).join(','),
        ...flags?.(),
      },
      files: [],
      environment: {},
    });
  }
}

/** What the world outside answers comes to a process as everything else does. */
function through(process: SimProcess, https: Platform['https']): Platform['https'] {
  return {
    request: (request) =>
      new Promise((resolve, reject) => {
        https.request(request).then(
          (response) => process.deliver(() => resolve(response)),
          (error: Error) => process.deliver(() => reject(error)),
        );
      }),
  };
}

interface Served {
  app: FastifyInstance | undefined;
  readonly underWay: Set<UnderWay>;
}

/** A request that is being answered. */
interface UnderWay {
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly cutOff: () => void;
}

/** As the real one: nobody new comes in, and who has not finished when the grace is over is cut off. */
const CLOSE_GRACE_MS = 5_000;

function serve(
  served: Served,
  app: FastifyInstance,
  {
    address,
    clock,
  }: { readonly address: ServedAt['address']; readonly clock: SimProcess['clock'] },
): Promise<ServedAt> {
  // What is left of a body that nobody wants goes with its connection: here there is none.
  app.addHook('onRequest', ({ raw: { socket } }, _reply, done) => {
    socket.destroy ??= () => socket;
    done();
  });
  served.app = app;
  return Promise.resolve({
    address,
    close: async () => {
      served.app = undefined;
      const cut = clock.after(CLOSE_GRACE_MS, () => {
        for (const { cutOff } of served.underWay) cutOff();
      });
      await Promise.all([...served.underWay].map(({ ended }) => ended));
      cut.cancel();
      await app.close();
    },
  });
}

/** Who is cut off hears nothing more: that the server has ended is for the wire to tell. */
function answered<T>({ underWay }: Served, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let cutOff = (): void => undefined;
    const isCut = new Promise<void>((settle) => {
      cutOff = settle;
    });
    const isSettled = answer.then(
      () => undefined,
      () => undefined,
    );
    const own = { ended: Promise.race([isSettled, isCut]), cutOff };
    underWay.add(own);
    const told = (tell: () => void): void => {
      if (underWay.delete(own)) tell();
    };
    answer.then(
      (value) => told(() => resolve(value)),
      (error: unknown) => told(() => reject(error)),
    );
    void isCut.then(() => underWay.delete(own));
  });
}

function generationOf(storeName: string): number {
  return storeName === stateStoreName(0) ? 0 : Number(storeName.slice('state-'.length));
}

function liveServerOf(
  node: RunningNode,
  served: Served,
  idOf: (host: SimHost) => string,
): LiveServer {
  let last: ReplicaStatus | undefined;
  let closing: Promise<void> | undefined;
  const http = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const { method, path, headers, body, bytes } = question;
    if (served.app === undefined) throw new Error('ECONNREFUSED: nobody listens');
    const sent = bytes === undefined ? JSON.stringify(body) : Buffer.from(bytes);
    const payload = bytes === undefined && body === undefined ? {} : { payload: sent };
    const asked = served.app.inject({ method, url: path, headers, ...payload });
    const answer = await answered(served, asked);
    const { statusCode: status, payload: text, rawPayload } = answer;
    return { status, headers: answer.headers, text, bytes: rawPayload };
  };
  return {
    http,
    promotion: node.promotion,
    status: () => last ?? node.status(),
    transferLeadership: (to) => {
      const path = `/v1/operator/raft/transfer-leader?id=${idOf(to)}`;
      const headers = { 'X-Service-Token': MANAGEMENT_SECRET };
      http({ method: 'POST', path, headers }).catch(() => undefined);
    },
    close: () => {
      last = node.status();
      closing ??= node.close();
      return closing;
    },
  };
}
