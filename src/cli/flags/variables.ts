// The environment variables that commands read; those of settings are variableOf (src/node/settings/settings-keys.ts).

/** A server is started in the environment of a person as well: none of them is a slip there. */
export const COMMAND_VARIABLES = [
  'CONCLAVE_CACERT',
  'CONCLAVE_CLIENT_CERT',
  'CONCLAVE_CLIENT_KEY',
  'CONCLAVE_DEBUG',
  'CONCLAVE_HTTP_ADDR',
  'CONCLAVE_NAMESPACE',
  'CONCLAVE_TOKEN',
  'CONCLAVE_TOKEN_FILE',
] as const;
