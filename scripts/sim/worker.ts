// A process that carries out tasks one after the other, as its parent sends them.

import { runTask } from './run-task.ts';
import type { Task } from './tasks.ts';

process.on('message', (task: Task) => {
  void runTask(task).then((result) => process.send?.(result));
});
