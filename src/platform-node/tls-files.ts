// Certificates and keys in files that settings name. What is wrong with one is said by the name of its setting, at
// the start: later it would only be seen by whoever connects.

import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../cluster/base/message-of.ts';
import type { TlsTexts } from '../node/platform.ts';
import { SettingsError } from '../node/settings.ts';
import { readTextFile } from './files.ts';

/** Three settings, and the paths that they have. */
export interface TlsFiles {
  /** What the names of the settings begin with, such as `tls.`. */
  readonly settings: string;
  readonly key: string;
  readonly cert: string;
  /** Empty where there is none. */
  readonly ca: string;
}

/** Throws SettingsError with the name of the setting whose file cannot be read, or is not what it should be. */
export function tlsTextsIn(files: TlsFiles): TlsTexts {
  const settingOf = (what: 'key' | 'cert' | 'ca') => `${files.settings}${what}_file`;
  const textOf = (what: 'key' | 'cert' | 'ca'): string => {
    try {
      return readTextFile(files[what]);
    } catch (error) {
      throw new SettingsError(
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
  try {
    createSecureContext({ key: texts.key, cert: texts.cert });
  } catch (error) {
    throw new SettingsError(
      `${settingOf('key')}: ${files.key} does not hold the key of the certificate in ${files.cert} (${settingOf('cert')}): ${messageOf(error)}`,
    );
  }
  return texts;
}

/** A certificate that nobody accepts at present. */
export interface CertificateOutOfTime {
  readonly setting: string;
  readonly path: string;
  readonly validFrom: string;
  readonly validTo: string;
}

/**
 * Those of the texts of these files that are not valid yet, or not any more. Of several in a file, the first counts.
 */
export function certificatesOutOfTime(
  files: TlsFiles,
  texts: TlsTexts,
  nowMs: number,
): readonly CertificateOutOfTime[] {
  const found: CertificateOutOfTime[] = [];
  for (const what of ['cert', 'ca'] as const) {
    const text = texts[what];
    if (text === undefined) continue;
    const { validFrom, validTo } = new X509Certificate(text);
    if (Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo)) continue;
    const setting = `${files.settings}${what}_file`;
    found.push({ setting, path: files[what], validFrom, validTo });
  }
  return found;
}

function requireCertificate(setting: string, path: string, text: string): void {
  try {
    new X509Certificate(text);
  } catch {
    throw new SettingsError(`${setting}: ${path} holds no certificate as PEM`);
  }
}
