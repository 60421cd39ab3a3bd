// Addresses as people write them: `host`, `host:port`, `[::1]:port`. Pure text: no name is looked up.

import type { NetAddress } from '../../../cluster/platform/net.ts';

const HOST_MAX = 253;
const PORT_MAX = 65_535;

/** Undefined when the text is no address. Without a port it has `defaultPort`. */
export function parseNetAddress(text: string, defaultPort: number): NetAddress | undefined {
  const parts = /^(?:\[([0-9a-fA-F:.%a-z]+)\]|([^\s:[\]/@]+))(?::(\d{1,5}))?$/.exec(text);
  if (parts === null) return bareIpv6(text) ? { host: text, port: defaultPort } : undefined;
  const host = parts[1] ?? parts[2] ?? '';
  if (host.length > HOST_MAX) return undefined;
  if (parts[3] === undefined) return { host, port: defaultPort };
  const port = Number(parts[3]);
  return port >= 1 && port <= PORT_MAX ? { host, port } : undefined;
}

/** As `parseNetAddress` reads it. */
export function textOfAddress({ host, port }: NetAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Whether it means every address of the machine, and so names none of them. */
export function isUnspecified(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

function bareIpv6(text: string): boolean {
  return /^[0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F.]*$/.test(text);
}
