// What a port shows in TLS. It is read anew while the port is open: certificates end before servers do.

/** PEM texts of one port. */
export interface TlsTexts {
  readonly key: string;
  readonly cert: string;
  /** Whose certificates count on the other side; undefined: those that this machine trusts. */
  readonly ca: string | undefined;
}

export interface TlsInUse {
  readonly texts: TlsTexts;
  /** `use` is given the texts that count from then on, for connections that are made later. */
  onRenewed(use: (texts: TlsTexts) => void): void;
}
