// Which cluster a node belongs to, whom it lets found one with it, and whether it may take part: rows
// beside the log, and the one batch by which a group begins. What the texts mean, and when they may be
// written, is the member's matter.

import { assert } from '../base/assert.ts';
import type { Kv, KvReader } from '../platform/kv.ts';
import { LogDamage } from './log-damage.ts';
import {
  CLUSTER_KEY,
  decodeHardState,
  decodeText,
  ENTRY_KEYS_END,
  encodeEntry,
  encodeHardState,
  encodeText,
  entryKey,
  HARD_STATE_KEY,
  type HardState,
  LOG_ORIGIN,
  type LogEntry,
  nextEntry,
  PROMISE_KEY,
  QUARANTINE_KEY,
} from './log-entry.ts';

/** The id of the cluster that this node belongs to; undefined before it does. */
export function readClusterId(kv: KvReader): string | undefined {
  return textAt(kv, CLUSTER_KEY, 'the id of the cluster');
}

/** Once, by a node that joins; a founder uses writeFounding. */
export async function writeClusterId(kv: Kv, clusterId: string): Promise<void> {
  requireNoCluster(kv, clusterId);
  await kv.write([{ type: 'put', key: CLUSTER_KEY, value: encodeText(clusterId) }]);
}

/** The promise that this node has given and not been released from. */
export function readPromise(kv: KvReader): string | undefined {
  return textAt(kv, PROMISE_KEY, 'the promise to a founder');
}

/** Undefined takes it back. */
export async function writePromise(kv: Kv, promise: string | undefined): Promise<void> {
  await kv.write([
    promise === undefined
      ? { type: 'del', key: PROMISE_KEY }
      : { type: 'put', key: PROMISE_KEY, value: encodeText(promise) },
  ]);
}

/** Why this node takes no part any more; undefined while it does. */
export function readQuarantine(kv: KvReader): string | undefined {
  return textAt(kv, QUARANTINE_KEY, 'why the node is quarantined');
}

/** For good. When nothing else writes to the store any more. */
export async function writeQuarantine(kv: Kv, why: string): Promise<void> {
  await kv.write([{ type: 'put', key: QUARANTINE_KEY, value: encodeText(why) }]);
}

/** What a group begins with; the same bytes on every node that founds it. */
export interface Founding {
  readonly clusterId: string;
  /** Payloads of membership entries 1 to N, all of term 1. */
  readonly payloads: readonly Uint8Array[];
}

/** Of the entries by which a group begins; every election is of a later one. */
export const FOUNDING_TERM = 1;

/**
 * Writes log, hard state and cluster id as one batch, which also fulfils this node's promise. To be done
 * before the log is opened. Rejects with LogDamage where a group began before.
 */
export async function writeFounding(kv: Kv, { clusterId, payloads }: Founding): Promise<void> {
  requireNoCluster(kv, clusterId);
  await requireNoEntries(kv);
  const entries: LogEntry[] = [];
  for (const payload of payloads) {
    entries.push(nextEntry(entries.at(-1) ?? LOG_ORIGIN, FOUNDING_TERM, payload, 'membership'));
  }
  assert(entries.length > 0, 'somebody founds a group');
  const hashBefore = (place: number): Uint8Array => (entries[place - 1] ?? LOG_ORIGIN).hash;
  await kv.write([
    ...entries.map((entry, place) => ({
      type: 'put' as const,
      key: entryKey(entry.index),
      value: encodeEntry(entry, hashBefore(place)),
    })),
    { type: 'put', key: HARD_STATE_KEY, value: encodeHardState(foundingState(kv, entries.length)) },
    { type: 'put', key: CLUSTER_KEY, value: encodeText(clusterId) },
    { type: 'del', key: PROMISE_KEY },
  ]);
}

/** A term or vote that this node has promised already stays. Where something was committed, a group began. */
function foundingState(kv: KvReader, commit: number): HardState {
  const value = kv.get(HARD_STATE_KEY);
  const before = value === undefined ? undefined : decodeHardState(value);
  if (before !== undefined && before.commit > 0) {
    throw new LogDamage(1, `it has no entries, but ${before.commit} was committed`);
  }
  if (before === undefined || before.term < FOUNDING_TERM) {
    return { term: FOUNDING_TERM, vote: 0, commit };
  }
  return { ...before, commit };
}

function requireNoCluster(kv: KvReader, clusterId: string): void {
  const before = readClusterId(kv);
  assert(before === undefined, 'a node belongs to one cluster for good', { before, clusterId });
}

async function requireNoEntries(kv: KvReader): Promise<void> {
  const range = { from: entryKey(0), to: ENTRY_KEYS_END, limit: 1 };
  for await (const rows of kv.rows(range)) {
    assert(rows.length === 0, 'a group begins with an empty log');
  }
}

function textAt(kv: KvReader, key: Uint8Array, what: string): string | undefined {
  const value = kv.get(key);
  return value === undefined ? undefined : decodeText(value, what);
}
