// What tests of the log and of lone groups share.

import { DurableLog } from '../../../cluster/log/durable-log.ts';
import { type LogEntry, nextEntry } from '../../../cluster/log/log-entry.ts';
import type { MembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import { encodeGroupContext, type MemberRecord } from '../../../cluster/replica/group-record.ts';
import type { MemoryKv } from '../../support/memory-kv.ts';

export const HARD_STATE = { term: 1, vote: 1, commit: 0 };

/** Entries with small payloads behind what the log has. */
export function entriesBehind(log: DurableLog, count: number, term = 1): readonly LogEntry[] {
  const entries: LogEntry[] = [];
  for (let each = 0; each < count; each += 1) {
    const previous = entries.at(-1) ?? log.last;
    entries.push(nextEntry(previous, term, Buffer.from(`payload ${previous.index + 1}`)));
  }
  return entries;
}

export async function logOf(kv: MemoryKv, count: number): Promise<DurableLog> {
  const log = await DurableLog.open(kv, undefined);
  await log.write({ entries: entriesBehind(log, count), hardState: HARD_STATE });
  return log;
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'hex');

export const NODE = 0xabcdef012345;

export function memberOf(number: number): MemberRecord {
  return {
    node: NODE + number,
    id: `11111111-2222-4333-8444-00000000000${number}`,
    name: `node-${number}`,
    address: { host: `10.0.0.${number}`, port: 8300 },
    httpAddress: number === 1 ? '' : `10.0.0.${number}:8500`,
    version: '0.1.0',
  };
}

export function memberRecord(node: number): MemberRecord {
  return { ...memberOf(1), node, name: `n${node}` };
}

export function adding(node: number): MembershipChange {
  const context = encodeGroupContext({ members: [memberRecord(node)] });
  return { transition: 'auto', changes: [{ kind: 'add-voter', node }], context };
}

export const payload = (text: string | number): Uint8Array => Buffer.from(String(text));
