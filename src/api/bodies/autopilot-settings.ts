// From the body of an autopilot configuration to settings that can be held to: what is absent gets its
// default, what cannot be meant is refused by the name of its field.

import { AclError } from '../../acl/error.ts';
import type { ShownAutopilotSettings } from '../render/shown-operator.ts';
import type { AutopilotConfigurationBody } from './operator-schemas.ts';

const NS_OF_MS = 1_000_000n;
/** No group has more voters. */
const QUORUM_MAX = 255;
/** Longer than any server is waited for, and short enough for every clock. */
const DURATION_MAX_MS = 24 * 3_600_000;

/** Those that deployed servers begin with. */
export const AUTOPILOT_DEFAULTS: ShownAutopilotSettings = {
  cleanupDeadServers: true,
  lastContactThresholdMs: 200,
  maxTrailingLogs: 250,
  minQuorum: 0,
  serverStabilizationTimeMs: 10_000,
};

/** Throws 'malformed' that begins with `label` and names the field. */
export function autopilotSettingsOf(
  body: AutopilotConfigurationBody,
  label: string,
): ShownAutopilotSettings {
  const refuse = (text: string): never => {
    throw new AclError('malformed', `${label}: ${text}`);
  };
  const defaults = AUTOPILOT_DEFAULTS;
  const settings = {
    cleanupDeadServers: body.CleanupDeadServers ?? defaults.cleanupDeadServers,
    lastContactThresholdMs:
      wholeMs(body.LastContactThreshold, 'LastContactThreshold', refuse) ??
      defaults.lastContactThresholdMs,
    maxTrailingLogs: body.MaxTrailingLogs ?? defaults.maxTrailingLogs,
    minQuorum: body.MinQuorum ?? defaults.minQuorum,
    serverStabilizationTimeMs:
      wholeMs(body.ServerStabilizationTime, 'ServerStabilizationTime', refuse) ??
      defaults.serverStabilizationTimeMs,
  };
  if (settings.lastContactThresholdMs === 0) refuse('LastContactThreshold must be above zero');
  if (settings.minQuorum > QUORUM_MAX) refuse(`MinQuorum must be at most ${QUORUM_MAX}`);
  requireNothingElse(body, refuse);
  return settings;
}

/** The decoder gives durations as nanoseconds. */
function wholeMs(
  value: AutopilotConfigurationBody['LastContactThreshold'],
  field: string,
  refuse: (text: string) => never,
): number | undefined {
  if (value === undefined) return undefined;
  const ns = BigInt(value);
  const ms = Number(ns / NS_OF_MS);
  const isExact = ns >= 0n && ns % NS_OF_MS === 0n;
  if (isExact && ms <= DURATION_MAX_MS) return ms;
  return refuse(`${field} must be whole milliseconds, from 0s to 24h`);
}

/** Deployed clients send these fields empty; a value would ask for what is not done here. */
function requireNothingElse(
  body: AutopilotConfigurationBody,
  refuse: (text: string) => never,
): void {
  if (body.DisableUpgradeMigration === true) {
    refuse('DisableUpgradeMigration must be false: nothing is migrated here');
  }
  for (const field of ['RedundancyZoneTag', 'UpgradeVersionTag'] as const) {
    if ((body[field] ?? '') !== '') refuse(`${field} must be empty: there is no such thing here`);
  }
}
