// What a port shows in TLS, as Node takes it.

import type { SecureContextOptions } from 'node:tls';
import type { TlsTexts } from '../../../cluster/platform/tls-in-use.ts';

/** Said by whoever dials: else a variable of the environment (NODE_TLS_REJECT_UNAUTHORIZED) would have all trusted. */
export const CERTIFICATES_CHECKED = { rejectUnauthorized: true } as const;

/** Without an authority of its own, Node trusts those that this machine does. */
export function tlsContextOf({ key, cert, ca }: TlsTexts): SecureContextOptions {
  return { key, cert, ...(ca === undefined ? {} : { ca }) };
}
