// What of the messages and snapshots that other nodes send is looked at here at all.

import { membersOf } from '../../raft/membership/membership.ts';
import { MESSAGE_TRAITS, type Message, type SnapshotMessage } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { Status } from '../../raft/raw-node.ts';

/** Strangers are heard: a node that knows nothing yet knows nobody, and a link knows who is at its end. */
export function reasonToIgnore(message: Message, self: NodeId): string | undefined {
  if (message.to !== self) return 'it is for another node';
  if (message.from === self) return 'its sender says it is this node';
  if (MESSAGE_TRAITS[message.type].local) return 'only an own worker may say this';
  if (message.type === 'propose') return 'proposals are not handed on';
  return message.type === 'snapshot' ? 'snapshots do not come as messages' : undefined;
}

export type SnapshotScreening =
  | { readonly kind: 'wanted' }
  | { readonly kind: 'refused'; readonly why: string }
  /** Its sender does not know how far this node is: raft's answer to the message tells it. */
  | { readonly kind: 'outdated'; readonly why: string };

export function screenSnapshot(
  { from, to, term, snapshot }: SnapshotMessage,
  own: Pick<Status, 'id' | 'term' | 'commitIndex'>,
): SnapshotScreening {
  if (to !== own.id || from === own.id) return refused('it is for another node');
  if (term < own.term) return refused(`it is of term ${term}, this node is at ${own.term}`);
  if (!membersOf(snapshot.membership).includes(own.id)) {
    return refused('this node is not in its group');
  }
  if (snapshot.index > own.commitIndex) return { kind: 'wanted' };
  const why = `all up to ${own.commitIndex} is here, it has ${snapshot.index}`;
  return { kind: 'outdated', why };
}

function refused(why: string): SnapshotScreening {
  return { kind: 'refused', why };
}
