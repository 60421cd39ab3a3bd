// The commands of a transcript, one function each. Those of the published suites keep their names and
// output; the ones after `read-index` are this project's own.

import { must } from '../../../cluster/base/assert.ts';
import type { ProposalResult } from '../../../cluster/raft/leading/proposing.ts';
import { NO_DATA } from '../../../cluster/raft/log/entry.ts';
import type { Snapshot } from '../../../cluster/raft/log/snapshot.ts';
import { votersOf } from '../../../cluster/raft/membership/membership.ts';
import type {
  MemberChange,
  MemberChangeKind,
  Transition,
} from '../../../cluster/raft/membership/membership-change.ts';
import { MESSAGE_TRAITS, type MessageType } from '../../../cluster/raft/message.ts';
import type { NodeId } from '../../../cluster/raft/node-id.ts';
import type { Argument, Case } from './datadriven.ts';
import {
  describeEntry,
  describeMembership,
  describeMessage,
  describeMessageType,
  describeProgress,
  describeStanding,
} from './describe.ts';
import {
  DEFAULT_OPTIONS,
  DESCRIBE,
  type Group,
  type MessageFilter,
  type NodeOptions,
  OLD_FORM,
  type Recipient,
  wordsForRefusal,
} from './group.ts';

type Command = (group: Group, testCase: Case) => void;

const CHANGE_KINDS: Readonly<Record<string, MemberChangeKind>> = {
  v: 'add-voter',
  l: 'add-learner',
  r: 'remove',
  u: 'update',
};

/** Runs one case of a transcript and returns what it printed. */
export function runCommand(group: Group, testCase: Case): string {
  const command = must(COMMANDS[testCase.command], `the command ${testCase.command}`);
  try {
    command(group, testCase);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (group.output.isQuiet) return error.message;
    group.output.print(error.message);
  }
  const text = group.output.take();
  return text === '' ? 'ok' : text;
}

/** `v1 l2 r3 u4` as changes; throws on anything else. */
export function parseChanges(text: string): readonly MemberChange[] {
  const words = text.split(/\s+/).filter((word) => word !== '');
  return words.map((word) => {
    const kind = must(CHANGE_KINDS[word[0] ?? ''], `a change, not ${word}`);
    return { kind, node: integerOf(word.slice(1)) };
  });
}

/** A refusal that becomes part of the transcript. */
class Refused extends Error {}

const COMMANDS: Readonly<Record<string, Command>> = {
  'add-nodes': (group, { args }) => {
    const { options, index, snapshot } = parseSetup(args.slice(1));
    if (snapshot !== undefined && index <= 1) throw new Refused('index must be above 1');
    for (let count = nodeAt(args, 0); count > 0; count -= 1) group.add(options, snapshot);
  },
  campaign: (group, { args }) => group.node(nodeAt(args, 0)).node.campaign(),
  compact: (group, { args }) => {
    group.node(nodeAt(args, 0)).storage.compact(nodeAt(args, 1));
    group.printLog(nodeAt(args, 0));
  },
  'deliver-msgs': (group, { args }) => {
    const delivered = nodesIn(args).map((id): Recipient => ({ id, drop: false }));
    const dropped = valuesOf(args, 'drop').map(
      (id): Recipient => ({ id: integerOf(id), drop: true }),
    );
    const count = group.deliver([...delivered, ...dropped], filterIn(args));
    if (count === 0) group.output.print('no messages');
  },
  'process-ready': (group, { args }) =>
    forEachNode(group, args, 'handling Ready', (id) => group.processReady(id)),
  'process-append-thread': (group, { args }) =>
    forEachNode(group, args, 'processing append thread', (id) => group.processAppendWork(id)),
  'process-apply-thread': (group, { args }) =>
    forEachNode(group, args, 'processing apply thread', (id) => group.processApplyWork(id)),
  'log-level': (group, { args }) => {
    group.output.setLevel(must(args[0], 'a level').key);
  },
  'raft-log': (group, { args }) => group.printLog(nodeAt(args, 0)),
  'raft-state': (group) => {
    for (const { node } of group.nodes) {
      const { id, standing, term, leader, membership } = node.status();
      const vote = votersOf(membership).includes(id) ? '(Voter)' : '(Non-Voter)';
      group.output.print(
        `${id}: ${describeStanding(standing)} ${vote} Term:${term} Lead:${leader}`,
      );
    }
  },
  'set-randomized-election-timeout': (group, { args }) => {
    group.node(nodeAt(args, 0)).raft.electionTimeoutTicks = integerOf(oneValueOf(args, 'timeout'));
  },
  stabilize: (group, { args }) => {
    const nodes = nodesIn(args);
    const level = valuesOf(args, 'log-level')[0];
    const before = level === undefined ? undefined : group.output.setLevel(level);
    group.stabilize(nodes.length > 0 ? nodes : group.nodes.map(({ id }) => id));
    if (before !== undefined) group.output.setLevel(before);
  },
  status: (group, { args }) => {
    for (const [node, progress] of group.node(nodeAt(args, 0)).node.progress()) {
      group.output.print(`${node}: ${describeProgress(progress)}`);
    }
  },
  'tick-election': (group, { args }) => tick(group, args, 'electionTicks'),
  'tick-heartbeat': (group, { args }) => tick(group, args, 'heartbeatTicks'),
  'transfer-leadership': (group, { args }) => {
    const [from, to] = [integerOf(oneValueOf(args, 'from')), integerOf(oneValueOf(args, 'to'))];
    group.node(from).node.transferLeadership(to);
  },
  'forget-leader': (group, { args }) => group.node(nodeAt(args, 0)).node.forgetLeader(),
  'send-snapshot': (group, { args }) => {
    const [from, to] = [nodeAt(args, 0), nodeAt(args, 1)];
    const snapshot = must(group.node(from).storage.snapshot(), 'a snapshot');
    const { term } = group.node(from).node.status();
    group.network.push({ type: 'snapshot', from, to, term, snapshot });
    group.output.print(describeMessage({ type: 'snapshot', from, to, term, snapshot }, DESCRIBE));
  },
  propose: (group, { args }) => {
    const data = new TextEncoder().encode(must(args[1], 'a payload').key);
    report(group.node(nodeAt(args, 0)).node.propose(data));
  },
  'propose-conf-change': (group, { args, input }) => {
    const transition = (valuesOf(args, 'transition')[0] ?? 'auto') as Transition;
    const context = valuesOf(args, 'v1')[0] === 'true' ? OLD_FORM : NO_DATA;
    const change = { transition, changes: parseChanges(input), context };
    report(group.node(nodeAt(args, 0)).node.proposeMembership(change));
  },
  'report-unreachable': (group, { args }) =>
    group.node(nodeAt(args, 0)).node.reportUnreachable(nodeAt(args, 1)),

  // read-index <node> <context>: ask for a linearizable read.
  'read-index': (group, { args }) =>
    group.node(nodeAt(args, 0)).node.readIndex(must(args[1], 'a context').key),
  // restart <node> [applied=n] [commit=n] [option=…]: crash and start again from the disk; commit says
  // which commit index the disk has kept, as it may be written without waiting for it.
  restart: (group, { args }) => {
    const member = group.node(nodeAt(args, 0));
    const applied =
      valuesOf(args, 'applied')[0] ?? String(must(member.history.at(-1), 'state').index);
    const commit = valuesOf(args, 'commit')[0];
    if (commit !== undefined) {
      member.storage.hardState = { ...member.storage.hardState, commitIndex: integerOf(commit) };
    }
    group.restart(member.id, integerOf(applied), parseOptions(args));
  },
  // duplicate-msgs <to>… [type=] [from=]: every message to these nodes is there twice.
  'duplicate-msgs': (group, { args }) => {
    const copies = group.network.filter((message) => isMeant(message, args));
    group.network.push(...copies);
    for (const message of copies) group.output.print(describeMessage(message, DESCRIBE));
  },
  // reorder-msgs <to>… [type=] [from=]: the messages to these nodes arrive in reverse order.
  'reorder-msgs': (group, { args }) => {
    const reversed = group.network.filter((message) => isMeant(message, args)).reverse();
    const rest = group.network.filter((message) => !isMeant(message, args));
    group.network = [...rest, ...reversed];
    for (const message of reversed) group.output.print(describeMessage(message, DESCRIBE));
  },
  // report-snapshot <leader> <node> delivered=<bool>: the transport is done with a snapshot.
  'report-snapshot': (group, { args }) => {
    const delivered = oneValueOf(args, 'delivered') === 'true';
    group.node(nodeAt(args, 0)).node.reportSnapshot(nodeAt(args, 1), { delivered });
  },
  // tick <node> <count>: as many ticks.
  tick: (group, { args }) => {
    const { node } = group.node(nodeAt(args, 0));
    for (let count = nodeAt(args, 1); count > 0; count -= 1) node.tick();
  },
  // hard-state <node>: what the disk has promised.
  'hard-state': (group, { args }) => {
    const { term, vote, commitIndex } = group.node(nodeAt(args, 0)).storage.hardState;
    group.output.print(`Term:${term} Vote:${vote} Commit:${commitIndex}`);
  },
  // memory <node>: the entries that the node does not know to be on its disk.
  memory: (group, { args }) => {
    const { unstable } = group.node(nodeAt(args, 0)).raft.log;
    const entries = unstable.slice(unstable.fromIndex, unstable.fromIndex + unstable.count);
    if (entries.length === 0) group.output.print('everything is on disk');
    for (const entry of entries) group.output.print(describeEntry(entry, DESCRIBE));
  },
  // members <node>: the members that raft goes by, and those that the state machine has recorded.
  members: (group, { args }) => {
    const { raft, history } = group.node(nodeAt(args, 0));
    group.output.print(describeMembership(raft.membership));
    group.output.print(describeMembership(must(history.at(-1), 'a state').membership));
  },
  // state <node>: what the state machine has come to.
  state: (group, { args }) => {
    const { index, data } = must(group.node(nodeAt(args, 0)).history.at(-1), 'a state');
    group.output.print(`${index}: ${JSON.stringify(new TextDecoder().decode(data))}`);
  },
};

function parseSetup(args: readonly Argument[]): {
  options: NodeOptions;
  index: number;
  snapshot: Snapshot | undefined;
} {
  const voters = valuesOf(args, 'voters').map(integerOf);
  const learners = valuesOf(args, 'learners').map(integerOf);
  const index = integerOf(valuesOf(args, 'index')[0] ?? '0');
  const data = new TextEncoder().encode(valuesOf(args, 'content')[0] ?? '');
  const membership = { voters, learners, votersOutgoing: [], learnersNext: [], autoLeave: false };
  const isEmpty = index === 0 && data.length === 0 && voters.length + learners.length === 0;
  const snapshot = isEmpty ? undefined : { term: 1, index, membership, data };
  return { options: { ...DEFAULT_OPTIONS, ...parseOptions(args) }, index, snapshot };
}

function parseOptions(args: readonly Argument[]): Partial<NodeOptions> {
  const flag = (key: string) => valuesOf(args, key)[0] === 'true';
  const count = (key: string) => integerOf(oneValueOf(args, key));
  const options: Record<string, () => Partial<NodeOptions>> = {
    inflight: () => ({ maxInflightMessages: count('inflight') }),
    'max-inflight-bytes': () => ({ maxInflightBytes: count('max-inflight-bytes') }),
    'max-message-bytes': () => ({ maxMessageBytes: count('max-message-bytes') }),
    'max-uncommitted-bytes': () => ({ maxUncommittedBytes: count('max-uncommitted-bytes') }),
    'max-committed-size-per-ready': () => ({
      maxApplyingBytes: count('max-committed-size-per-ready'),
    }),
    'async-storage-writes': () => ({ asyncStorage: flag('async-storage-writes') }),
    prevote: () => ({ preVote: flag('prevote') }),
    checkquorum: () => ({ checkQuorum: flag('checkquorum') }),
    'disable-conf-change-validation': () => ({
      validateChanges: !flag('disable-conf-change-validation'),
    }),
    'read-only': () => ({
      readMode: oneValueOf(args, 'read-only') === 'lease-based' ? 'lease' : 'quorum',
    }),
    'step-down-on-removal': () => ({ stepDownOnRemoval: flag('step-down-on-removal') }),
    'asks-before-disk': () => ({ asksBeforeDisk: flag('asks-before-disk') }),
    'forward-proposals': () => ({ forwardProposals: flag('forward-proposals') }),
  };
  return Object.assign({}, ...args.map(({ key }) => options[key]?.() ?? {}));
}

function tick(
  group: Group,
  args: readonly Argument[],
  interval: 'electionTicks' | 'heartbeatTicks',
): void {
  const { node, options } = group.node(nodeAt(args, 0));
  for (let count = options[interval]; count > 0; count -= 1) node.tick();
}

function report(result: ProposalResult): void {
  if (result.kind === 'refused') throw new Refused(wordsForRefusal(result.reason));
}

function forEachNode(
  group: Group,
  args: readonly Argument[],
  title: string,
  work: (id: NodeId) => void,
): void {
  const nodes = nodesIn(args);
  for (const id of nodes) {
    if (nodes.length === 1) {
      work(id);
    } else {
      group.output.print(`> ${id} ${title}`);
      group.output.indented(() => work(id));
    }
  }
}

function isMeant(
  message: { to: NodeId; from: NodeId; type: MessageType },
  args: readonly Argument[],
): boolean {
  const { type, from } = filterIn(args);
  const nodes = nodesIn(args);
  return (
    nodes.includes(message.to) &&
    (type === undefined || message.type === type) &&
    (from === undefined || message.from === from)
  );
}

function filterIn(args: readonly Argument[]): MessageFilter {
  const [name] = valuesOf(args, 'type');
  const [from] = valuesOf(args, 'from');
  const types = Object.keys(MESSAGE_TRAITS) as MessageType[];
  const type = types.find((known) => describeMessageType(known) === name);
  if (name !== undefined && type === undefined) throw new Error(`no such message type: ${name}`);
  return {
    ...(type !== undefined && { type }),
    ...(from !== undefined && { from: integerOf(from) }),
  };
}

function valuesOf(args: readonly Argument[], key: string): readonly string[] {
  return args.find((arg) => arg.key === key)?.values ?? [];
}

function oneValueOf(args: readonly Argument[], key: string): string {
  return must(valuesOf(args, key)[0], `a value of ${key}`);
}

function nodesIn(args: readonly Argument[]): readonly NodeId[] {
  return args.filter(({ values }) => values.length === 0).map(({ key }) => integerOf(key));
}

function nodeAt(args: readonly Argument[], position: number): number {
  return integerOf(must(args[position], `argument ${position + 1}`).key);
}

function integerOf(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`not an integer: ${text}`);
  return value;
}
