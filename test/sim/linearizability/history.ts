// The record of a run: one JSON line for each call and each return. Promises to refuse a history
// that breaks the rules (one open operation a client, unknown retires the client, time never runs
// backwards). Leaves the meaning of `f`, `arg` and `value` to the caller's decoder.
import type { Operation, Seen } from './model.ts';
import { unknownOutput } from './model.ts';

export interface CallEvent {
  readonly ev: 'call';
  readonly t: number;
  /** Time of one process's monotonic clock, for all clients the same clock. */
  readonly mono: number;
  readonly client: number;
  readonly op: number;
  readonly dc: string;
  readonly node: string;
  readonly f: string;
  readonly key: string;
  readonly arg?: unknown;
  readonly cas?: number;
  readonly idem?: string;
  /** Present on reads; only 'linearizable' ones can be checked by order alone. */
  readonly read?: string;
}

export interface ReturnEvent {
  readonly ev: 'ret';
  readonly t: number;
  readonly mono: number;
  readonly client: number;
  readonly op: number;
  /** 'fail' only when it is proved that nothing happened; when in doubt it is 'unknown'. */
  readonly status: 'ok' | 'fail' | 'unknown';
  readonly code?: number;
  readonly index?: number;
  readonly value?: unknown;
}

export type HistoryEvent = CallEvent | ReturnEvent;

/** What a decoder makes of an operation; 'skip' leaves it out, as a proved failure mostly is. */
export type Decoded<Input, Output> =
  | { readonly input: Input; readonly output: Seen<Output> }
  | 'skip';

/** One line for each event, each ended by a newline. */
export function writeHistory(events: readonly HistoryEvent[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join('');
}

/** @throws Error naming the line that is not an event or breaks a rule. */
export function readHistory(text: string): readonly HistoryEvent[] {
  const events: HistoryEvent[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() !== '') events.push(parseEvent(line, i + 1));
  }
  requireRules(events);
  return events;
}

/** @throws Error naming the event (counted from 1) that breaks a rule. */
export function requireRules(events: readonly HistoryEvent[]): void {
  const openByClient = new Map<number, number>();
  const retired = new Set<number>();
  const ops = new Set<number>();
  let mono = Number.NEGATIVE_INFINITY;
  for (const [i, event] of events.entries()) {
    const { client, op } = event;
    const refuse = (why: string): never => {
      throw new Error(`event ${i + 1} (client ${client}, op ${op}): ${why}`);
    };
    if (event.mono < mono) refuse(`time ${event.mono} is before ${mono}`);
    mono = event.mono;
    if (event.ev === 'call') {
      if (retired.has(client)) refuse('the client retired after an unknown result');
      if (openByClient.has(client)) refuse(`op ${openByClient.get(client)} is still open`);
      if (ops.has(op)) refuse('the op was used before');
      ops.add(op);
      openByClient.set(client, op);
    } else {
      if (openByClient.get(client) !== op) refuse('the return has no open call');
      openByClient.delete(client);
      if (event.status === 'unknown') retired.add(client);
    }
  }
}

/**
 * Pairs calls with returns. A call that never returned counts as unknown. Reads of a weaker level
 * are left out; they are checked by replay at their index.
 *
 * @param decode is given no return event when the result is unknown, and must then answer with an
 * unknown output or 'skip'.
 */
export function operationsOf<Input, Output>(
  events: readonly HistoryEvent[],
  decode: (call: CallEvent, known: ReturnEvent | undefined) => Decoded<Input, Output>,
): readonly Operation<Input, Output>[] {
  requireRules(events);
  const returns = new Map<number, ReturnEvent>();
  for (const event of events) if (event.ev === 'ret') returns.set(event.op, event);
  const operations: Operation<Input, Output>[] = [];
  for (const call of events) {
    if (call.ev !== 'call' || (call.read ?? 'linearizable') !== 'linearizable') continue;
    const ret = returns.get(call.op);
    const known = ret === undefined || ret.status === 'unknown' ? undefined : ret;
    const decoded = decode(call, known);
    if (decoded === 'skip') continue;
    const output = known === undefined ? unknownOutput : decoded.output;
    const returnTime = known?.mono ?? Number.POSITIVE_INFINITY;
    const { client, mono: callTime } = call;
    operations.push({ client, callTime, returnTime, input: decoded.input, output });
  }
  return operations;
}

function parseEvent(line: string, lineNumber: number): HistoryEvent {
  const value: unknown = parseJson(line, lineNumber);
  if (!isEvent(value)) throw new Error(`line ${lineNumber} is not an event: ${line}`);
  return value;
}

function parseJson(line: string, lineNumber: number): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new Error(`line ${lineNumber} is not JSON: ${line}`, { cause });
  }
}

function isEvent(value: unknown): value is HistoryEvent {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Readonly<Record<string, unknown>>;
  if (!['t', 'mono', 'client', 'op'].every((name) => Number.isFinite(fields[name]))) return false;
  if (fields.ev === 'ret') return ['ok', 'fail', 'unknown'].includes(String(fields.status));
  const texts = ['dc', 'node', 'f', 'key'].every((name) => typeof fields[name] === 'string');
  return fields.ev === 'call' && texts;
}
