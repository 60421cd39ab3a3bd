// A process of the simulator with a hole in its world: the first rounds of reads that it is asked for
// have to wait. What a process has done before is no part of a run, so one seed comes to two ends.

import { ReadBarriers } from '../../cluster/replica/requests/read-barriers.ts';
import '../../scripts/sim/worker.ts';
import { replaced } from './mutants/replaced.ts';

let leftCount = 20;

replaced(ReadBarriers.prototype, 'takeRound', (real) => {
  return function (this: ReadBarriers) {
    leftCount -= 1;
    return leftCount < 0 ? real.call(this) : undefined;
  };
});
