// Log lines as JSON on a file descriptor, through pino. Fields that could hold a secret are replaced
// by their name alone, as a second line of defence: nobody should log them in the first place.

import { pino } from 'pino';
import type { Logger } from '../../cluster/platform/logger.ts';

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

/** A logger that writes lines of at least `level` to `descriptor` (2 is standard error), in order. */
export function openJsonLog(level: LogLevel, descriptor: number): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: '<hidden>' },
      serializers: { cause: pino.stdSerializers.err, error: pino.stdSerializers.err },
    },
    pino.destination({ dest: descriptor, sync: true }),
  );
}
