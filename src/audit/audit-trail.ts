// The audit log of one server while it runs: takes records in the order in which things happen, links each with
// the one before it, and writes them in turn. One that cannot be written is lost and counted, or, where the log
// is required, tells whoever waits for it.

import { messageOf } from '../../cluster/base/message-of.ts';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import { FIRST_LINK, isBeginning, linked, linkIn } from './audit-chain.ts';
import type { AuditRecord } from './audit-record.ts';
import { REPEATS_WINDOW_MS, Repeats } from './repeats.ts';

/** Where the lines go. One call at a time. */
export interface AuditFile {
  /**
   * Also after a failure, or to find what somebody else has put in its place. Resolves with the end of the text
   * that is there, some lines of it. Rejects with what the system says.
   */
  open(): Promise<string>;
  /** Likewise, of what was put aside last; empty where nothing is. */
  endOfAside(): Promise<string>;
  readonly sizeBytes: number;
  /** Puts the file aside and begins another one. Where it fails, the file is to be opened again. */
  rotate(): Promise<void>;
  /** Whole lines. Resolves when the system has them; `isSynced`: when they are on disk. */
  append(text: string, isSynced: boolean): Promise<void>;
  close(): Promise<void>;
}

export interface AuditTrailOptions {
  readonly file: AuditFile;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names of the server, for each record. */
  readonly node: string;
  readonly datacenter: string;
  readonly rotateBytes: number;
  /** `asked` records are made, and everything is on disk before it counts as written. */
  readonly isRequired: boolean;
}

/** So many records wait; what comes beyond them is lost. */
const WAITING_MAX = 10_000;
/** So many are written at once. */
const BATCH_MAX = 500;
/** Between two tries while nobody waits for one. */
const RETRY_MS = 1_000;
/** Between two lines that say that it fails, and two tries to put a file aside. */
const COMPLAINT_MS = 60_000;
/** A disk that takes longer is as good as none to whoever waits. */
const RECORDED_MS = 5_000;

/** What the system says of a disk that is full, or of a share of it that is used up. */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

/** Of refusals that are of very many kinds no more is said than how many they were. */
const REFUSED: AuditRecord = { event: 'answered', outcome: 'refused' };

interface Waiting {
  readonly sinceMs: number;
  readonly fields: Fields;
  readonly settle: ((failure: unknown) => void) | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** A record that a call wrote, or perhaps did not. */
interface Tried {
  readonly link: string;
  /** Undefined for those that begin a file or a run of the server. */
  readonly waiting: Waiting | undefined;
}

export interface AuditFigures {
  readonly written: number;
  readonly lost: number;
  readonly isFailing: boolean;
}

export class AuditTrail {
  readonly isRequired: boolean;
  readonly #options: AuditTrailOptions;
  readonly #repeats = new Repeats<AuditRecord>();
  readonly #waiting: Waiting[] = [];
  /** Of the last record that is known to be written. */
  #link = FIRST_LINK;
  /** Those of the last call, behind that one. */
  #tried: readonly Tried[] = [];
  #isOpen = false;
  #writing: Promise<void> | undefined;
  #isRetryDue = false;
  #isClosed = false;
  #retryAtMs = 0;
  #complainAtMs = 0;
  #rotateAtMs = 0;
  #written = 0;
  #lost = 0;
  /** Lost since a record said so. */
  #untold = 0;
  /** Of these, what the last call said, if it came to be written. */
  #perhapsTold = 0;

  constructor(options: AuditTrailOptions) {
    this.#options = options;
    this.isRequired = options.isRequired;
  }

  /** Opens the file. Rejects with what the system says; where only room is lacking, it goes on and waits for some. */
  async open(): Promise<void> {
    try {
      await this.#open();
    } catch (cause) {
      if (!FULL.has((cause as { readonly code?: unknown }).code)) throw cause;
      this.#failed(cause);
      this.#tryLater();
    }
  }

  get figures(): AuditFigures {
    const nowMs = this.#options.clock.monotonicMs();
    const isLate = nowMs - (this.#waiting[0]?.sinceMs ?? nowMs) > RECORDED_MS;
    return { written: this.#written, lost: this.#lost, isFailing: !this.#isOpen || isLate };
  }

  /** Writes the record when it is its turn; nobody waits for it. */
  record(record: AuditRecord): void {
    this.#add(record, undefined);
  }

  /** Resolves when the record is written. Rejects where it cannot be, or not in time: then it may come to be there. */
  recorded(record: AuditRecord): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve, reject) => {
      const late = new Error(`the disk took more than ${RECORDED_MS / 1_000} s`);
      const timer = clock.after(RECORDED_MS, () => reject(late));
      this.#add(record, (failure) => {
        timer.cancel();
        if (failure === undefined) resolve();
        else reject(failure);
      });
    });
  }

  /** The first of its kind at once, and of those that come within a minute how many they were. */
  recordRefusal(kind: string, record: AuditRecord): void {
    if (this.#repeats.isEmpty)
      this.#options.clock.after(REPEATS_WINDOW_MS, () => this.#endWindow());
    if (this.#repeats.admit(kind, record)) this.record(record);
  }

  /** Goes on with the file that stands under its name by now. Never rejects. */
  async reopen(): Promise<void> {
    await this.#idle();
    this.#isOpen = false;
    this.#retryAtMs = 0;
    this.#start();
  }

  /** Writes what waits, once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endWindow();
    this.#retryAtMs = 0;
    this.#start();
    await this.#idle();
    await this.#options.file.close();
  }

  /** The end of one writing may be the beginning of the next one. */
  async #idle(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #endWindow(): void {
    for (const { last = REFUSED, count } of this.#repeats.take()) {
      this.record({ ...last, repeated: count });
    }
  }

  #add(record: AuditRecord, settle: Waiting['settle']): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.#lose(1);
      settle?.(new Error('too many records of the audit log wait'));
      return;
    }
    const sinceMs = this.#options.clock.monotonicMs();
    this.#waiting.push({ sinceMs, fields: this.#fieldsOf(record), settle });
    this.#start();
  }

  #fieldsOf({ event, ...rest }: AuditRecord): Fields {
    const { clock, node, datacenter } = this.#options;
    const time = new Date(clock.wallMs()).toISOString();
    return { v: 1, time, event, node, at: datacenter, ...rest };
  }

  #start(): void {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      // Somebody came while it ended.
      if (this.#isAwaited) this.#start();
      else if (this.#waiting.length > 0 || !this.#isOpen) this.#tryLater();
    });
  }

  /** Until nothing waits, or it fails. Never rejects. */
  async #writeAll(): Promise<void> {
    // What is added in this turn goes into the first piece.
    await Promise.resolve();
    while (this.#waiting.length > 0 || !this.#isOpen) {
      if (!this.#isAwaited && this.#options.clock.monotonicMs() < this.#retryAtMs) return;
      const batch = this.#waiting.slice(0, BATCH_MAX);
      try {
        if (!this.#isOpen) await this.#open();
        else await this.#write(batch);
      } catch (cause) {
        this.#failed(cause);
        return;
      }
    }
  }

  async #open(): Promise<void> {
    const { file, logger } = this.#options;
    const { link: found, isTorn, separator } = endOf(await file.open());
    this.#wasWritten(found);
    this.#link = await this.#linkBehind(found);
    const torn = isTorn ? ({ torn: true } as const) : {};
    const begun = this.#fieldsOf({ event: 'begun', ...torn, previous: this.#link });
    await this.#append([{ fields: begun, waiting: undefined }], separator);
    if (this.#complainAtMs > 0) logger.info({}, 'the audit log is written again');
    this.#complainAtMs = 0;
    this.#isOpen = true;
  }

  /**
   * What the next record is linked with, in a file whose last record has the link `found`. Where this server has
   * written another one last, somebody has taken records out, or put another file in its place: it goes on behind its
   * own, so that a check shows that.
   */
  async #linkBehind(found: string | undefined): Promise<string> {
    if (found === undefined) return await this.#linkBefore();
    if (found === this.#link || this.#link === FIRST_LINK) return found;
    this.#options.logger.error({}, 'the audit log does not end with what was written last');
    return this.#link;
  }

  /** Of a file without a record: a server may have ended when it had put one aside, and not begun the next one. */
  async #linkBefore(): Promise<string> {
    if (this.#link !== FIRST_LINK) return this.#link;
    // Who rotates by another tool may have something there that is not for this server.
    const aside = await this.#options.file.endOfAside().catch(() => '');
    return lastLinkIn(aside) ?? FIRST_LINK;
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { file, clock, rotateBytes } = this.#options;
    const isFull = file.sizeBytes >= rotateBytes && clock.monotonicMs() >= this.#rotateAtMs;
    if (isFull) await this.#rotate();
    await this.#append(batch.map((waiting) => ({ fields: waiting.fields, waiting })));
  }

  /** Where it cannot be put aside, the file grows on: what is recorded is worth more than its size. */
  async #rotate(): Promise<void> {
    const { file, clock, logger } = this.#options;
    try {
      await file.rotate();
    } catch (cause) {
      this.#rotateAtMs = clock.monotonicMs() + COMPLAINT_MS;
      logger.error({ cause: messageOf(cause) }, 'the audit log cannot be put aside, and grows on');
      await this.#open();
      return;
    }
    const continued = this.#fieldsOf({ event: 'continued', previous: this.#link });
    await this.#append([{ fields: continued, waiting: undefined }]);
  }

  /** The first of them says what was lost until now. */
  async #append(
    all: readonly { readonly fields: Fields; readonly waiting: Waiting | undefined }[],
    start = '',
  ): Promise<void> {
    const { file, isRequired } = this.#options;
    const lost = this.#untold;
    const tried: Tried[] = [];
    let text = start;
    for (const { fields, waiting } of all) {
      const isFirst = tried.length === 0;
      const said = isFirst && lost > 0 ? { ...fields, lost } : fields;
      const { line, link } = linked(tried.at(-1)?.link ?? this.#link, said);
      text += `${line}\n`;
      tried.push({ link, waiting });
    }
    this.#tried = tried;
    this.#perhapsTold = lost;
    await file.append(text, isRequired);
    this.#wasWritten(tried.at(-1)?.link);
  }

  /** Of those that were tried, all up to the one with that link are there. */
  #wasWritten(link: string | undefined): void {
    const count = this.#tried.findIndex((each) => each.link === link) + 1;
    const there = new Set(this.#tried.slice(0, count).map(({ waiting }) => waiting));
    this.#tried = [];
    if (count === 0) return;
    this.#link = link ?? this.#link;
    this.#untold -= this.#perhapsTold;
    const rest = this.#waiting.filter((each) => !there.has(each));
    this.#waiting.splice(0, this.#waiting.length, ...rest);
    there.delete(undefined);
    this.#written += there.size;
    for (const waiting of there) waiting?.settle?.(undefined);
  }

  /** Those who wait are told; the others wait on for the next try, which finds out what came to be written. */
  #failed(cause: unknown): void {
    const { clock, logger } = this.#options;
    this.#isOpen = false;
    this.#retryAtMs = clock.monotonicMs() + RETRY_MS;
    const awaited = this.#waiting.filter(({ settle }) => settle !== undefined);
    const others = this.#waiting.filter(({ settle }) => settle === undefined);
    this.#waiting.splice(0, this.#waiting.length, ...others);
    for (const { settle } of awaited) settle?.(cause);
    if (clock.monotonicMs() < this.#complainAtMs) return;
    this.#complainAtMs = clock.monotonicMs() + COMPLAINT_MS;
    const waiting = this.#waiting.length;
    const fields = { cause: messageOf(cause), waiting, lost: this.#lost };
    logger.error(fields, 'the audit log cannot be written');
  }

  get #isAwaited(): boolean {
    return this.#waiting.some(({ settle }) => settle !== undefined);
  }

  #tryLater(): void {
    if (this.#isRetryDue || this.#isClosed) return;
    this.#isRetryDue = true;
    this.#options.clock.after(RETRY_MS, () => {
      this.#isRetryDue = false;
      if (!this.#isClosed) this.#start();
    });
  }

  #lose(count: number): void {
    this.#lost += count;
    this.#untold += count;
  }
}

/** Where the records go on behind this end of a file. Throws where it is the end of something else. */
function endOf(tail: string): {
  readonly link: string | undefined;
  readonly isTorn: boolean;
  /** What makes the next record a line of its own. */
  readonly separator: string;
} {
  const lines = tail.split('\n');
  const behind = lines.findLastIndex((line) => linkIn(line) !== undefined) + 1;
  const rest = lines.slice(behind).filter((line) => line !== '');
  const isOurs = behind > 0 || rest.every(isPiece);
  if (!isOurs) throw new Error('the file holds something else than an audit log');
  const link = behind === 0 ? undefined : linkIn(lines[behind - 1] as string);
  const isEnded = tail === '' || tail.endsWith('\n');
  return { link, isTorn: rest.length > 0, separator: isEnded ? '' : '\n' };
}

/** What a server leaves behind that is ended in the middle of a record, or a machine that is. */
function isPiece(line: string): boolean {
  return isBeginning(line) || /^\0+$/.test(line);
}

/** Whatever else is there. */
function lastLinkIn(tail: string): string | undefined {
  return tail
    .split('\n')
    .map(linkIn)
    .findLast((link) => link !== undefined);
}
