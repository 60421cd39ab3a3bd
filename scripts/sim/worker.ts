// A process that carries out tasks one after the other, as its parent sends them.

import { runTask } from './run-task.ts';
import type { Task } from './tasks.ts';

// A run that nobody waits for any more may be a long one.
process.on('disconnect', () => process.exit());

process.on('message', (task: Task) => {
  // Whoever is gone by then is told nothing, and that is no fault.
  const ignore = (): void => undefined;
  void runTask(task).then((result) => process.send?.(result, undefined, undefined, ignore));
});
