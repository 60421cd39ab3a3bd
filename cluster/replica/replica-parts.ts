// The parts of a replica, made in the order in which they need each other, and tied to the loop that owns
// them all. What a part has to tell becomes an input of the loop.

import { membersOf } from '../raft/membership/membership.ts';
import { NO_NODE, type NodeId } from '../raft/node-id.ts';
import type { RawNode } from '../raft/raw-node.ts';
import { membershipAtStart } from './group-at-start.ts';
import { electionMs, type GroupLimits, type GroupTiming, heartbeatMs } from './group-limits.ts';
import type { GroupRecord } from './group-record.ts';
import type { RaftReplicaOptions } from './group-replica.ts';
import { Campaigning } from './leading/campaigning.ts';
import { Contact } from './leading/contact.ts';
import { HandOver } from './leading/hand-over.ts';
import { successorsOf } from './leading/successors.ts';
import { MembershipProposals } from './requests/membership-proposals.ts';
import { PendingProposals } from './requests/pending-proposals.ts';
import { ReadBarriers } from './requests/read-barriers.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import type { Input } from './turn/inbox.ts';
import { loggingTo } from './turn/raft-events.ts';
import { createRaftNode } from './turn/raft-node.ts';
import { RaftWork } from './turn/raft-work.ts';
import { Ticker } from './turn/ticker.ts';
import { AppendWorker } from './workers/append-worker.ts';
import { type Applied, ApplyWorker } from './workers/apply-worker.ts';
import { DiskWatch } from './workers/disk-watch.ts';
import { StoredLog } from './workers/stored-log.ts';
import { type Spare, spareOf } from './workers/trimming.ts';

/** What the parts see of the loop. */
export interface ReplicaLoop<Outcome> {
  readonly give: (input: Input<Applied<Outcome>>) => void;
  readonly fail: (error: unknown) => void;
  readonly followStanding: () => void;
  /** As raft has heard of it. */
  readonly record: () => GroupRecord;
  /** As of the last Ready. */
  readonly leader: () => NodeId;
  /** Monotonic: when this node began, or ceased, to lead. */
  readonly ledSinceMs: () => number;
}

export interface ReplicaParts<Outcome> {
  readonly node: RawNode;
  readonly appends: AppendWorker;
  readonly applies: ApplyWorker<Outcome>;
  readonly work: RaftWork;
  readonly proposals: PendingProposals<Outcome>;
  readonly changes: MembershipProposals;
  readonly reads: ReadBarriers;
  readonly snapshots: Snapshots;
  readonly contact: Contact;
  readonly campaigning: Campaigning;
  readonly handOver: HandOver;
  readonly diskWatch: DiskWatch;
  readonly ticker: Ticker;
  /** Who could take the leadership over, the best one first. */
  readonly successors: () => readonly NodeId[];
}

export interface ReplicaPartsOptions<Outcome> {
  readonly options: RaftReplicaOptions<Outcome>;
  readonly limits: GroupLimits;
  readonly timing: GroupTiming;
  readonly loop: ReplicaLoop<Outcome>;
}

/** So many successors are tried before a leader that leaves gives up. */
const HAND_OVER_TRIES = 3;
/** A leader of whom nobody hears is replaced by then, and its writes end. */
const PATIENCE_ELECTIONS = 2;
/** Whoever answered one of the last heartbeats is there. */
const FRESH_HEARTBEATS = 3;
/** A follower asks its leader as often whether all is there that is committed. */
const PROOF_HEARTBEATS = 10;

/** A tick that is later than this was late by a pause, not by chance. */
function lateMsOf(timing: GroupTiming): number {
  return 2 * heartbeatMs(timing);
}

export function createParts<Outcome>(given: ReplicaPartsOptions<Outcome>): ReplicaParts<Outcome> {
  const { options, limits, timing, loop } = given;
  const { nodeId, clock, random, logger, send } = options;
  const core = createCore(given);
  const { node, successors, diskWatch } = core;
  return {
    ...core,
    work: new RaftWork({
      ...core,
      ...{ self: nodeId, send },
      onStanding: loop.followStanding,
      knowsLeader: () => loop.leader() !== NO_NODE,
    }),
    proposals: new PendingProposals({
      limits,
      patienceTicks: PATIENCE_ELECTIONS * timing.electionTicks,
    }),
    changes: new MembershipProposals({
      node,
      record: loop.record,
      successors,
      handOverTicks: 2 * timing.electionTicks,
    }),
    campaigning: new Campaigning({
      ...{ node, clock, random, diskWatch },
      spreadMs: timing.campaignSpreadMs,
      termOnDisk: () => options.log.hardState.term,
      isFounder: options.isFounder === true,
      onDue: () => loop.give({ kind: 'campaign' }),
    }),
    handOver: new HandOver({
      self: nodeId,
      clock,
      tryMs: electionMs(timing) / HAND_OVER_TRIES,
      limitMs: electionMs(timing),
      successors,
      transfer: (target) => loop.give({ kind: 'transfer', target }),
    }),
    ticker: new Ticker({
      clock,
      tickMs: timing.tickMs,
      lateMs: lateMsOf(timing),
      onTick: () => loop.give({ kind: 'tick' }),
      onPause: (lateByMs) => logger.warn({ lateByMs }, 'the process stood still'),
    }),
  };
}

type Core =
  | 'node'
  | 'appends'
  | 'applies'
  | 'reads'
  | 'snapshots'
  | 'contact'
  | 'diskWatch'
  | 'successors';

/** Raft's node with what it reads, and the workers that do what it wants. */
function createCore<Outcome>(
  given: ReplicaPartsOptions<Outcome>,
): Pick<ReplicaParts<Outcome>, Core> {
  const { options, limits, timing, loop } = given;
  const { log, machine, clock, random } = options;
  const diskWatch = new DiskWatch(timing.electionTicks);
  const contact = new Contact({
    clock,
    stillMs: timing.tickMs + lateMsOf(timing),
    freshMs: FRESH_HEARTBEATS * heartbeatMs(timing),
    proofMs: PROOF_HEARTBEATS * heartbeatMs(timing),
  });
  const snapshots: Snapshots = createSnapshots(given, {
    applies: () => applies,
    stored: () => stored,
  });
  const appliedIndex = machine.appliedEntry?.index ?? 0;
  const membership = membershipAtStart(options);
  contact.follow(membersOf(membership));
  const snapshot = () => snapshots.make();
  const stored: StoredLog = new StoredLog({ log, membership, appliedIndex, snapshot, limits });
  const node = createNode(given, { stored, appliedIndex, snapshots });
  const successors = (): readonly NodeId[] =>
    successorsOf({
      self: options.nodeId,
      progress: node.progress(),
      contact,
      freshMs: FRESH_HEARTBEATS * heartbeatMs(timing),
      goneMs: electionMs(timing),
    });
  const appends = new AppendWorker({
    log,
    stored,
    limits,
    spare: () => spare(given, { node, contact }),
    install: (taken, hardState) => snapshots.install(taken, hardState),
    onDone: (replies) => loop.give({ kind: 'stored', replies }),
    onFailed: loop.fail,
  });
  const applies: ApplyWorker<Outcome> = new ApplyWorker({
    machine,
    stored,
    limits,
    onDone: (applied) => loop.give({ kind: 'applied', applied }),
    onFailed: loop.fail,
  });
  const reads = new ReadBarriers({
    clock,
    random,
    countMax: limits.readCountMax,
    timeoutMs: timing.readTimeoutMs,
    retryMs: 3 * heartbeatMs(timing),
  });
  return { node, appends, applies, reads, snapshots, contact, diskWatch, successors };
}

function createSnapshots<Outcome>(
  { options, timing, loop }: ReplicaPartsOptions<Outcome>,
  // Both need a log that can make snapshots.
  later: { readonly applies: () => ApplyWorker<Outcome>; readonly stored: () => StoredLog },
): Snapshots {
  const { machine, sendSnapshot, clock, logger, log } = options;
  return new Snapshots({
    ...{ machine, sendSnapshot, clock, logger, log },
    retryMs: timing.snapshotRetryMs,
    onSent: (node, { delivered }) => loop.give({ kind: 'snapshot-sent', node, delivered }),
    onTaken: (taken) => loop.give({ kind: 'snapshot-taken', taken }),
    hold: () => later.applies().hold(),
    release: () => later.applies().release(),
    onReset: () => later.stored().wasReset(),
    onInstalled: (index) => loop.give({ kind: 'installed', index }),
  });
}

function createNode<Outcome>(
  { options, limits, timing }: ReplicaPartsOptions<Outcome>,
  parts: {
    readonly stored: StoredLog;
    readonly appliedIndex: number;
    readonly snapshots: Snapshots;
  },
): RawNode {
  const { nodeId, random, logger } = options;
  const { stored, appliedIndex, snapshots } = parts;
  const log = loggingTo(logger);
  return createRaftNode({
    ...{ nodeId, stored, appliedIndex, limits, timing, random },
    observe: (event) => {
      snapshots.observe(event);
      log(event);
    },
  });
}

function spare<Outcome>(
  { options, limits, timing, loop }: ReplicaPartsOptions<Outcome>,
  { node, contact }: { readonly node: RawNode; readonly contact: Contact },
): Spare {
  const aliveMs = 2 * electionMs(timing);
  const isNew = options.clock.monotonicMs() - loop.ledSinceMs() < aliveMs;
  return spareOf({
    status: node.status(),
    progress: node.progress(),
    // A new leader has not had the time to hear everybody.
    isAlive: (each) => isNew || (contact.sinceMs(each) ?? aliveMs) < aliveMs,
    lastBeyond: (bytes) => options.log.lastBeyond(bytes),
    limits,
  });
}
