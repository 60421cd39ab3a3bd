// Addresses as people write them: `host`, `host:port`, `[::1]:port`. Pure text: no name is looked up.

import { addressText, type NetAddress } from '../../../cluster/platform/net.ts';

const HOST_MAX = 253;
const PORT_MAX = 65_535;

/** Undefined when the text is no address that can be dialled. Without a port it has `defaultPort`. */
export function parseNetAddress(text: string, defaultPort: number): NetAddress | undefined {
  if (isIpv6(text)) return { host: text, port: defaultPort };
  const parts = /^(?:\[([^\][]+)\]|([^\s:[\]/@?#\\]+))(?::(\d{1,5}))?$/.exec(text);
  if (parts === null) return undefined;
  const [, bracketed, name = '', given] = parts;
  if (bracketed !== undefined && !isIpv6(bracketed)) return undefined;
  const host = bracketed ?? name;
  if (host.length > HOST_MAX || !URL.canParse(urlOf(host))) return undefined;
  if (given === undefined) return { host, port: defaultPort };
  const port = Number(given);
  return port >= 1 && port <= PORT_MAX ? { host, port } : undefined;
}

/** Whether it can be listened at, as far as text tells: a host without brackets or a port. */
export function isHost(text: string): boolean {
  const [address = '', zone] = text.split('%', 2);
  if (zone !== undefined) return zone !== '' && isIpv6(address);
  return parseNetAddress(text, 1)?.host === text;
}

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || /^127(?:\.\d{1,3}){3}$/.test(host)) return true;
  return isIpv6(host) && plain(host) === '[::1]';
}

/** Whether it means every address of the machine, and so names none of them. */
export function isUnspecified(host: string): boolean {
  return ['0.0.0.0', '[::]', '[::ffff:0:0]'].includes(plain(host));
}

function isIpv6(text: string): boolean {
  return text.includes(':') && URL.canParse(urlOf(text)) && !/[[\]]/.test(text);
}

/** As there is one way to write it: `0:0::1` is `[::1]`, and `0` is `0.0.0.0`. */
function plain(host: string): string {
  return URL.canParse(urlOf(host)) ? new URL(urlOf(host)).hostname : host;
}

function urlOf(host: string): string {
  return `ws://${addressText({ host, port: 1 })}/`;
}
