// Reads the two published history formats: etcd registers as logged by Jepsen, and get/put/append
// maps. Promises one event order as time (the line number). Leaves finding the files to the test.
import type { KeyValueInput } from './key-value-model.ts';
import type { Operation, Seen } from './model.ts';
import { unknownOutput } from './model.ts';
import type { RegisterInput, RegisterOutput } from './register-model.ts';

interface LogLine<Input, Output> {
  readonly client: number;
  readonly event: 'call' | 'return' | 'unknown' | 'drop';
  readonly input: Input;
  readonly output: Output;
}

/** @throws Error naming a line that is not understood. */
export function parseRegisterLog(
  text: string,
): readonly Operation<RegisterInput, RegisterOutput>[] {
  return pair(linesOf(text).map(registerLine));
}

/** @throws Error naming a line that is not understood. */
export function parseKeyValueLog(text: string): readonly Operation<KeyValueInput, string>[] {
  return pair(linesOf(text).map(keyValueLine));
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function registerLine(line: string): LogLine<RegisterInput, RegisterOutput> {
  const match = /^INFO\s+jepsen\.util - (\d+)\s+:(\w+)\s+:(\w+)\s+(.+?)\s*$/.exec(line);
  if (match === null) throw new Error(`not a register line: ${line}`);
  const [, client, type, f, argument] = match as unknown as readonly string[];
  const input = registerInput(f!, argument!);
  const value = argument === 'nil' ? null : argument!;
  const done: RegisterOutput = f === 'read' ? { kind: 'value', value } : { kind: 'done' };
  const output: RegisterOutput = type === 'fail' ? { kind: 'mismatch' } : done;
  // A read that timed out shows nothing and changes nothing.
  const timedOutRead = argument === ':timed-out' && f === 'read';
  return { client: Number(client), event: timedOutRead ? 'drop' : eventOf(type!), input, output };
}

function registerInput(f: string, argument: string): RegisterInput {
  const key = 'register';
  if (f === 'read') return { kind: 'read', key };
  if (f === 'write') return { kind: 'write', key, value: argument };
  const [, expected, value] = /^\[(\d+) (\d+)\]$/.exec(argument) ?? [];
  return { kind: 'cas', key, expected: expected ?? '', value: value ?? '' };
}

function eventOf(type: string): LogLine<unknown, unknown>['event'] {
  if (type === 'invoke') return 'call';
  return type === 'info' ? 'unknown' : 'return';
}

function keyValueLine(line: string): LogLine<KeyValueInput, string> {
  const pattern =
    /^\{:process (\d+), :type :(invoke|ok), :f :(get|put|append), :key "(.*?)", :value (?:nil|"(.*)")\}$/;
  const match = pattern.exec(line.trim());
  if (match === null) throw new Error(`not a key-value line: ${line}`);
  const kind = match[3] as KeyValueInput['kind'];
  const value = match[5] ?? '';
  const input = { kind, key: match[4]!, value: kind === 'get' ? '' : value };
  return {
    client: Number(match[1]),
    event: eventOf(match[2]!),
    input,
    output: kind === 'get' ? value : '',
  };
}

function pair<Input, Output>(
  lines: readonly LogLine<Input, Output>[],
): readonly Operation<Input, Output>[] {
  const open = new Map<number, { readonly input: Input; readonly callTime: number }>();
  const operations: Operation<Input, Output>[] = [];
  const close = (client: number, returnTime: number, output: Seen<Output>): void => {
    const call = open.get(client);
    if (call === undefined) throw new Error(`line ${returnTime + 1}: no open call of ${client}`);
    open.delete(client);
    operations.push({ client, returnTime, output, ...call });
  };
  for (const [i, { client, event, input, output }] of lines.entries()) {
    if (event === 'call') open.set(client, { input, callTime: i });
    else if (event === 'drop') open.delete(client);
    else if (event === 'return') close(client, i, output);
    else close(client, Number.POSITIVE_INFINITY, unknownOutput);
  }
  for (const client of [...open.keys()]) close(client, Number.POSITIVE_INFINITY, unknownOutput);
  return operations;
}
