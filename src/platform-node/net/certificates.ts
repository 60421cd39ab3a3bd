// The certificates of this node, as they are in use. They are read when it starts and again whenever it is told
// to (SIGHUP): all files that settings name, or, where one is not what it should be, none.

import type { Logger } from '../../../cluster/platform/logger.ts';
import type { TlsInUse, TlsTexts } from '../../../cluster/platform/tls-in-use.ts';
import type { Certificates } from '../../node/platform.ts';
import type { Settings } from '../../node/settings/settings.ts';
import { certificatesIn, isInTime, type TlsFiles, tlsTextsIn } from './tls-files.ts';

export class NodeCertificates implements Certificates {
  readonly https: TlsOfPort | undefined;
  readonly cluster: TlsOfPort | undefined;
  readonly #logger: Logger;

  /** Throws NamedFileError with the name of the setting whose file is not what it should be. */
  constructor(settings: Settings, logger: Logger) {
    this.#logger = logger;
    this.https = portWith(httpsFilesOf(settings));
    this.cluster = portWith(clusterFilesOf(settings));
    this.#warn();
  }

  ends(): readonly { readonly setting: string; readonly endMs: number }[] {
    const all = this.#ports().flatMap(({ files, texts }) => certificatesIn(files, texts));
    return all.map(({ setting, validTo }) => ({ setting, endMs: Date.parse(validTo) }));
  }

  renew(): void {
    const ports = this.#ports();
    try {
      const read = ports.map(({ files }) => tlsTextsIn(files));
      for (const [place, port] of ports.entries()) port.use(read[place] as TlsTexts);
    } catch (cause) {
      this.#logger.error({ cause }, 'the certificates were not read anew: those in use stay');
      return;
    }
    const certificates = ports.flatMap(({ files, texts }) => certificatesIn(files, texts));
    this.#logger.info({ certificates }, 'the certificates were read anew');
    this.#warn();
  }

  /** Not refused: the clock may be what is wrong. Whoever connects only sees that the line is closed. */
  #warn(): void {
    const all = this.#ports().flatMap(({ files, texts }) => certificatesIn(files, texts));
    for (const certificate of all.filter((each) => !isInTime(each, Date.now()))) {
      this.#logger.warn({ ...certificate }, 'a certificate is not valid at this time');
    }
  }

  #ports(): readonly TlsOfPort[] {
    return [this.https, this.cluster].filter((port) => port !== undefined);
  }
}

/** What one port shows, and the files that it comes from. */
class TlsOfPort implements TlsInUse {
  readonly files: TlsFiles;
  #texts: TlsTexts;
  readonly #users: ((texts: TlsTexts) => void)[] = [];

  constructor(files: TlsFiles) {
    this.files = files;
    this.#texts = tlsTextsIn(files);
  }

  get texts(): TlsTexts {
    return this.#texts;
  }

  onRenewed(use: (texts: TlsTexts) => void): void {
    this.#users.push(use);
  }

  use(texts: TlsTexts): void {
    this.#texts = texts;
    for (const use of this.#users) use(texts);
  }
}

function portWith(files: TlsFiles | undefined): TlsOfPort | undefined {
  return files === undefined ? undefined : new TlsOfPort(files);
}

function httpsFilesOf(settings: Settings): TlsFiles | undefined {
  if (settings['ports.https'] === -1) return undefined;
  return {
    settings: 'tls.',
    key: settings['tls.key_file'],
    cert: settings['tls.cert_file'],
    ca: settings['tls.ca_file'],
  };
}

function clusterFilesOf(settings: Settings): TlsFiles | undefined {
  const cert = settings['tls.cluster.cert_file'];
  if (cert === '' || settings['ports.cluster'] === -1) return undefined;
  const key = settings['tls.cluster.key_file'];
  return { settings: 'tls.cluster.', key, cert, ca: settings['tls.cluster.ca_file'] };
}
