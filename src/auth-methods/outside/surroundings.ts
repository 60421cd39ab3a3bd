// What the auth methods need from the outside world, handed in by the assembly, so that a test or
// the simulator decides what time it is and who answers.

import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import type { HttpsClient } from './https-client.ts';

export interface Surroundings {
  readonly http: HttpsClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}
