// What an HTTP server is made of: everything that comes from outside this folder.

import type { Clock } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import type { Call } from '../service/call.ts';
import type { Operations } from '../service/operations.ts';
import type { Operator } from '../service/operators/operator-operations.ts';
import type { MetricsRegistry } from './figures/metrics.ts';
import type { ClientLimits } from './limits/client-limits.ts';
import type { DefaultToken } from './serving/default-token.ts';
import type { NodeInfo } from './serving/node-info.ts';
import type { HttpSettings } from './settings.ts';

/** A change of one server alone. */
export interface NodeChange {
  /** Without secrets. */
  readonly input: object;
  readonly carryOut: () => void;
}

export interface HttpParts {
  readonly operations: Operations;
  readonly operator: Operator;
  readonly settings: HttpSettings;
  /** One for all listeners of a server. */
  readonly defaultToken: DefaultToken;
  /** One for all listeners of a server, too. */
  readonly clientLimits: ClientLimits;
  /**
   * For what endpoints of the node ask of the service themselves: the door without a record of it, and who is told
   * what came of the request instead. Undefined: nobody is.
   */
  readonly unrecorded?:
    | {
        readonly operations: Pick<Operations, 'run'>;
        readonly onFailed: (operation: string, call: Call, error: unknown) => void;
      }
    | undefined;
  /** Records what an endpoint of the node changes by itself, around doing it. Undefined: nobody does. */
  readonly recorded?:
    | ((operation: string, call: Call, change: NodeChange) => Promise<void>)
    | undefined;
  readonly node: NodeInfo;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
}
