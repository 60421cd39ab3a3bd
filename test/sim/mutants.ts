// The planted bugs. Each is put in from outside, by changing a method of the product for the length of
// a run, and each breaks one promise of the code; docs/TESTING.md holds how many seeds it takes to find
// them. One that is not found any more says that the simulator has grown blind, not that the code is well.

import { RaftLog } from '../../cluster/raft/raft-log.ts';
import type { Message, StorageAppendMessage } from '../../cluster/raft/message.ts';
import { RawNode, type Ready } from '../../cluster/raft/raw-node.ts';
import { ReadBarriers } from '../../cluster/replica/read-barriers.ts';
import type { Mutant } from './run/mutant.ts';

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'vote-before-disk',
    breaks: 'a vote is sent before it is on disk',
    foundBy: ['promises', 'elections'],
    subject: 'replica',
    install: () => sendEarly('vote-reply'),
  },
  {
    name: 'acknowledge-before-disk',
    breaks: 'entries are acknowledged before they are on disk',
    foundBy: ['promises', 'commits'],
    subject: 'replica',
    install: () => sendEarly('append-reply'),
  },
  {
    name: 'no-term-rule',
    breaks: 'an entry of an earlier term is committed by counting',
    foundBy: ['commits', 'answers', 'linearizability', 'assertions'],
    subject: 'replica',
    install: () =>
      replaced(RaftLog.prototype, 'maybeCommit', () => {
        return function (this: RaftLog, id) {
          if (id.index <= this.commitIndex || id.index > this.lastIndex) return false;
          this.commitTo(id.index);
          return true;
        };
      }),
  },
  {
    name: 'no-prevote-answer',
    breaks: 'nobody answers a pre-vote',
    foundBy: ['liveness'],
    subject: 'replica',
    install: () => withoutMessages(({ type }) => type === 'pre-vote-reply'),
  },
  {
    name: 'skip-fsync',
    breaks: 'the log is said to be on disk before it is',
    foundBy: ['promises', 'commits', 'answers', 'linearizability', 'elections'],
    subject: 'replica',
    lyingStores: ['log'],
    install: () => () => undefined,
  },
  {
    name: 'unsynced-state',
    breaks: 'the state is said to be on disk before it is, and parts of it get lost',
    foundBy: ['states', 'assertions', 'stale reads', 'linearizability'],
    subject: 'replica',
    lyingStores: ['state'],
    install: () => () => undefined,
  },
  {
    name: 'apply-unstable',
    breaks: 'entries are applied before the own disk has them',
    foundBy: ['states', 'assertions'],
    subject: 'replica',
    install: () => {
      const anything = { allowUnstable: true };
      const undo = [
        replaced(RaftLog.prototype, 'nextCommitted', (real) => {
          return function (this: RaftLog) {
            return real.call(this, anything);
          };
        }),
        replaced(RaftLog.prototype, 'hasNextCommitted', (real) => {
          return function (this: RaftLog) {
            return real.call(this, anything);
          };
        }),
        replaced(RaftLog.prototype, 'acceptApplying', (real) => {
          return function (this: RaftLog, entries) {
            real.call(this, entries, anything);
          };
        }),
      ];
      return () => {
        for (const each of undo) each();
      };
    },
  },
  {
    name: 'reuse-read-names',
    breaks: 'a round of reads is asked under a name that an earlier one had',
    foundBy: ['linearizability'],
    subject: 'replica',
    install: () => {
      const undoTake = replaced(ReadBarriers.prototype, 'takeRound', (real) => {
        return function (this: ReadBarriers) {
          const context = real.call(this);
          if (context !== undefined) realNames.set(this, context);
          return context === undefined ? undefined : 'the read';
        };
      });
      const undoConfirm = replaced(ReadBarriers.prototype, 'confirm', (real) => {
        return function (this: ReadBarriers, _context, index) {
          real.call(this, realNames.get(this) ?? '', index);
        };
      });
      return () => {
        undoTake();
        undoConfirm();
      };
    },
  },
  {
    name: 'no-campaign-guard',
    breaks: 'a node campaigns though a change of membership waits to be applied',
    foundBy: ['elections', 'commits'],
    subject: 'replica',
    install: () => replaced(RaftLog.prototype, 'hasUnappliedMembershipChange', () => () => false),
  },
  {
    name: 'no-read-barrier',
    breaks: 'a read is answered from the local state without asking the leader',
    foundBy: ['linearizability'],
    subject: 'replica',
    install: () => replaced(ReadBarriers.prototype, 'add', () => () => Promise.resolve()),
  },
];

const realNames = new WeakMap<ReadBarriers, string>();

export function mutantNamed(name: string): Mutant {
  const mutant = MUTANTS.find((each) => each.name === name);
  if (mutant === undefined) {
    const names = MUTANTS.map((each) => each.name).join(', ');
    throw new Error(`there is no mutant ${name}; there are ${names}`);
  }
  return mutant;
}

/** Puts another method in the place of one; the result puts the real one back. */
function replaced<Owner extends object, Name extends keyof Owner & string>(
  owner: Owner,
  name: Name,
  make: (real: Owner[Name]) => Owner[Name],
): () => void {
  const real = owner[name];
  owner[name] = make(real);
  return () => {
    owner[name] = real;
  };
}

function changedReady(change: (ready: Ready) => Ready): () => void {
  return replaced(RawNode.prototype, 'ready', (real) => {
    return function (this: RawNode) {
      return change(real.call(this));
    };
  });
}

function sendEarly(type: Message['type']): () => void {
  return changedReady((ready) => {
    const early: Message[] = [];
    const messages = ready.messages.map((message): Message => {
      if (message.type !== 'storage-append') return message;
      const isEarly = (reply: Message): boolean => reply.type === type && reply.to !== message.from;
      early.push(...message.replies.filter(isEarly));
      return withReplies(message, (reply) => !isEarly(reply));
    });
    return { ...ready, messages: [...messages, ...early] };
  });
}

function withoutMessages(isLost: (message: Message) => boolean): () => void {
  return changedReady((ready) => {
    const messages = ready.messages
      .filter((message) => !isLost(message))
      .map((message) => {
        if (message.type !== 'storage-append') return message;
        return withReplies(message, (reply) => reply.to === message.from || !isLost(reply));
      });
    return { ...ready, messages };
  });
}

function withReplies(
  message: StorageAppendMessage,
  stays: (reply: Message) => boolean,
): StorageAppendMessage {
  return { ...message, replies: message.replies.filter(stays) };
}
