// Servers that a test asks by their numbers, each question as the harness asks it.

import { decodeAnswer } from '../../src/node/calls/call-frames.ts';
import type { Call } from '../../src/service/call.ts';
import type {
  OperationInput,
  OperationName,
  OperationOutput,
} from '../../src/service/operations.ts';
import { ServiceGroup } from '../support/state-and-service/service-group.ts';
import { authMethods, CALL, SETTINGS } from './harness.ts';

export class AskedGroup extends ServiceGroup {
  /** Runs it at a server; the time moves on until it is settled. */
  at<Name extends OperationName>(
    node: number,
    name: Name,
    input: OperationInput<Name>,
    call: Partial<Call> = {},
  ): Promise<OperationOutput<Name>> {
    return this.settled(this.server(node).door.run(name, input, { ...CALL, ...call }));
  }

  /** Server 2 sends it, and it is held up on its way. Gives what lets it arrive, and then the answer. */
  async heldUp<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call: Partial<Call>,
  ): Promise<() => Promise<OperationOutput<Name>>> {
    this.faults.push('late');
    void this.server(2)
      .door.run(name, input, { ...CALL, ...call })
      .catch(() => undefined);
    while (this.late.length === 0) await turn();
    return async () => {
      const bytes = await this.settled(this.late[0]!());
      return decodeAnswer(bytes) as OperationOutput<Name>;
    };
  }

  /** The applied state of every server is the same. */
  digests(): ReadonlySet<string> {
    return new Set(this.servers.map(({ machine }) => machine.digests().all));
  }
}

/** Three servers, the first one leads and has made the built-ins. */
export async function groupOfThree(): Promise<AskedGroup> {
  const group = new AskedGroup({ count: 3, settings: SETTINGS, authMethods });
  group.lead(1);
  await group.settled(Promise.resolve(group.server(1).leadership.reign()));
  return group;
}

/** Of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
