// What a node is started with: its number, its limits in ticks and bytes, and what it may lean on.
// Time is ticks; randomness is a function; both come from outside, so a run can be repeated exactly.

import { assert } from '../base/assert.ts';
import type { Observe } from './events.ts';
import type { RaftStorage } from './log/storage.ts';
import type { NodeId } from './node-id.ts';

/** Byte limits may be Infinity. */
export interface RaftConfig {
  readonly id: NodeId;
  /**
   * Ticks without a word from the leader after which a follower campaigns: between this many and
   * one less than twice as many, drawn anew each time. Ten heartbeats is a good length.
   */
  readonly electionTicks: number;
  /** Ticks between the leader's heartbeats; fewer than electionTicks. */
  readonly heartbeatTicks: number;
  readonly storage: RaftStorage;
  /** What the state machine has applied already, when a node starts again. 0 for nothing. */
  readonly appliedIndex?: number;
  /**
   * Storage work leaves as messages to two workers whose replies are stepped later, so that writing
   * overlaps with everything else; committed entries are then applied only once the own disk has
   * them. Without it, each Ready must be carried out and confirmed by advance().
   */
  readonly asyncStorage?: boolean;
  /** Most bytes of entries in one append message; one entry always passes. */
  readonly maxMessageBytes: number;
  /** Most bytes of committed entries handed out and not yet applied; default maxMessageBytes. */
  readonly maxApplyingBytes?: number;
  /** Most payload bytes in the leader's log that are not committed; then proposals are refused. */
  readonly maxUncommittedBytes?: number;
  /** Most append messages on their way to one follower. */
  readonly maxInflightMessages: number;
  /** Most payload bytes on their way to one follower; at least maxMessageBytes. */
  readonly maxInflightBytes?: number;
  /**
   * The leader steps down when it hears from no quorum; voters hold to a leader they hear. Default true.
   */
  readonly checkQuorum?: boolean;
  /** A node asks whether it could win before it disturbs the others with a new term. Default true. */
  readonly preVote?: boolean;
  /**
   * quorum (default): each read is confirmed by a round of heartbeats. lease: the leader trusts
   * checkQuorum's ticks instead, which is wrong as soon as a process is paused.
   */
  readonly readMode?: 'quorum' | 'lease';
  /** Followers hand proposals on to the leader (default), or refuse them. */
  readonly forwardProposals?: boolean;
  /**
   * Compare a proposed membership change with the present membership (default). Turn off only where
   * something above raft orders and checks changes: a wrong one that is applied ends the process.
   */
  readonly validateChanges?: boolean;
  /**
   * Ask for votes before the new term is on the own disk, as published suites do: not safe where an answer can reach a
   * node that was started anew since it asked. Default false.
   */
  readonly asksBeforeDisk?: boolean;
  /** A leader that is removed or demoted becomes a follower at once. Default true. */
  readonly stepDownOnRemoval?: boolean;
  /** An integer from 0 up to, not including, `below`; each node must draw differently. */
  readonly random: (below: number) => number;
  readonly observe?: Observe;
}

/** A configuration with all defaults filled in. */
export type FullRaftConfig = Required<RaftConfig>;

/** Fills in the defaults; throws AssertionError where values contradict each other. */
export function fullConfig(config: RaftConfig): FullRaftConfig {
  const full: FullRaftConfig = {
    appliedIndex: 0,
    asyncStorage: false,
    maxApplyingBytes: config.maxMessageBytes,
    maxUncommittedBytes: Number.POSITIVE_INFINITY,
    maxInflightBytes: Number.POSITIVE_INFINITY,
    checkQuorum: true,
    preVote: true,
    readMode: 'quorum',
    forwardProposals: true,
    validateChanges: true,
    asksBeforeDisk: false,
    stepDownOnRemoval: true,
    observe: () => undefined,
    ...config,
  };
  const { id, electionTicks, heartbeatTicks, maxInflightMessages, maxApplyingBytes } = full;
  assert(Number.isSafeInteger(id) && id > 0, 'a node id is a positive integer', { id });
  assert(heartbeatTicks > 0, 'heartbeats need at least one tick between them', { heartbeatTicks });
  assert(electionTicks > heartbeatTicks, 'an election must take longer than a heartbeat', {
    electionTicks,
    heartbeatTicks,
  });
  assert(maxInflightMessages > 0, 'nothing could ever be sent', { maxInflightMessages });
  assert(maxApplyingBytes > 0, 'nothing could ever be applied', { maxApplyingBytes });
  assert(full.maxInflightBytes >= full.maxMessageBytes, 'one message must fit into the window', {
    maxInflightBytes: full.maxInflightBytes,
    maxMessageBytes: full.maxMessageBytes,
  });
  assert(full.readMode !== 'lease' || full.checkQuorum, 'lease reads need checkQuorum');
  return full;
}
