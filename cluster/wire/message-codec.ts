// Raft messages as fields. Each begins with the number of its type, which is never given another
// meaning, and its envelope. What only a node's own workers say does not travel. Whether a message makes
// sense where it arrives is raft's matter.

import { assert } from '../base/assert.ts';
import { type Entry, type EntryType, NO_ENTRY, type ProposedEntry } from '../raft/log/entry.ts';
import type { Snapshot } from '../raft/log/snapshot.ts';
import type { Membership } from '../raft/membership/membership.ts';
import { type Envelope, MESSAGE_TRAITS, type Message, type VoteNews } from '../raft/message.ts';
import type { NodeId } from '../raft/node-id.ts';
import { NEWEST_PROTOCOL } from './frame.ts';
import {
  arrayOf,
  bytesOf,
  countOf,
  type Fields,
  fieldsOf,
  flagOf,
  namedBy,
  namesByNumber,
  nodeOf,
  textOf,
} from './shape.ts';
import { WireDamage } from './wire-damage.ts';

/** Far above what one append may carry, and any sensible group. */
const ENTRIES_MAX = 32_768;
const MEMBERS_MAX = 255;
const CONTEXT_MAX = 256;
/** Number, from, to, term, and the most that a body has. */
const ENVELOPE_FIELDS = 4;
const BODY_FIELDS_MAX = 5;

type LocalType =
  | 'storage-append'
  | 'storage-append-reply'
  | 'storage-apply'
  | 'storage-apply-reply';

/** What goes from node to node. */
export type SentMessage = Exclude<Message, { readonly type: LocalType }>;
type SentType = SentMessage['type'];

/** A number is never given another meaning. */
const MESSAGE_NUMBER: Readonly<Record<SentType, number>> = {
  append: 1,
  'append-reply': 2,
  vote: 3,
  'vote-reply': 4,
  'pre-vote': 5,
  'pre-vote-reply': 6,
  heartbeat: 7,
  'heartbeat-reply': 8,
  snapshot: 9,
  'timeout-now': 10,
  'transfer-leader': 11,
  propose: 12,
  'read-index': 13,
  'read-index-reply': 14,
};

const ENTRY_NUMBER: Readonly<Record<EntryType, number>> = { normal: 1, membership: 2 };

const TYPES = namesByNumber(MESSAGE_NUMBER);
const ENTRY_TYPES = namesByNumber(ENTRY_NUMBER);

/** Whether messages of the type go from node to node. */
export function isSent(message: Message): message is SentMessage {
  return !MESSAGE_TRAITS[message.type].local;
}

/** The one of all shapes that may have the type. */
type Of<Type, Shape = Message> = Shape extends { readonly type: infer Types }
  ? Type extends Types
    ? Shape
    : never
  : never;
type BodyOf<Type extends SentType> = Omit<Of<Type>, keyof Envelope | 'type'>;

/** How the fields after the envelope say what the message says. */
interface Layout<Shape> {
  readonly count: number;
  readonly fields: (message: Shape) => Fields;
  readonly read: (fields: Fields) => Shape;
}
type Body<Type extends SentType> = Layout<BodyOf<Type>>;

const FIRST_VOTE: Body<'vote'> = {
  count: 3,
  fields: ({ lastTerm, lastIndex, forced }) => [lastTerm, lastIndex, forced],
  read: ([lastTerm, lastIndex, forced]) => ({
    lastTerm: countOf(lastTerm, 'lastTerm'),
    lastIndex: countOf(lastIndex, 'lastIndex'),
    forced: flagOf(forced, 'forced'),
    committed: NO_ENTRY,
  }),
};

const FIRST_VOTE_REPLY: Body<'vote-reply'> = {
  count: 1,
  fields: ({ rejected }) => [rejected],
  read: ([rejected]) => ({ rejected: flagOf(rejected, 'rejected'), committed: NO_ENTRY }),
};

const VOTE = withCommitted(FIRST_VOTE);
const VOTE_REPLY = withCommitted(FIRST_VOTE_REPLY);

/** Protocol version 2: what is committed stands behind the fields of the first one. */
function withCommitted<Shape extends VoteNews>(first: Layout<Shape>): Layout<Shape> {
  return {
    count: first.count + 2,
    fields: (body) => [...first.fields(body), body.committed.term, body.committed.index],
    read: (fields) => ({
      ...first.read(fields),
      committed: {
        term: countOf(fields[first.count], 'the term of what is committed'),
        index: countOf(fields[first.count + 1], 'the index of what is committed'),
      },
    }),
  };
}

const BODIES: { readonly [Type in SentType]: Body<Type> } = {
  append: {
    count: 4,
    fields: (body) => [body.prevTerm, body.prevIndex, body.commitIndex, entriesFields(body)],
    read: ([prevTerm, prevIndex, commitIndex, entries]) => ({
      prevTerm: countOf(prevTerm, 'prevTerm'),
      prevIndex: countOf(prevIndex, 'prevIndex'),
      commitIndex: countOf(commitIndex, 'commitIndex'),
      entries: entriesOf(entries, countOf(prevIndex, 'prevIndex')),
    }),
  },
  'append-reply': {
    count: 2,
    fields: ({ index, rejection }) => [
      index,
      rejection === undefined ? null : [rejection.hintIndex, rejection.hintTerm],
    ],
    read: ([index, rejection]) => ({ index: countOf(index, 'index'), ...rejectionOf(rejection) }),
  },
  vote: VOTE,
  'vote-reply': VOTE_REPLY,
  'pre-vote': VOTE,
  'pre-vote-reply': VOTE_REPLY,
  heartbeat: {
    count: 2,
    fields: ({ commitIndex, readCount }) => [commitIndex, readCount],
    read: ([commitIndex, readCount]) => ({
      commitIndex: countOf(commitIndex, 'commitIndex'),
      readCount: countOf(readCount, 'readCount'),
    }),
  },
  'heartbeat-reply': {
    count: 1,
    fields: ({ readCount }) => [readCount],
    read: ([readCount]) => ({ readCount: countOf(readCount, 'readCount') }),
  },
  snapshot: {
    count: 1,
    fields: ({ snapshot }) => [snapshotFields(snapshot)],
    read: ([snapshot]) => ({ snapshot: snapshotOf(snapshot) }),
  },
  'timeout-now': { count: 0, fields: () => [], read: () => ({}) },
  'transfer-leader': {
    count: 1,
    fields: ({ target }) => [target],
    read: ([target]) => ({ target: countOf(target, 'target') }),
  },
  propose: {
    count: 1,
    fields: ({ entries }) => [entries.map(({ type, data }) => [ENTRY_NUMBER[type], data])],
    read: ([entries]) => ({ entries: arrayOf(entries, 'entries', ENTRIES_MAX).map(proposedOf) }),
  },
  'read-index': {
    count: 1,
    fields: ({ context }) => [context],
    read: ([context]) => ({ context: textOf(context, 'context', CONTEXT_MAX) }),
  },
  'read-index-reply': {
    count: 2,
    fields: ({ index, context }) => [index, context],
    read: ([index, context]) => ({
      index: countOf(index, 'index'),
      context: textOf(context, 'context', CONTEXT_MAX),
    }),
  },
};

/** Those that were others in protocol version 1. */
const FIRST_BODIES: { readonly [Type in SentType]?: Body<Type> } = {
  vote: FIRST_VOTE,
  'vote-reply': FIRST_VOTE_REPLY,
  'pre-vote': FIRST_VOTE,
  'pre-vote-reply': FIRST_VOTE_REPLY,
};

function bodyOf(type: SentType, protocol: number): Body<SentType> {
  const first = protocol === 1 ? FIRST_BODIES[type] : undefined;
  return (first ?? BODIES[type]) as Body<SentType>;
}

/** Positional fields of plain values and bytes. */
export function messageFields(message: Message, protocol = NEWEST_PROTOCOL): Fields {
  const { type, from, to, term } = message;
  assert(isSent(message), 'the message is one for another node', { type });
  const body = bodyOf(message.type, protocol);
  return [MESSAGE_NUMBER[message.type], from, to, term, ...body.fields(message)];
}

/** Throws WireDamage. */
export function messageOf(value: unknown, protocol = NEWEST_PROTOCOL): Message {
  const all = arrayOf(value, 'a message', ENVELOPE_FIELDS + BODY_FIELDS_MAX);
  const type = namedBy(all[0], 'the type of a message', TYPES);
  const envelope: Envelope = {
    from: nodeOf(all[1], 'from'),
    to: nodeOf(all[2], 'to'),
    term: countOf(all[3], 'term'),
  };
  const body = bodyOf(type, protocol);
  const fields = fieldsOf(all.slice(ENVELOPE_FIELDS), `a message ${type}`, body.count);
  return { type, ...envelope, ...body.read(fields) } as Message;
}

function rejectionOf(value: unknown): Pick<Of<'append-reply'>, 'rejection'> {
  if (value === null) return {};
  const [hintIndex, hintTerm] = fieldsOf(value, 'rejection', 2);
  return {
    rejection: {
      hintIndex: countOf(hintIndex, 'hintIndex'),
      hintTerm: countOf(hintTerm, 'hintTerm'),
    },
  };
}

/** Their indexes follow from where the append begins, so they are not sent. */
function entriesFields({ prevIndex, entries }: BodyOf<'append'>): Fields {
  return entries.map(({ index, term, type, data }, place) => {
    assert(index === prevIndex + 1 + place, 'entries of an append follow each other', { index });
    return [term, ENTRY_NUMBER[type], data];
  });
}

function entriesOf(value: unknown, prevIndex: number): readonly Entry[] {
  const entries = arrayOf(value, 'entries', ENTRIES_MAX);
  if (!Number.isSafeInteger(prevIndex + entries.length)) {
    throw new WireDamage('the index of an entry is no whole number');
  }
  return entries.map((entry, place) => {
    const [term, type, data] = fieldsOf(entry, 'an entry', 3);
    return {
      index: prevIndex + 1 + place,
      term: countOf(term, 'the term of an entry'),
      type: namedBy(type, 'the type of an entry', ENTRY_TYPES),
      data: bytesOf(data, 'data'),
    };
  });
}

function proposedOf(value: unknown): ProposedEntry {
  const [type, data] = fieldsOf(value, 'a proposed entry', 2);
  return {
    type: namedBy(type, 'the type of an entry', ENTRY_TYPES),
    data: bytesOf(data, 'data'),
  };
}

function snapshotFields({ index, term, membership, data }: Snapshot): Fields {
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = membership;
  return [index, term, [voters, votersOutgoing, learners, learnersNext, autoLeave], data];
}

function snapshotOf(value: unknown): Snapshot {
  const [index, term, membership, data] = fieldsOf(value, 'a snapshot', 4);
  return {
    index: countOf(index, 'index'),
    term: countOf(term, 'term'),
    membership: membershipOf(membership),
    data: bytesOf(data, 'data'),
  };
}

function membershipOf(value: unknown): Membership {
  const all = fieldsOf(value, 'a membership', 5);
  return {
    voters: nodesOf(all[0], 'voters'),
    votersOutgoing: nodesOf(all[1], 'votersOutgoing'),
    learners: nodesOf(all[2], 'learners'),
    learnersNext: nodesOf(all[3], 'learnersNext'),
    autoLeave: flagOf(all[4], 'autoLeave'),
  };
}

function nodesOf(value: unknown, what: string): readonly NodeId[] {
  return arrayOf(value, what, MEMBERS_MAX).map((node) => nodeOf(node, what));
}
