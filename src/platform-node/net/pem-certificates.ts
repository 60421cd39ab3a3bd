// Certificates in PEM, as files hold them. TLS takes what it can read of a list of authorities and looks past the
// rest: whoever relies on what is left out would only see that lines are closed.

import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../../cluster/base/message-of.ts';

const BEFORE_EACH = /(?=-----BEGIN )/;
const EACH = /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/;

/** What is wrong with a text that should hold certificates, in words that go on behind its name; undefined: nothing. */
export function certificatesFault(pem: string): string | undefined {
  const all = pem.split(BEFORE_EACH).filter((part) => EACH.test(part));
  if (all.length === 0) return 'holds no certificate as PEM';
  const place = all.findIndex((part) => !isCertificate(part));
  if (place === -1) return undefined;
  return `holds a certificate as PEM that cannot be read, number ${place + 1} of ${all.length}`;
}

/** Why TLS cannot show a certificate with this key, in the words of the library; undefined: it can. */
export function keyFault({
  cert,
  key,
}: {
  readonly cert: string;
  readonly key: string;
}): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
