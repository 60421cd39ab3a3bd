// What each question of an operator does at the server that answers it, once the right to it was found.

import { AclError, invalid } from '../../acl/error.ts';
import type { ShownServer } from '../../api/render/shown-operator.ts';
import type { Asker, MovingPrimary } from './moving-primary.ts';
import type {
  OperatorInput,
  OperatorName,
  OperatorOutput,
  ServerName,
} from './operator-operations.ts';
import type { Group } from './operator-port.ts';

/** What answers have at hand. */
export interface Around {
  readonly group: Group;
  readonly moving: MovingPrimary;
  readonly asker: Asker;
}

type Answer<Name extends OperatorName> = (
  around: Around,
  input: OperatorInput<Name>,
) => OperatorOutput<Name> | Promise<OperatorOutput<Name>>;

export const ANSWER_BY_NAME: { readonly [Name in OperatorName]: Answer<Name> } = {
  'raft-configuration': ({ group }) => group.servers(),
  'raft-remove-peer': async ({ group, asker }, { server }) => {
    await group.remove(knownServer(group, server).id, asker.requireAllowed);
    return 'done' as const;
  },
  'raft-transfer-leader': async ({ group }, { id }) => {
    await group.transferLeadership(id === undefined ? undefined : transferTarget(group, id));
    return 'done' as const;
  },
  'autopilot-configuration': ({ group }) => group.autopilot(),
  'autopilot-set-configuration': ({ group, asker }, { settings, ifIndex }) =>
    group.setAutopilot(settings, ifIndex, asker.requireAllowed),
  'autopilot-state': ({ group }) => group.autopilotState(),
  primary: ({ moving }) => moving.status(),
  'primary-move': ({ moving, asker }, wish) => moving.move(wish, asker),
  divergence: ({ moving }, { limit }) => moving.divergence(limit),
  'divergence-resubmit': ({ moving, asker }, wish) => moving.resubmit(wish, asker),
  'divergence-take': ({ moving, asker }, wish) => moving.take(wish, asker),
  'divergence-discard': ({ moving, asker }, { position }) => moving.discard(position, asker),
};

/** So much of what the caller sent is repeated. */
const GIVEN_MAX = 128;

/**
 * Ids in any letter case. Throws 'update-target-missing' in the words that deployed clients know, and 'invalid'
 * where a server took over the address of one that is gone: it would be left to chance who is meant.
 */
function knownServer(group: Group, name: ServerName): ShownServer {
  const { servers } = group.servers();
  const isMeant = (server: ShownServer): boolean =>
    'id' in name
      ? server.id.toLowerCase() === name.id.toLowerCase()
      : server.address === name.address;
  const [found, ...others] = servers.filter(isMeant);
  if (found !== undefined && others.length > 0) {
    const all = [found, ...others].map(({ name, id }) => `${name} (${id})`).join(', ');
    throw invalid(`${found.address} is the address of ${all}: name the server by its id`);
  }
  if (found !== undefined) return found;
  const [kind, given] = 'id' in name ? ['id', name.id] : ['address', name.address];
  const shown = JSON.stringify(given.slice(0, GIVEN_MAX));
  const text = `${kind} ${shown} was not found in the Raft configuration`;
  throw new AclError('update-target-missing', text);
}

function transferTarget(group: Group, id: string): string {
  const server = knownServer(group, { id });
  if (!server.isVoter) throw invalid(`${server.name} has no vote yet: it cannot lead`);
  return server.id;
}
