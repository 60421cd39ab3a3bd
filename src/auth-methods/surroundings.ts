// What the auth methods need from the outside world, handed in by the assembly, so that a test or
// the simulator decides what time it is and who answers.

import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import type { HttpsClient } from './https-client.ts';

export interface Surroundings {
  readonly http: HttpsClient;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  nowMs(): number;
  readonly random: Random;
  readonly logger: Logger;
}
