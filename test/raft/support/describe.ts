// Raft's values as text, for logs and transcripts, in the notation that Raft transcripts commonly use.
// Deterministic, one line a value where possible; read by people and compared by tests, never parsed.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { HardState } from '../../../cluster/raft/hard-state.ts';
import type { ProgressState, ProgressView } from '../../../cluster/raft/leading/progress.ts';
import type { Entry, EntryType } from '../../../cluster/raft/log/entry.ts';
import type { Snapshot } from '../../../cluster/raft/log/snapshot.ts';
import type { Membership } from '../../../cluster/raft/membership/membership.ts';
import {
  decodeMembershipChange,
  type MemberChange,
  type MemberChangeKind,
  type MembershipChange,
  type Transition,
} from '../../../cluster/raft/membership/membership-change.ts';
import type { Message, MessageType } from '../../../cluster/raft/message.ts';
import {
  APPEND_WORKER,
  APPLY_WORKER,
  NO_NODE,
  type NodeId,
} from '../../../cluster/raft/node-id.ts';
import type { Ready } from '../../../cluster/raft/raw-node.ts';
import type { SoftState, Standing } from '../../../cluster/raft/state.ts';

/** How the caller's own bytes are shown. */
export interface DescribeOptions {
  readonly payload?: (data: Uint8Array) => string;
  /** Name of an entry's type, where the caller tells more of them apart. */
  readonly entryType?: (entry: Entry) => string;
}

const MESSAGE_NAMES: Readonly<Record<MessageType, string>> = {
  append: 'MsgApp',
  'append-reply': 'MsgAppResp',
  vote: 'MsgVote',
  'vote-reply': 'MsgVoteResp',
  'pre-vote': 'MsgPreVote',
  'pre-vote-reply': 'MsgPreVoteResp',
  heartbeat: 'MsgHeartbeat',
  'heartbeat-reply': 'MsgHeartbeatResp',
  snapshot: 'MsgSnap',
  'timeout-now': 'MsgTimeoutNow',
  'transfer-leader': 'MsgTransferLeader',
  propose: 'MsgProp',
  'read-index': 'MsgReadIndex',
  'read-index-reply': 'MsgReadIndexResp',
  'storage-append': 'MsgStorageAppend',
  'storage-append-reply': 'MsgStorageAppendResp',
  'storage-apply': 'MsgStorageApply',
  'storage-apply-reply': 'MsgStorageApplyResp',
};

const STANDING_NAMES: Readonly<Record<Standing, string>> = {
  follower: 'StateFollower',
  candidate: 'StateCandidate',
  leader: 'StateLeader',
  'pre-candidate': 'StatePreCandidate',
};

const PROGRESS_NAMES: Readonly<Record<ProgressState, string>> = {
  probe: 'StateProbe',
  replicate: 'StateReplicate',
  snapshot: 'StateSnapshot',
};

const ENTRY_NAMES: Readonly<Record<EntryType, string>> = {
  normal: 'EntryNormal',
  membership: 'EntryConfChangeV2',
};

const CHANGE_LETTERS: Readonly<Record<MemberChangeKind, string>> = {
  'add-voter': 'v',
  'add-learner': 'l',
  remove: 'r',
  update: 'u',
};

const CHANGE_NAMES: Readonly<Record<MemberChangeKind, string>> = {
  'add-voter': 'ConfChangeAddNode',
  'add-learner': 'ConfChangeAddLearnerNode',
  remove: 'ConfChangeRemoveNode',
  update: 'ConfChangeUpdateNode',
};

const TRANSITION_NAMES: Readonly<Record<Transition, string>> = {
  auto: 'ConfChangeTransitionAuto',
  implicit: 'ConfChangeTransitionJointImplicit',
  explicit: 'ConfChangeTransitionJointExplicit',
};

export function describeMessageType(type: MessageType): string {
  return MESSAGE_NAMES[type];
}

export function describeStanding(standing: Standing): string {
  return STANDING_NAMES[standing];
}

/** A node's number, in hexadecimal as in all transcripts, or the worker's name. */
export function describeNode(node: NodeId): string {
  if (node === NO_NODE) return 'None';
  if (node === APPEND_WORKER) return 'AppendThread';
  if (node === APPLY_WORKER) return 'ApplyThread';
  return node.toString(16);
}

/** `term/index Type "payload"`; for a membership change its steps, as in `v2 l3`. */
export function describeEntry(entry: Entry, options: DescribeOptions = {}): string {
  const type = options.entryType?.(entry) ?? ENTRY_NAMES[entry.type];
  const payload = describePayload(entry, options);
  return `${entry.term}/${entry.index} ${type}${payload === '' ? '' : ` ${payload}`}`;
}

export function describeMessage(message: Message, options: DescribeOptions = {}): string {
  return describeIndented(message, options, '');
}

export function describeHardState({ term, vote, commitIndex }: HardState): string {
  return `Term:${term}${vote === NO_NODE ? '' : ` Vote:${vote}`} Commit:${commitIndex}`;
}

export function describeSoftState({ leader, standing }: SoftState): string {
  return `Lead:${leader} State:${describeStanding(standing)}`;
}

export function describeSnapshot({ index, term, membership }: Snapshot): string {
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = membership;
  const lists = { voters, votersOutgoing, learners, learnersNext };
  const [v, o, l, n] = Object.values(lists).map((list) => `[${list.join(' ')}]`);
  const members = `Voters:${v} VotersOutgoing:${o} Learners:${l} LearnersNext:${n}`;
  return `Index:${index} Term:${term} ConfState:${members} AutoLeave:${autoLeave}`;
}

/** All that a Ready wants done, one item a line. */
export function describeReady(ready: Ready, options: DescribeOptions = {}): string {
  const lines: string[] = [];
  const section = (title: string, items: readonly string[]): void => {
    if (items.length > 0) lines.push(title, ...items);
  };
  if (ready.softState !== undefined) lines.push(describeSoftState(ready.softState));
  if (ready.hardState !== undefined) lines.push(`HardState ${describeHardState(ready.hardState)}`);
  const reads = ready.readStates.map(({ index, context }) => `${context}@${index}`);
  if (reads.length > 0) lines.push(`ReadStates ${reads.join(' ')}`);
  section(
    'Entries:',
    ready.entries.map((entry) => describeEntry(entry, options)),
  );
  if (ready.snapshot !== undefined) lines.push(`Snapshot ${describeSnapshot(ready.snapshot)}`);
  section(
    'CommittedEntries:',
    ready.committedEntries.map((entry) => describeEntry(entry, options)),
  );
  section(
    'Messages:',
    ready.messages.map((message) => describeMessage(message, options)),
  );
  if (lines.length === 0) return '<empty Ready>';
  return [`Ready MustSync=${ready.mustSync}:`, ...lines].join('\n');
}

export function describeProgress(progress: ProgressView): string {
  const { matchIndex, nextIndex, pendingSnapshotIndex, inflightCount } = progress;
  const words = [PROGRESS_NAMES[progress.state], `match=${matchIndex}`, `next=${nextIndex}`];
  if (progress.isLearner) words.push('learner');
  if (progress.isPaused) words.push('paused');
  if (pendingSnapshotIndex > 0) words.push(`pendingSnap=${pendingSnapshotIndex}`);
  if (!progress.recentlyActive) words.push('inactive');
  if (inflightCount > 0) {
    words.push(`inflight=${inflightCount}${progress.inflightsFull ? '[full]' : ''}`);
  }
  return words.join(' ');
}

/** `voters=(1 2)&&(1) learners=(3)` and so on. */
export function describeMembership(membership: Membership): string {
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = membership;
  let text = `voters=${describeGroup(voters)}`;
  if (votersOutgoing.length > 0) text += `&&${describeGroup(votersOutgoing)}`;
  if (learners.length > 0) text += ` learners=${describeGroup(learners)}`;
  if (learnersNext.length > 0) text += ` learners_next=${describeGroup(learnersNext)}`;
  return autoLeave ? `${text} autoleave` : text;
}

export function describeChange({ transition, changes, context }: MembershipChange): string {
  const steps = changes.map(
    ({ kind, node }) => ` changes:{type:${CHANGE_NAMES[kind]} node_id:${node}}`,
  );
  const rest = context.length > 0 ? ` context:${quoted(context)}` : '';
  return `transition:${TRANSITION_NAMES[transition]}${steps.join('')}${rest}`;
}

/** The steps of a change in short: `v1 l2 r3 u4`. */
export function describeChanges(changes: readonly MemberChange[]): string {
  return changes.map(({ kind, node }) => `${CHANGE_LETTERS[kind]}${node}`).join(' ');
}

function describeGroup(nodes: readonly NodeId[]): string {
  return `(${nodes.map((node) => node.toString(16)).join(' ')})`;
}

function describePayload(entry: Entry, { payload = quoted }: DescribeOptions): string {
  if (entry.type === 'normal') return payload(entry.data);
  const change = decodeMembershipChange(entry.data);
  return change === undefined ? 'malformed' : describeChanges(change.changes);
}

function quoted(data: Uint8Array): string {
  return JSON.stringify(new TextDecoder().decode(data));
}

function describeIndented(message: Message, options: DescribeOptions, indent: string): string {
  const { log, term, words, entries, snapshot, replies } = partsOf(message);
  const route = `${describeNode(message.from)}->${describeNode(message.to)}`;
  let text = `${indent}${route} ${MESSAGE_NAMES[message.type]} Term:${term} Log:${log}`;
  for (const word of words) text += ` ${word}`;
  if (entries.length > 0) {
    const lines = entries.map((entry) => describeEntry(entry, options));
    const separator = `\n${indent}  `;
    text += ` Entries:[`;
    text +=
      lines.length === 1 ? `${lines[0]}]` : `${separator}${lines.join(separator)}\n${indent}]`;
  }
  if (snapshot !== undefined) text += `\n${indent}  Snapshot: ${describeSnapshot(snapshot)}`;
  if (replies.length > 0) {
    const lines = replies.map((reply) => describeIndented(reply, options, `${indent}  `));
    text += ` Responses:[\n${lines.join('\n')}\n${indent}]`;
  }
  return text;
}

interface MessageParts {
  readonly term: number;
  /** Term and index of the log position that the message is about; 0/0 for none. */
  readonly log: string;
  readonly words: readonly string[];
  readonly entries: readonly Entry[];
  readonly snapshot?: Snapshot;
  readonly replies: readonly Message[];
}

function partsOf(message: Message): MessageParts {
  const plain = { term: message.term, log: '0/0', words: [], entries: [], replies: [] };
  switch (message.type) {
    case 'append': {
      const { prevTerm, prevIndex, entries, commitIndex } = message;
      return { ...plain, log: `${prevTerm}/${prevIndex}`, words: commit(commitIndex), entries };
    }
    case 'append-reply': {
      const { index, rejection } = message;
      const words = rejection === undefined ? [] : [`Rejected (Hint: ${rejection.hintIndex})`];
      return { ...plain, log: `${rejection?.hintTerm ?? 0}/${index}`, words };
    }
    case 'vote':
    case 'pre-vote':
      return { ...plain, log: `${message.lastTerm}/${message.lastIndex}` };
    case 'vote-reply':
    case 'pre-vote-reply':
      return { ...plain, words: message.rejected ? ['Rejected (Hint: 0)'] : [] };
    case 'heartbeat':
      return { ...plain, words: [...commit(message.commitIndex), ...reads(message.readCount)] };
    case 'heartbeat-reply':
      return { ...plain, words: reads(message.readCount) };
    case 'snapshot':
      return { ...plain, snapshot: message.snapshot };
    case 'timeout-now':
      return plain;
    case 'transfer-leader':
      return { ...plain, words: [`Target:${message.target}`] };
    case 'propose': {
      const entries = message.entries.map((entry) => ({ ...entry, term: 0, index: 0 }));
      return { ...plain, entries };
    }
    case 'read-index':
      return { ...plain, words: [`Context:${message.context}`] };
    case 'read-index-reply':
      return { ...plain, log: `0/${message.index}`, words: [`Context:${message.context}`] };
    case 'storage-append': {
      const { hardState, entries, snapshot, replies } = message;
      const { term = 0, commitIndex = 0, vote = NO_NODE } = hardState ?? {};
      const words = [...commit(commitIndex), ...(vote === NO_NODE ? [] : [`Vote:${vote}`])];
      return { ...plain, term, words, entries, ...(snapshot && { snapshot }), replies };
    }
    case 'storage-append-reply': {
      const { lastStable, snapshot } = message;
      const log = lastStable === undefined ? '0/0' : `${lastStable.term}/${lastStable.index}`;
      return { ...plain, log, ...(snapshot && { snapshot }) };
    }
    case 'storage-apply':
      return { ...plain, entries: message.entries, replies: message.replies };
    case 'storage-apply-reply':
      return { ...plain, entries: message.entries };
    default:
      return unreachable(message);
  }
}

function commit(commitIndex: number): string[] {
  return commitIndex === 0 ? [] : [`Commit:${commitIndex}`];
}

function reads(readCount: number): string[] {
  return readCount === 0 ? [] : [`Reads:${readCount}`];
}
