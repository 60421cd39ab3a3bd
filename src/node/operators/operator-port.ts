// The group of servers as operators see it: what the member knows, in the service's words, and what it
// is told to do, with refusals that say whether anything was done.

import type {
  AutopilotState,
  Member,
  MemberView,
  ServerHealth,
} from '../../../cluster/member/group-member.ts';
import { addressText } from '../../../cluster/platform/net.ts';
import type { NodeId } from '../../../cluster/raft/node-id.ts';
import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import { ReplicaError } from '../../../cluster/replica/replica.ts';
import { AclError, invalid } from '../../acl/error.ts';
import type {
  ShownAutopilotState,
  ShownGroup,
  ShownServer,
} from '../../api/render/shown-operator.ts';
import type { Group } from '../../service/operators/operator-port.ts';
import { LeaderAway } from '../../service/remote.ts';
import type { LevelStatus } from '../reign/feature-level.ts';

type GroupMember = Pick<
  Member<unknown>,
  | 'members'
  | 'groupRecord'
  | 'status'
  | 'standing'
  | 'removeMember'
  | 'transferLeadership'
  | 'setAutopilot'
  | 'autopilotState'
>;

/** Shown indexes begin at 1, so that 0 means what it means everywhere: that there is nothing yet. */
const SHOWN_INDEX_OFFSET = 1;

/** What the member of this server knows and does. */
export function groupOf(member: GroupMember, level: () => LevelStatus): Group {
  return {
    servers: () => groupShownBy(member),
    autopilot: () => {
      const { autopilot, autopilotIndex } = member.groupRecord();
      return { settings: autopilot, index: autopilotIndex + SHOWN_INDEX_OFFSET };
    },
    autopilotState: () =>
      stateShown(
        refusing(() => member.autopilotState()),
        level(),
      ),
    remove: (id, requireAllowed) =>
      done(() => member.removeMember(nodeOf(member, id), requireAllowed)),
    transferLeadership: (id) => transfer(member, id),
    setAutopilot: (settings, ifIndex, requireAllowed) =>
      done(() =>
        member.setAutopilot(
          settings,
          ifIndex === undefined ? undefined : ifIndex - SHOWN_INDEX_OFFSET,
          requireAllowed,
        ),
      ),
  };
}

/** Whoever asks for it has done nothing wrong when the other server does not take over. */
async function transfer(member: GroupMember, id: string | undefined): Promise<void> {
  const others = member.members().filter(({ isVoter, isSelf }) => isVoter && !isSelf);
  if (others.length === 0) throw invalid('there is no other voter that could lead');
  const to = id === undefined ? undefined : nodeOf(member, id);
  try {
    await member.transferLeadership(to);
  } catch (error) {
    const isRefused = error instanceof GroupRefusal && error.code === 'refused';
    throw isRefused ? notTakenOver(error) : refusalOf(error);
  }
}

function notTakenOver(cause: GroupRefusal): AclError {
  return new AclError('unavailable', `leadership stays where it is: ${cause.message}`, { cause });
}

function groupShownBy(member: GroupMember): ShownGroup {
  const standing = member.standing();
  const term = standing.kind === 'member' ? standing.term : 0;
  return {
    servers: member.members().map((view) => ({
      ...shownOf(view),
      isHealthy: view.isAlive,
      lastTerm: term,
      stableSinceMs: undefined,
    })),
    appliedIndex: member.status().appliedIndex,
  };
}

function stateShown(
  { isHealthy, failureTolerance, servers }: AutopilotState,
  level: LevelStatus,
): ShownAutopilotState {
  return { isHealthy, failureTolerance, level, servers: servers.map(healthShown) };
}

function healthShown({ member, isHealthy, lastTerm, stableSinceMs }: ServerHealth): ShownServer {
  // 0 is what it says of a member that it has not looked at yet.
  const isKnown = stableSinceMs > 0;
  return {
    ...shownOf(member),
    isHealthy,
    lastTerm,
    stableSinceMs: isKnown ? stableSinceMs : undefined,
  };
}

function shownOf(view: MemberView): Omit<ShownServer, 'isHealthy' | 'lastTerm' | 'stableSinceMs'> {
  const { id, name, address, version, reads, isLeader, isVoter, isAlive } = view;
  const { lastContactMs, lastIndex } = view;
  return {
    id,
    name,
    address: addressText(address),
    version,
    reads,
    isLeader,
    isVoter,
    isAlive,
    lastContactMs,
    lastIndex,
  };
}

/** The number of a server that was a member a moment ago. */
function nodeOf(member: GroupMember, id: string): NodeId {
  const found = member.members().find((view) => view.id === id);
  if (found !== undefined) return found.node;
  const text = `id ${JSON.stringify(id)} was not found in the Raft configuration`;
  throw new AclError('update-target-missing', text);
}

async function done<Output>(act: () => Promise<Output>): Promise<Output> {
  try {
    return await act();
  } catch (error) {
    throw refusalOf(error);
  }
}

function refusing<Output>(look: () => Output): Output {
  try {
    return look();
  } catch (error) {
    throw refusalOf(error);
  }
}

/** What the group refuses, in the service's words. Anything else is a fault of ours. */
function refusalOf(error: unknown): unknown {
  if (error instanceof GroupRefusal) return REFUSAL_BY_CODE[error.code](error);
  if (!(error instanceof ReplicaError)) return error;
  if (error.code === 'outcome-unknown') {
    const text = `whether the group was changed is not known: ${error.message}`;
    return new AclError('outcome-unknown', text, { cause: error });
  }
  return new AclError('unavailable', `nothing was changed: ${error.message}`, { cause: error });
}

const REFUSAL_BY_CODE: Readonly<Record<GroupRefusal['code'], (refusal: GroupRefusal) => AclError>> =
  {
    'not-leader': (cause) => new LeaderAway({ cause }),
    'no-quorum': (cause) => new LeaderAway({ cause }),
    'change-in-flight': (cause) =>
      new AclError('unavailable', `nothing was changed: ${cause.message}`, { cause }),
    refused: (cause) => invalid(cause.message),
  };
