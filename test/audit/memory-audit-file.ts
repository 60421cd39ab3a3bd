// An audit log in memory, whose disk a test fills.

import type { AuditFile } from '../../src/audit/audit-trail.ts';

export class MemoryAuditFile implements AuditFile {
  text = '';
  /** Those that were put aside, the newest first. */
  readonly aside: string[] = [];
  isFull = false;
  /** Of the next text only so many characters are taken, and then it fails. */
  cutAt: number | undefined;
  readonly synced: boolean[] = [];

  get sizeBytes(): number {
    return this.text.length;
  }

  open(): Promise<string> {
    return this.isFull ? Promise.reject(new Error('no room')) : Promise.resolve(this.text);
  }

  async endOfAside(): Promise<string> {
    return this.aside[0] ?? '';
  }

  async append(text: string, isSynced: boolean): Promise<void> {
    this.text += text.slice(0, this.isFull ? 0 : this.cutAt);
    const isCut = this.isFull || this.cutAt !== undefined;
    this.cutAt = undefined;
    if (isCut) throw new Error('no room');
    this.synced.push(isSynced);
  }

  async rotate(): Promise<void> {
    this.aside.unshift(this.text);
    this.text = '';
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  get lines(): readonly string[] {
    return this.text.split('\n').slice(0, -1);
  }

  /** Of whole records, what they say. */
  get records(): readonly Record<string, unknown>[] {
    return this.lines
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }
}
