// The settings that make several servers one datacenter: what is wrong with them when they are looked
// at together, and what a member of the group needs of them. Nothing is opened or looked up here.

import { withoutTrailing } from '../../../cluster/base/without-trailing.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import { isLoopback, isUnspecified, parseNetAddress } from './net-address.ts';
import { CLUSTER_PORT } from './settings-keys.ts';

/** Those of the settings of a server; durations are nanoseconds. */
export interface ClusterSettings {
  readonly bind_addr: string;
  readonly advertise_addr: string;
  readonly 'ports.cluster': number;
  readonly bootstrap_expect: number;
  readonly retry_join: readonly string[];
  readonly cluster_key: string;
  readonly 'raft.heartbeat_interval': bigint;
  readonly 'raft.election_timeout': bigint;
  readonly 'tls.cluster.cert_file': string;
  readonly 'tls.cluster.key_file': string;
  readonly 'tls.cluster.ca_file': string;
}

/** What a member is told about its group. */
export interface GroupPlan {
  /** Undefined: no port for other servers. */
  readonly listen: NetAddress | undefined;
  /** Undefined: where it listens. */
  readonly advertise: NetAddress | undefined;
  readonly bootstrapExpect: number;
  readonly retryJoin: readonly NetAddress[];
  readonly clusterKey: Uint8Array | undefined;
  /** The other keys that are named: taken from whoever dials. */
  readonly acceptedKeys: readonly Uint8Array[];
  readonly heartbeatMs: number;
  readonly electionMs: number;
  /** How long reads and writes wait for a leader: a few elections fit into it. */
  readonly leaderWaitMs: number;
}

const LEADER_WAIT_MIN_MS = 5_000;
const ELECTIONS_WAITED = 3;

const KEY_BYTES = 32;
const KEYS_MAX = 3;
const HEARTBEAT_MIN_NS = 10_000_000n;
const ELECTION_MAX_NS = 60_000_000_000n;
/** Fewer heartbeats in an election timeout, and one that is late ends a reign. */
const HEARTBEATS_MIN = 5n;
const HOW_TO_MAKE_A_KEY = 'make one with `conclave keygen` (or `openssl rand -base64 32`)';

/** What is wrong with them, naming the setting; undefined when they can be used. */
export function clusterFaultOf(settings: ClusterSettings): string | undefined {
  return (
    keyFaultOf(settings) ??
    advertiseFaultOf(settings) ??
    joinFaultOf(settings) ??
    tlsFaultOf(settings) ??
    openFaultOf(settings) ??
    timingFaultOf(settings)
  );
}

/** Settings without fault. */
export function groupPlanOf(settings: ClusterSettings): GroupPlan {
  const port = settings['ports.cluster'];
  const { bind_addr, advertise_addr, retry_join } = settings;
  const [clusterKey, ...acceptedKeys] = keysIn(settings).map((key) => Buffer.from(key, 'base64'));
  const electionMs = msOf(settings['raft.election_timeout']);
  return {
    listen: port === -1 ? undefined : { host: bind_addr, port },
    // With port 0 the port is known when it listens.
    advertise: parseNetAddress(advertise_addr, port),
    bootstrapExpect: settings.bootstrap_expect,
    retryJoin: retry_join.flatMap((text) => parseNetAddress(text, CLUSTER_PORT) ?? []),
    clusterKey,
    acceptedKeys,
    heartbeatMs: msOf(settings['raft.heartbeat_interval']),
    electionMs,
    leaderWaitMs: Math.max(LEADER_WAIT_MIN_MS, ELECTIONS_WAITED * electionMs),
  };
}

function msOf(durationNs: bigint): number {
  return Number(durationNs) / 1e6;
}

/** Never shows the key: also a wrong one may be somebody's secret. */
function keyFaultOf(settings: ClusterSettings): string | undefined {
  const keys = keysIn(settings);
  if (keys.length > KEYS_MAX) {
    return `cluster_key: ${keys.length} keys are named, and at most ${KEYS_MAX} may be: the one that is used, and others that are taken while it is replaced`;
  }
  for (const key of keys) {
    const fault = faultOfKey(key);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The first one is proved to others; all are taken. */
function keysIn({ cluster_key }: ClusterSettings): readonly string[] {
  return cluster_key === '' ? [] : cluster_key.split(',').map((key) => key.trim());
}

function faultOfKey(key: string): string | undefined {
  const bytes = Buffer.from(key, 'base64');
  const isBase64 = withoutTrailing(bytes.toString('base64'), '=') === withoutTrailing(key, '=');
  if (isBase64 && bytes.length === KEY_BYTES) return undefined;
  const found = isBase64 ? `it has ${bytes.length}` : 'it is no base64';
  return `cluster_key: expected ${KEY_BYTES} bytes in base64, and ${found}; ${HOW_TO_MAKE_A_KEY}`;
}

function advertiseFaultOf(settings: ClusterSettings): string | undefined {
  const { bind_addr, advertise_addr: text } = settings;
  const address = parseNetAddress(text, CLUSTER_PORT);
  if (text !== '' && (address === undefined || isUnspecified(address.host))) {
    return `advertise_addr: expected an address such as 10.0.0.1 or 10.0.0.1:8300, not ${JSON.stringify(text)}`;
  }
  if (settings['ports.cluster'] === 0 && parseNetAddress(text, 0)?.port === 0) {
    return 'advertise_addr needs a port of its own when ports.cluster is 0: the others must know it';
  }
  if (settings['ports.cluster'] === -1 || address !== undefined) return undefined;
  const isReachable = parseNetAddress(bind_addr, CLUSTER_PORT) !== undefined;
  if (isReachable && !isUnspecified(bind_addr)) return undefined;
  return `bind_addr ${bind_addr} names no address that other servers could reach: set advertise_addr`;
}

function joinFaultOf(settings: ClusterSettings): string | undefined {
  const { retry_join, bootstrap_expect: expect } = settings;
  for (const text of retry_join) {
    if (parseNetAddress(text, CLUSTER_PORT) !== undefined) continue;
    return `retry_join: expected addresses such as 10.0.0.2 or 10.0.0.2:8300, not ${JSON.stringify(text)}`;
  }
  if (expect > 1 && retry_join.length === 0) {
    return `bootstrap_expect is ${expect} and retry_join is empty: name the addresses of the other servers in retry_join`;
  }
  const isAlone = expect === 1 && retry_join.length === 0;
  if (settings['ports.cluster'] !== -1 || isAlone) return undefined;
  const wish = retry_join.length > 0 ? 'retry_join is set' : `bootstrap_expect is ${expect}`;
  return `ports.cluster is off and ${wish}: servers reach each other through that port`;
}

function tlsFaultOf(settings: ClusterSettings): string | undefined {
  const hasCert = settings['tls.cluster.cert_file'] !== '';
  if (hasCert !== (settings['tls.cluster.key_file'] !== '')) {
    return 'tls.cluster.cert_file and tls.cluster.key_file: one is set, and both are needed';
  }
  if (settings['tls.cluster.ca_file'] === '' || hasCert) return undefined;
  return 'tls.cluster.ca_file needs tls.cluster.cert_file and tls.cluster.key_file: every server shows a certificate of its own';
}

/** A port that others can reach lets nobody in who cannot prove that they belong. */
function openFaultOf(settings: ClusterSettings): string | undefined {
  const { bind_addr, cluster_key } = settings;
  if (settings['ports.cluster'] === -1) return undefined;
  if (isLoopback(bind_addr) || cluster_key !== '' || settings['tls.cluster.ca_file'] !== '') {
    return undefined;
  }
  return (
    `bind_addr ${bind_addr} can be reached from other machines, and nothing keeps strangers out of the group. ` +
    `Either set the same cluster_key on all servers (${HOW_TO_MAKE_A_KEY}), ` +
    'or set tls.cluster.cert_file, tls.cluster.key_file and tls.cluster.ca_file'
  );
}

function timingFaultOf(settings: ClusterSettings): string | undefined {
  const heartbeatNs = settings['raft.heartbeat_interval'];
  const electionNs = settings['raft.election_timeout'];
  if (heartbeatNs < HEARTBEAT_MIN_NS) return 'raft.heartbeat_interval: expected at least 10ms';
  if (electionNs > ELECTION_MAX_NS) return 'raft.election_timeout: expected at most 1m';
  if (electionNs >= HEARTBEATS_MIN * heartbeatNs) return undefined;
  return `raft.election_timeout: expected at least ${HEARTBEATS_MIN} times raft.heartbeat_interval`;
}
