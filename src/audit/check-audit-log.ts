// Reads audit logs, the oldest first, and says whether every record is linked with the one before it.

import { fits, isBeginning, linkIn } from './audit-chain.ts';

export interface AuditCheck {
  readonly records: number;
  /** Records that their server could not write, by what it says itself. */
  readonly lost: number;
  /** Pieces of records that a server left behind when it was ended. */
  readonly torn: number;
  /** 1 where the last line is the beginning of a record: its server writes it in this moment, or was ended in it. */
  readonly unfinished: number;
  /** What the first record is linked with: the last link of what was put aside before. */
  readonly firstPrevious: string;
  /** To be compared with what was noted elsewhere. */
  readonly lastLink: string;
}

/** The first line that does not fit. */
export class AuditMismatch extends Error {
  override readonly name = 'AuditMismatch';
}

interface Head {
  readonly event?: unknown;
  readonly torn?: unknown;
  readonly previous?: unknown;
  readonly lost?: unknown;
}

interface Piece {
  readonly where: string;
  /** It is the end of its file, as it were at the moment in which it was read. */
  readonly isUnfinished: boolean;
}

export class AuditChecker {
  #link: string | undefined;
  #firstPrevious = '';
  #records = 0;
  #lost = 0;
  #torn = 0;
  /** What is no whole record, until the next one says that the server knows of it. */
  #piece: Piece | undefined;
  /** Likewise, at the end of an earlier file: of that the next one says nothing. */
  #pieceBefore: Piece | undefined;

  /** The lines behind this are of another file. */
  beginFile(): void {
    this.#pieceBefore ??= this.#piece;
    this.#piece = undefined;
  }

  /** One line, without its end, if it has one; `where` names it in what is thrown. Throws AuditMismatch. */
  line(text: string, where: string, isEnded = true): void {
    if (linkIn(text) === undefined) {
      this.#piece ??= { where, isUnfinished: !isEnded && isBeginning(text) };
      return;
    }
    const head = headOf(text);
    this.#endPieces(head, where);
    const previous = this.#link ?? this.#first(head, where);
    if (!fits(previous, text)) {
      throw new AuditMismatch(`${where}: it, or what stood before it, is not what was written`);
    }
    this.#link = linkIn(text);
    this.#records += 1;
    if (typeof head.lost === 'number') this.#lost += head.lost;
  }

  /** Throws AuditMismatch where nothing was read, or the last line is a piece that somebody ended. */
  end(): AuditCheck {
    const piece = this.#pieceBefore ?? this.#piece;
    if (piece?.isUnfinished === false) throw this.#pieceAt(piece);
    if (this.#link === undefined) throw new AuditMismatch('there is no record');
    return {
      records: this.#records,
      lost: this.#lost,
      torn: this.#torn,
      unfinished: Number(piece !== undefined),
      firstPrevious: this.#firstPrevious,
      lastLink: this.#link,
    };
  }

  /** No link holds a piece: it stands where the record behind it says so. */
  #endPieces({ event, torn }: Head, where: string): void {
    const piece = this.#pieceBefore ?? this.#piece;
    const isTold = torn === true;
    // Of what stood before the first record of all nothing is known.
    if (this.#link !== undefined && isTold && this.#piece === undefined) {
      throw new AuditMismatch(`${where}: the piece of a record that stood before it is missing`);
    }
    if (piece === undefined) return;
    const isKnown = this.#piece === undefined || this.#link === undefined || isTold;
    if (event !== 'begun' || !isKnown) throw this.#pieceAt(this.#piece ?? piece);
    this.#piece = undefined;
    this.#pieceBefore = undefined;
    this.#torn += 1;
  }

  /** A file begins with a record that says what it is linked with. */
  #first({ previous }: Head, where: string): string {
    if (typeof previous !== 'string') {
      throw new AuditMismatch(
        `${where}: what stood before it is missing: name the older files first`,
      );
    }
    this.#firstPrevious = previous;
    return previous;
  }

  #pieceAt({ where }: Piece): AuditMismatch {
    return new AuditMismatch(`${where}: it is no whole record`);
  }
}

function headOf(line: string): Head {
  try {
    return JSON.parse(line) as Head;
  } catch {
    return {};
  }
}
