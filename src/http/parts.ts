// What an HTTP server is made of: everything that comes from outside this folder.

import type { Clock } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
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
  readonly node: NodeInfo;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
}
