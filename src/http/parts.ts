// What an HTTP server is made of: everything that comes from outside this folder.

import type { Clock } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import type { AclError } from '../acl/error.ts';
import type { Call } from '../service/call.ts';
import type { Operations } from '../service/operations.ts';
import type { Operator } from '../service/operator-operations.ts';
import type { MetricsRegistry } from './metrics.ts';
import type { NodeInfo } from './node-info.ts';
import type { HttpSettings } from './settings.ts';

export interface HttpParts {
  readonly operations: Operations;
  readonly operator: Operator;
  readonly settings: HttpSettings;
  /** Told of refusals for want of rights that are decided in this room. */
  readonly onDenied?: ((operation: string, call: Call, error: AclError) => void) | undefined;
  readonly node: NodeInfo;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
}
