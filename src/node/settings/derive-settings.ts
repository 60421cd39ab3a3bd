// What the rooms of the node need of its settings, each in its own words.

import type { TlsInUse } from '../../../cluster/platform/tls-in-use.ts';
import type { SecretId } from '../../acl/ids.ts';
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../../http/settings.ts';
import type { ServiceSettings } from '../../service/deps.ts';
import { groupPlanOf } from './cluster-settings.ts';
import type { Settings } from './settings.ts';

export function serviceSettingsOf(settings: Settings): ServiceSettings {
  return {
    nodeName: settings.node_name,
    datacenter: settings.datacenter,
    aclEnabled: settings['acl.enabled'],
    defaultPolicy: settings['acl.default_policy'],
    downPolicy: 'extend-cache',
    tokenLimits: {
      minTtlNs: settings['acl.token_min_ttl'],
      maxTtlNs: settings['acl.token_max_ttl'],
    },
    initialManagementSecret: secretOf(settings['acl.tokens.initial_management']),
    namespacesEnabled: settings['namespaces.enabled'],
    leaderWaitMs: groupPlanOf(settings).leaderWaitMs,
    defaultAck: settings['federation.default_ack'],
    ackTimeoutMs: msOf(settings['federation.ack_timeout']),
    visibleWaitMs: msOf(settings['federation.visible_wait']),
  };
}

/** `inUse` undefined: the settings of the plain interface. */
export function httpSettingsOf(settings: Settings, inUse: TlsInUse | undefined): HttpSettings {
  return {
    ...DEFAULT_HTTP_SETTINGS,
    aclEnabled: settings['acl.enabled'],
    dialect: settings['http.dialect'],
    namespaces: settings['namespaces.enabled'],
    bodyMaxBytes: settings['limits.body_max_bytes'],
    snapshotMaxBytes: settings['limits.snapshot_max_bytes'],
    connectionsPerClientMax: settings['limits.http_max_conns_per_client'],
    blockingQueriesMax: settings['limits.blocking_queries_max'],
    requestLimits: {
      mode: settings['limits.request_limits.mode'],
      readRate: settings['limits.request_limits.read_rate'],
      writeRate: settings['limits.request_limits.write_rate'],
    },
    tls:
      inUse === undefined ? undefined : { inUse, verifyIncoming: settings['tls.verify_incoming'] },
  };
}

function msOf(durationNs: bigint): number {
  return Number(durationNs) / 1e6;
}

/** Undefined: none is set. */
export function secretOf(text: string): SecretId | undefined {
  return text === '' ? undefined : (text as SecretId);
}
