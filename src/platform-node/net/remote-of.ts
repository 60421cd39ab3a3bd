// The other end of a socket, as logs name it.

export interface End {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/** `host:port`, as far as they are known. */
export function remoteOf({ remoteAddress = '', remotePort = 0 }: End): string {
  const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress;
  return `${host}:${remotePort}`;
}
