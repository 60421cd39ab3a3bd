// Certificates and keys in files that settings name. What is wrong with one is said by the name of its setting, at
// the start: later it would only be seen by whoever connects.

import { X509Certificate } from 'node:crypto';
import { messageOf } from '../../../cluster/base/message-of.ts';
import type { TlsTexts } from '../../../cluster/platform/tls-in-use.ts';
import { NamedFileError } from '../../node/settings/settings.ts';
import { readTextFile } from '../disk/files.ts';
import { certificatesFault, keyFault } from './pem-certificates.ts';

/** Three settings, and the paths that they have. */
export interface TlsFiles {
  /** What the names of the settings begin with, such as `tls.`. */
  readonly settings: string;
  readonly key: string;
  readonly cert: string;
  /** Empty where there is none. */
  readonly ca: string;
}

/** Throws NamedFileError with the name of the setting whose file cannot be read, or is not what it should be. */
export function tlsTextsIn(files: TlsFiles): TlsTexts {
  const settingOf = (what: 'key' | 'cert' | 'ca') => `${files.settings}${what}_file`;
  const textOf = (what: 'key' | 'cert' | 'ca'): string => {
    try {
      return readTextFile(files[what]);
    } catch (error) {
      throw new NamedFileError(
        `${settingOf(what)}: cannot read ${files[what]}: ${messageOf(error)}`,
      );
    }
  };
  const texts = {
    key: textOf('key'),
    cert: textOf('cert'),
    ca: files.ca === '' ? undefined : textOf('ca'),
  };
  requireCertificate(settingOf('cert'), files.cert, texts.cert);
  if (texts.ca !== undefined) requireCertificate(settingOf('ca'), files.ca, texts.ca);
  const fault = keyFault(texts);
  if (fault === undefined) return texts;
  throw new NamedFileError(
    `${settingOf('key')}: ${files.key} does not hold the key of the certificate in ${files.cert} (${settingOf('cert')}): ${fault}`,
  );
}

/** When one counts, in the words of the certificate. */
export interface CertificateTerm {
  readonly setting: string;
  readonly path: string;
  readonly validFrom: string;
  readonly validTo: string;
}

/** Those of the texts of these files: the node's own, then the authority. Of several in a file, the first. */
export function certificatesIn(
  files: TlsFiles,
  { cert, ca }: TlsTexts,
): readonly CertificateTerm[] {
  const termOf = (what: 'cert' | 'ca', text: string): CertificateTerm => {
    const { validFrom, validTo } = new X509Certificate(text);
    return { setting: `${files.settings}${what}_file`, path: files[what], validFrom, validTo };
  };
  return [termOf('cert', cert), ...(ca === undefined ? [] : [termOf('ca', ca)])];
}

export function isInTime({ validFrom, validTo }: CertificateTerm, nowMs: number): boolean {
  return Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo);
}

const NOT_IN_TIME: readonly string[] = ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'];

/** Why the certificate of whoever connected does not count. `authority` is where it has to be from. */
export function certificateFault(found: unknown, authority: string): string {
  const code = String(found);
  return NOT_IN_TIME.includes(code)
    ? `its certificate is not valid at this time: ${code}`
    : `its certificate is not from ${authority}: ${code}`;
}

function requireCertificate(setting: string, path: string, text: string): void {
  const fault = certificatesFault(text);
  if (fault !== undefined) throw new NamedFileError(`${setting}: ${path} ${fault}`);
}
