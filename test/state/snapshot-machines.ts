// Machines that send each other their state, and what is compared of them.

import type { Command } from '../../src/state/commands/commands.ts';
import type { StateMachine } from '../../src/state/machine.ts';
import type { StateSnapshot } from '../../src/state/snapshot/snapshot-writer.ts';
import {
  aCommand,
  aPolicy,
  aToken,
  policyIdNumbered,
} from '../support/state-and-service/fixtures.ts';
import { BUILTINS, replaceableMachine } from '../support/state-and-service/machine-harness.ts';

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export async function chunksOf(snapshot: StateSnapshot): Promise<readonly Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of snapshot.chunks()) chunks.push(Uint8Array.from(chunk));
  await snapshot.close();
  return chunks;
}

/** What a machine has now, sent and taken in by another one. */
export async function installed(
  chunks: readonly Uint8Array[],
  into = replaceableMachine(),
): Promise<ReturnType<typeof replaceableMachine>> {
  const intake = await into.machine.beginInstall();
  for (const chunk of chunks) await intake.add(chunk);
  await intake.complete();
  await intake.adopt();
  into.followMachine();
  return into;
}

export const dumpOf = (
  { generations, machine }: ReturnType<typeof replaceableMachine>,
  number: number,
) => {
  if (generations.stores.size !== 1) throw new Error(`${generations.stores.size} stores are left`);
  void machine;
  return generations.stores.get(number)!.dump();
};

/** All that readers can learn without asking for single objects. */
export const factsOf = (machine: StateMachine): unknown => [
  machine.index(),
  machine.position(),
  machine.appliedIndex(),
  machine.totals(),
  machine.digests(),
  machine.bootstrapIndex(),
  hex(machine.groupRecord ?? new Uint8Array()),
];

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** No piece of it is like another. */
export function rulesOf(length: number): string {
  let rules = 'acl = "read"';
  for (let line = 0; rules.length < length; line += 1) rules += `\n# ${line}`;
  return rules.slice(0, length);
}

/** Some rows are larger than a chunk, if they are asked for. */
export async function largeMachine(
  tokenCount: number,
  ruleChars = 50,
): Promise<ReturnType<typeof replaceableMachine>> {
  const harness = replaceableMachine();
  await harness.one(BUILTINS);
  await harness.group(Buffer.from('who belongs to the group'));
  for (let number = 1; number <= 3; number += 1) {
    const rules = rulesOf(number * ruleChars);
    await harness.one({
      type: 'policy.set',
      presence: 'create',
      policy: aPolicy(number, { rules }),
    });
  }
  const commands: Command[] = [];
  for (let number = 1; number <= tokenCount; number += 1) {
    const token = aToken(number, { policies: [policyIdNumbered(1 + (number % 3))] });
    commands.push(aCommand({ type: 'token.set', presence: 'create-drawn', token }));
  }
  for (let at = 0; at < commands.length; at += 500)
    await harness.run(...commands.slice(at, at + 500));
  return harness;
}
