// Addresses as texts for log lines and refusals.

import type { NetAddress } from '../platform/net.ts';

export function addressText({ host, port }: NetAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
