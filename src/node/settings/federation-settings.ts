// The settings that make several datacenters one federation: what is wrong with them when they are looked
// at together, and what the node needs of them. Nothing is opened or looked up here.

import type { NetAddress } from '../../../cluster/platform/net.ts';
import { isDatacenterName } from '../../acl/values/names.ts';
import type { AckLevel } from '../../service/call.ts';
import { parseNetAddress } from './net-address.ts';
import { CLUSTER_PORT } from './settings-keys.ts';

/** Those of the settings of a server; durations are nanoseconds. */
export interface FederationSettings {
  readonly datacenter: string;
  readonly primary_datacenter: string;
  readonly retry_join_wan: readonly string[];
  readonly 'ports.cluster': number;
  readonly 'federation.log_max_bytes': number;
  readonly 'federation.log_max_age': bigint;
  readonly 'federation.default_ack': AckLevel;
  readonly 'federation.ack_timeout': bigint;
  readonly 'federation.visible_wait': bigint;
  readonly 'federation.primary_lease': bigint;
  readonly 'federation.witness': boolean;
}

/** What a node is told about the federation. */
export interface FederationPlan {
  readonly datacenter: string;
  /** Before anything else is known of it: the state says more once there was a change. */
  readonly firstPrimary: string;
  /** It votes and keeps the tail of the global log, and has no objects. */
  readonly isWitness: boolean;
  /** Whether the settings speak of other datacenters: there is a global log from the beginning. */
  readonly isFederated: boolean;
  readonly retryJoin: readonly NetAddress[];
  readonly logMaxBytes: number;
  readonly logMaxAgeMs: number;
  /** How long a write that does not say so waits for other datacenters. */
  readonly ackTimeoutMs: number;
  /** 0: a primary goes on for ever without hearing anybody. */
  readonly primaryLeaseMs: number;
}

/** What is wrong with them, naming the setting; undefined when they can be used. */
export function federationFaultOf(settings: FederationSettings): string | undefined {
  return (
    nameFaultOf(settings) ??
    joinFaultOf(settings) ??
    primaryFaultOf(settings) ??
    leaseFaultOf(settings) ??
    waitFaultOf(settings) ??
    ageFaultOf(settings) ??
    witnessFaultOf(settings)
  );
}

/** Settings without fault. */
export function federationPlanOf(settings: FederationSettings): FederationPlan {
  const { datacenter, retry_join_wan } = settings;
  return {
    datacenter,
    firstPrimary: firstPrimaryOf(settings),
    isWitness: settings['federation.witness'],
    isFederated: settings.primary_datacenter !== '' || retry_join_wan.length > 0,
    retryJoin: retry_join_wan.flatMap((text) => parseNetAddress(text, CLUSTER_PORT) ?? []),
    logMaxBytes: settings['federation.log_max_bytes'],
    logMaxAgeMs: Number(settings['federation.log_max_age']) / 1e6,
    ackTimeoutMs: Number(settings['federation.ack_timeout']) / 1e6,
    primaryLeaseMs: Number(settings['federation.primary_lease']) / 1e6,
  };
}

function firstPrimaryOf({ datacenter, primary_datacenter: primary }: FederationSettings): string {
  return primary === '' ? datacenter : primary;
}

function nameFaultOf(settings: FederationSettings): string | undefined {
  for (const key of ['datacenter', 'primary_datacenter'] as const) {
    const name = settings[key];
    const isLeftOut = key === 'primary_datacenter' && name === '';
    if (isLeftOut || isDatacenterName(name)) continue;
    return `${key}: expected lower-case letters, digits, - and _ (at most 64), and none of - and _ at an end, not ${JSON.stringify(name)}`;
  }
  return undefined;
}

function joinFaultOf(settings: FederationSettings): string | undefined {
  const { retry_join_wan } = settings;
  for (const text of retry_join_wan) {
    if (parseNetAddress(text, CLUSTER_PORT) !== undefined) continue;
    return `retry_join_wan: expected addresses such as 10.1.0.1 or 10.1.0.1:8300, not ${JSON.stringify(text)}`;
  }
  if (retry_join_wan.length === 0 || settings['ports.cluster'] !== -1) return undefined;
  return 'ports.cluster is off and retry_join_wan is set: datacenters reach each other through that port';
}

/** Followers are heard once a second: a shorter lease would end for nothing. */
const LEASE_MIN_NS = 2_000_000_000n;

function leaseFaultOf({ 'federation.primary_lease': leaseNs }: FederationSettings) {
  if (leaseNs === 0n || leaseNs >= LEASE_MIN_NS) return undefined;
  return 'federation.primary_lease: expected 2s or more, or 0s for none';
}

const WAIT_MAX_NS = 600_000_000_000n;

/** Longer than a timer can be, it would be no wait at all. */
function waitFaultOf(settings: FederationSettings): string | undefined {
  const names = ['federation.ack_timeout', 'federation.visible_wait'] as const;
  const long = names.find((name) => settings[name] > WAIT_MAX_NS);
  return long === undefined ? undefined : `${long}: expected at most 10m`;
}

/** As often it is looked what may go. */
const AGE_MIN_NS = 1_000_000_000n;

function ageFaultOf({ 'federation.log_max_age': ageNs }: FederationSettings) {
  return ageNs < AGE_MIN_NS ? 'federation.log_max_age: expected 1s or more' : undefined;
}

function witnessFaultOf(settings: FederationSettings): string | undefined {
  const isPrimary = firstPrimaryOf(settings) === settings.datacenter;
  if (!settings['federation.witness'] || !isPrimary) return undefined;
  return 'federation.witness: the primary has the objects, so it is no witness; name another primary_datacenter';
}

function primaryFaultOf(settings: FederationSettings): string | undefined {
  const { datacenter, retry_join_wan } = settings;
  const primary = firstPrimaryOf(settings);
  if (primary === datacenter || retry_join_wan.length > 0) return undefined;
  return `primary_datacenter is ${primary} and this server is of ${datacenter}: name addresses of servers of ${primary} in retry_join_wan`;
}
