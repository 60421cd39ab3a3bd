// Log lines as JSON on a file descriptor, through pino. Fields that could hold a secret are replaced
// by their name alone, as a second line of defence: nobody should log them in the first place.

import { pino } from 'pino';
import type { Logger } from '../../../cluster/platform/logger.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

const SECRET_FIELDS = [
  'secret',
  'secretId',
  'SecretID',
  'bearerToken',
  'BearerToken',
  'authorization',
  'clientSecret',
  'password',
  'clusterKey',
  'acceptedKeys',
  'cluster_key',
];

/** So much waits for a place to be written to; what comes beyond it is lost. */
const WAITING_BYTES_MAX = 1024 * 1024;

/**
 * A logger that writes lines of at least `level` to `descriptor` (2 is standard error), in order. A line that
 * cannot be written, because a disk is full or nobody reads, waits for the next one or is lost: nobody fails for it.
 */
export function openJsonLog(level: LogLevel, descriptor: number): Logger {
  const destination = pino.destination({
    dest: descriptor,
    sync: true,
    maxLength: WAITING_BYTES_MAX,
  });
  // Without a listener it would be thrown at whoever logs.
  destination.on('error', () => undefined);
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: hidden },
      serializers: { cause: pino.stdSerializers.err, error: pino.stdSerializers.err },
    },
    destination,
  );
}

/** What is not set is no secret, and whoever reads the log wants to know. */
function hidden(value: unknown): unknown {
  return value === '' ? value : '<hidden>';
}
