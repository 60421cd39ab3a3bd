// What one client address may do at a server: over all its listeners, however many ports it knocks at.

import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { HttpSettings } from '../settings.ts';
import { ConnectionLimit } from './connection-limit.ts';
import { RateLimit } from './rate-limit.ts';

export interface ClientLimits {
  readonly connections: ConnectionLimit;
  readonly rate: RateLimit;
}

export function clientLimitsOf(
  settings: Pick<HttpSettings, 'connectionsPerClientMax' | 'requestLimits'>,
  clock: Clock,
  logger: Logger,
): ClientLimits {
  return {
    connections: new ConnectionLimit(settings.connectionsPerClientMax, { clock, logger }),
    rate: new RateLimit(settings.requestLimits, clock),
  };
}
