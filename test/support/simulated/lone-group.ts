// A group of one node on whatever store and machine a test has. Its time stands: whoever is alone waits
// for no tick. What has no delay needs no time, and comes with the next turn of the event loop.

import { writeFounding } from '../../../cluster/log/cluster-identity.ts';
import type { DurableLog } from '../../../cluster/log/durable-log.ts';
import { HARD_STATE_KEY } from '../../../cluster/log/log-entry.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Kv } from '../../../cluster/platform/kv.ts';
import { encodeMembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type { GroupLimits } from '../../../cluster/replica/group-limits.ts';
import type { GroupReplica } from '../../../cluster/replica/group-replica.ts';
import { openRaftReplica } from '../../../cluster/replica/raft-replica.ts';
import type { Machine } from '../../../cluster/replica/replica.ts';
import { FakeClock } from '../fake-clock.ts';
import { FakeRandom } from '../fake-random.ts';

export interface LoneGroupOptions<Outcome> {
  /** Founded by node 1, or of a release that knew no groups. */
  readonly log: DurableLog;
  readonly machine: Machine<Outcome>;
  readonly onFatal: (cause: Error) => void;
  readonly limits?: Partial<GroupLimits>;
}

/** Founds a group of node 1 where the store of the log is empty. */
export async function foundAlone(kv: Kv, context: Uint8Array = NO_CONTEXT): Promise<void> {
  if (kv.get(HARD_STATE_KEY) !== undefined) return;
  const changes = [{ kind: 'add-voter' as const, node: 1 }];
  const payloads = [encodeMembershipChange({ transition: 'auto', changes, context })];
  await writeFounding(kv, { clusterId: 'a-cluster', payloads });
}

const NO_CONTEXT = new Uint8Array(0);

/** Turns of the event loop after which a node that does not lead by then never will. */
const TURNS_MAX = 200;

/** Resolves when it leads and has applied what it has, or has failed. */
export async function openLoneGroup<Outcome>(
  options: LoneGroupOptions<Outcome>,
): Promise<GroupReplica<Outcome>> {
  const silent = (): void => undefined;
  let hasFailed = false;
  const replica = openRaftReplica<Outcome>({
    ...options,
    nodeId: 1,
    send: silent,
    sendSnapshot: () => Promise.reject(new Error('there is nobody')),
    clock: standingClock(),
    random: new FakeRandom(),
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    onFatal: (cause) => {
      hasFailed = true;
      options.onFatal(cause);
    },
  });
  const isReady = (): boolean => {
    const { standing, appliedIndex, commitIndex, lastIndex } = replica.status();
    const isThrough = appliedIndex === lastIndex && commitIndex === lastIndex;
    return hasFailed || (standing === 'leader' && isThrough);
  };
  for (let turns = 0; turns < TURNS_MAX && !isReady(); turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  return replica;
}

function standingClock(): Clock {
  const clock = new FakeClock();
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs(),
    after: (delayMs, action) => {
      if (delayMs > 0) return clock.after(delayMs, action);
      const handle = setImmediate(action);
      return { cancel: () => clearImmediate(handle) };
    },
  };
}
