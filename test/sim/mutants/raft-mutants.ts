// Planted bugs of the Raft core: elections, the log's agreement, and what is committed.

import { RaftLog } from '../../../cluster/raft/log/raft-log.ts';
import type { Message, StorageAppendMessage } from '../../../cluster/raft/message.ts';
import { RawNode, type Ready } from '../../../cluster/raft/raw-node.ts';
import { StoredLog } from '../../../cluster/replica/workers/stored-log.ts';
import type { Mutant } from './mutant.ts';
import { replaced, together } from './replaced.ts';

export const RAFT_MUTANTS: readonly Mutant[] = [
  {
    name: 'vote-before-disk',
    breaks: 'a vote is sent before it is on disk',
    foundBy: ['promises', 'elections'],
    subject: 'replica',
    seed: 1,
    install: () => sendEarly('vote-reply'),
  },
  {
    name: 'ask-before-disk',
    breaks: 'votes are asked for before the term and the log are on disk',
    foundBy: ['promises'],
    subject: 'replica',
    seed: 1,
    install: () => sendEarly('vote'),
  },
  {
    name: 'acknowledge-before-disk',
    breaks: 'entries are acknowledged before they are on disk',
    foundBy: ['promises', 'commits'],
    subject: 'replica',
    seed: 1,
    install: () => sendEarly('append-reply'),
  },
  {
    name: 'vote-for-shorter-log',
    breaks: 'a vote goes to a candidate that lacks what the voter has',
    foundBy: ['commits', 'answers', 'linearizability'],
    subject: 'replica',
    seed: 2,
    install: () => replaced(RaftLog.prototype, 'isUpToDate', () => () => true),
  },
  {
    name: 'no-prevote-answer',
    breaks: 'nobody answers a pre-vote',
    foundBy: ['liveness'],
    subject: 'replica',
    seed: 1,
    install: () => withoutMessages(({ type }) => type === 'pre-vote-reply'),
  },
  {
    name: 'no-campaign-guard',
    breaks: 'a node campaigns though a change of membership waits to be applied',
    foundBy: ['membership', 'elections', 'commits'],
    subject: 'replica',
    seed: 105,
    isSlow: true,
    install: () => replaced(RaftLog.prototype, 'hasUnappliedMembershipChange', () => () => false),
  },
  {
    name: 'no-term-rule',
    breaks: 'an entry of an earlier term is committed by counting',
    foundBy: ['commits', 'answers', 'linearizability'],
    subject: 'replica',
    seed: 7,
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
    name: 'one-disk-commits',
    breaks: 'a leader commits what one disk has',
    foundBy: ['commits'],
    subject: 'replica',
    seed: 1,
    install: () =>
      replaced(RaftLog.prototype, 'maybeCommit', (real) => {
        return function (this: RaftLog, { term }) {
          return real.call(this, { term, index: this.lastIndex });
        };
      }),
  },
  {
    name: 'append-anywhere',
    breaks: 'entries are taken though the one before them is another than the leader has',
    foundBy: ['logs', 'commits', 'promises'],
    subject: 'replica',
    seed: 151,
    isSlow: true,
    install: () =>
      replaced(RaftLog.prototype, 'maybeAppend', (real) => {
        return function (this: RaftLog, { index, term }, entries, commitIndex) {
          const own = this.termOrZero(index);
          const prev = { index, term: own === 0 ? term : own };
          return real.call(this, prev, entries, commitIndex);
        };
      }),
  },
  {
    name: 'heartbeat-beyond-match',
    breaks: 'a heartbeat commits what the follower is not known to share with the leader',
    foundBy: ['commits', 'states'],
    subject: 'replica',
    seed: 276,
    install: () =>
      changedReady((ready, { commitIndex }) => {
        const messages = ready.messages.map((message): Message => {
          return message.type === 'heartbeat' ? { ...message, commitIndex } : message;
        });
        return { ...ready, messages };
      }),
  },
  {
    name: 'apply-unstable',
    breaks: 'entries are applied before the own disk has them',
    foundBy: ['states'],
    subject: 'replica',
    seed: 1,
    install: () => {
      const anything = { allowUnstable: true };
      const log = RaftLog.prototype;
      return together(
        replaced(log, 'nextCommitted', (real) => {
          return function (this: RaftLog) {
            return real.call(this, anything);
          };
        }),
        replaced(log, 'hasNextCommitted', (real) => {
          return function (this: RaftLog) {
            return real.call(this, anything);
          };
        }),
        replaced(log, 'acceptApplying', (real) => {
          return function (this: RaftLog, entries) {
            real.call(this, entries, anything);
          };
        }),
        // The replica asserts that it can read what it applies: let it read what is being written.
        replaced(StoredLog.prototype, 'chained', (real) => {
          return function (this: StoredLog, entries) {
            const chained = real.call(this, entries);
            this.written(chained);
            return chained;
          };
        }),
      );
    },
  },
];

function changedReady(change: (ready: Ready, status: Status) => Ready): () => void {
  return replaced(RawNode.prototype, 'ready', (real) => {
    return function (this: RawNode) {
      const status = this.status();
      return change(real.call(this), status);
    };
  });
}

type Status = ReturnType<RawNode['status']>;

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
