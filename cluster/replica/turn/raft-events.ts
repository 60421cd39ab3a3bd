// Raft's events as log lines: the event's kind, and those of its values that say who, where and which
// term. Entries and snapshots never get into a line.

import type { Logger } from '../../platform/logger.ts';
import { LEVEL_OF_EVENT, type Observe } from '../../raft/events.ts';

/** Writes each event at its own level. */
export function loggingTo(logger: Logger): Observe {
  return (event) => {
    const level = LEVEL_OF_EVENT[event.kind];
    // Most events are for a debugging eye, and come with every message.
    if (level !== 'debug') logger[level](plainFieldsOf(event), event.kind);
  };
}

function plainFieldsOf(event: object): Readonly<Record<string, string | number | boolean>> {
  const fields: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(event)) {
    const isPlain =
      typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    if (isPlain && name !== 'kind') fields[name] = value;
  }
  return fields;
}
