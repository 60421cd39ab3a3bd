// What must hold in a simulated group whatever happens, looked at while it happens: one leader a term, no
// promise before the disk has it, one sequence and one group record everywhere. Violations are
// collected, not thrown.

import {
  decodeEntry,
  decodeHardState,
  decodeWitness,
  entryKey,
  HARD_STATE_KEY,
  type LogEntry,
  START_KEY,
} from '../../../cluster/log/log-entry.ts';
import type { KvReader } from '../../../cluster/platform/kv.ts';
import type { Message } from '../../../cluster/raft/message.ts';
import type { AppliedEntry } from '../../../cluster/replica/replica.ts';

export interface CheckedNode {
  readonly id: number;
  readonly disk: KvReader;
}

export class GroupChecks {
  readonly violations: string[] = [];
  readonly #leaderByTerm = new Map<number, number>();
  readonly #hashByIndex = new Map<number, string>();
  readonly #recordByIndex = new Map<number, string>();
  /** What a leader has sent for a place: term of leader and index, to the entry's term. */
  readonly #sentTerms = new Map<string, number>();

  onSend(node: CheckedNode, message: Message): void {
    this.#checkPromise(node, message);
    this.#checkLeader(message);
  }

  onApply({ id, disk }: CheckedNode, entries: readonly AppliedEntry[]): void {
    for (const entry of entries) {
      this.#checkOneSequence(id, entry);
      this.#checkRecord(id, entry);
      if (disk.get(entryKey(entry.index)) === undefined) {
        this.violations.push(`${id} applies entry ${entry.index} before its own disk has it`);
      }
    }
  }

  /** A snapshot has brought these. */
  onAdopt({ id }: CheckedNode, entries: readonly LogEntry[]): void {
    for (const entry of entries) this.#checkOneSequence(id, entry);
  }

  #checkOneSequence(id: number, { index, hash }: LogEntry): void {
    const text = Buffer.from(hash).toString('hex');
    const known = this.#hashByIndex.get(index) ?? text;
    if (known !== text) this.violations.push(`${id} applies another entry at ${index}`);
    this.#hashByIndex.set(index, known);
  }

  #checkRecord(id: number, { index, groupRecord }: AppliedEntry): void {
    if (groupRecord === undefined) return;
    const text = Buffer.from(groupRecord).toString('hex');
    const known = this.#recordByIndex.get(index) ?? text;
    if (known !== text) this.violations.push(`${id} has another group record at ${index}`);
    this.#recordByIndex.set(index, known);
  }

  #checkLeader(message: Message): void {
    if (message.type !== 'append' && message.type !== 'heartbeat') return;
    const { from, term } = message;
    const known = this.#leaderByTerm.get(term) ?? from;
    if (known !== from) this.violations.push(`${known} and ${from} both lead term ${term}`);
    this.#leaderByTerm.set(term, from);
    if (message.type !== 'append') return;
    this.#sentTerms.set(`${term}/${message.prevIndex}`, message.prevTerm);
    for (const entry of message.entries) this.#sentTerms.set(`${term}/${entry.index}`, entry.term);
  }

  /** The disk knows what is synced at the moment when a promise leaves. */
  #checkPromise({ id, disk }: CheckedNode, message: Message): void {
    const value = disk.get(HARD_STATE_KEY);
    const { term, vote } = value === undefined ? { term: 0, vote: 0 } : decodeHardState(value);
    const broken = (what: string): void => {
      this.violations.push(`${id} sent ${message.type} of term ${message.term} before ${what}`);
    };
    if (message.type === 'vote-reply' && !message.rejected) {
      const isKept = term > message.term || (term === message.term && vote === message.to);
      if (!isKept) broken('its vote was on disk');
    }
    if (message.type !== 'append-reply' || message.rejection !== undefined) return;
    if (term < message.term) broken('its term was on disk');
    if (message.index === 0) return;
    const row = disk.get(entryKey(message.index));
    const start = disk.get(START_KEY);
    if (start !== undefined && decodeWitness(start).index >= message.index) return;
    // A later term may have replaced it since, in the same write even: the promise is late, not false.
    if (term > message.term) return;
    if (row === undefined) {
      broken(`entry ${message.index} was on disk`);
      return;
    }
    const entry = decodeEntry(row, message.index).entry;
    const sentTerm = this.#sentTerms.get(`${message.term}/${message.index}`);
    if (sentTerm !== undefined && sentTerm !== entry.term) {
      broken(`the leader's entry ${message.index} was on disk`);
    }
  }
}
