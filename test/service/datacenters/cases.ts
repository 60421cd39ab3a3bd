// What tests of the service in several datacenters share.

import { inspect } from 'node:util';
import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import type { AccessorId } from '../../../src/acl/ids.ts';
import {
  DatacenterAway,
  type Errand,
  type Federation,
} from '../../../src/service/datacenters/federation.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import { createHarness, type Harness } from '../harness.ts';

export const PAGE = { page: {} };

/** What may go wrong with the next errands, one each; afterwards they arrive. */
export type Fault = 'away' | 'no-leader' | 'lose-question' | 'lose-answer' | 'moved';

export interface Two {
  readonly primary: Harness;
  readonly secondary: Harness;
  readonly faults: Fault[];
  /** What came to the primary. */
  readonly arrived: Errand[];
  /** What it answered, as text. */
  readonly answers: string[];
}

/** dc1 is the primary, dc2 asks it. Their states are their own: nothing is replicated here. */
export async function twoDatacenters(more: Partial<Federation> = {}): Promise<Two> {
  const primary = await createHarness({}, { datacenters: () => ['dc1', 'dc2'], ...more });
  const faults: Fault[] = [];
  const arrived: Errand[] = [];
  const answers: string[] = [];
  const run = async (datacenter: string, errand: Errand): Promise<unknown> => {
    t.equal(datacenter, 'dc1');
    const fault = faults.shift();
    if (fault === 'away') throw new DatacenterAway('dc1', 'the line is cut');
    if (fault === 'no-leader') throw new LeaderAway();
    if (fault === 'lose-question') throw unknown();
    if (fault === 'moved')
      throw new AclError('not-primary', 'nothing was done: dc3 is the primary');
    arrived.push(errand);
    const answer = await primary.door.runForDatacenter(errand as never, 'dc2');
    answers.push(inspect(answer, { depth: 9 }));
    if (fault === 'lose-answer') throw unknown();
    return answer;
  };
  const secondary = await createHarness(
    { datacenter: 'dc2' },
    {
      datacenters: () => ['dc2', 'dc1'],
      primary: () => ({ datacenter: 'dc1', epoch: 3 }),
      run,
    },
  );
  return { primary, secondary, faults, arrived, answers };
}

export function unknown(): AclError {
  return new AclError('outcome-unknown', 'whether the write took effect is not known: lost');
}

/** Moves the time of the secondary on until it is settled. */
export async function settled<T>(
  { secondary }: Pick<Two, 'secondary'>,
  running: Promise<T>,
): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  running.then(end, end);
  while (!isOver) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (!isOver) secondary.clock.advance(50);
  }
  return running;
}

/** Of no token. */
export const ABSENT = '11111111-2222-4333-8444-555555555555' as AccessorId;

export function noFilter() {
  const none = { policy: undefined, role: undefined, serviceName: undefined };
  return { ...none, authMethod: undefined, authMethodNamespace: undefined, page: {} };
}
