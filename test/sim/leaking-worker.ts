// A process of the simulator with a hole in its world: rounds of reads are named by a counter of the
// process, so each run says other things than the one before, as it would by a real clock.

import { ReadBarriers } from '../../cluster/replica/read-barriers.ts';
import '../../scripts/sim/worker.ts';
import { replaced } from './mutants/replaced.ts';

let count = 0;

replaced(ReadBarriers.prototype, 'takeRound', (real) => {
  return function (this: ReadBarriers) {
    const context = real.call(this);
    count += 1;
    return context === undefined ? undefined : `${context}/${count}`;
  };
});
