// What must hold at every moment of a run, told from disks and frames, and from what leaders count:
//   elections    one leader a term; one vote a node and term; term, vote and commit never go back on a disk
//   promises     a granted vote and an acknowledged entry are on the disk before the word of it leaves, and so is
//                the term for which a vote is asked, with the log that it is asked with
//   commits      what is committed is on a quorum of disks, is one history, and every later leader has it
//   logs         two logs that agree about an entry's index and term agree about all before it
//   states       equal states at equal applied entries; nothing is applied that the own log does not hold
//   membership   memberships that follow each other share every quorum; each applied one is the log's;
//                nobody campaigns before it has applied the changes that it knows to be committed
// The names are those of the checkers in docs/TESTING.md.

import {
  decodeEntry,
  ENTRY_KEYS_END,
  entryKey,
  GENERATION_KEY,
  HARD_STATE_KEY,
  type HardState,
  indexOfKey,
  type LogEntry,
  type LogWitness,
} from '../../../cluster/log/log-entry.ts';
import type { KvWrite } from '../../../cluster/platform/kv.ts';
import type { Membership } from '../../../cluster/raft/membership/membership.ts';
import { decodeMembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type {
  AppendReply,
  Message,
  VoteMessage,
  VoteReply,
} from '../../../cluster/raft/message.ts';
import {
  EMPTY_GROUP,
  encodeGroupRecord,
  type GroupRecord,
  nextGroupRecord,
} from '../../../cluster/replica/group-record.ts';
import type { ReplicaStatus } from '../../../cluster/replica/replica.ts';
import { isStateStore, LOG_STORE, type Subject, stateStoreName } from '../subject/subject.ts';
import { textOf } from '../world/key-text.ts';
import type { SimStore } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import { type LogImage, logOn } from './log-image.ts';
import { everyQuorumMeets, isQuorumOf } from './quorums.ts';
import { stateDigest } from './state-digest.ts';
import type { Violations } from './violations.ts';

const ENTRY_FROM = textOf(entryKey(0));
const ENTRY_TO = textOf(ENTRY_KEYS_END);
const HARD_STATE = textOf(HARD_STATE_KEY);
const GENERATION = textOf(GENERATION_KEY);

/** Of the entries that a group begins with; nobody voted for them. */
const FOUNDING_TERM = 1;

/** A committed entry, with who belongs to the group as of it. */
interface Committed {
  readonly entry: LogEntry;
  readonly group: GroupRecord;
  /** In which it was committed, at the latest: leaders of later terms have it. */
  readonly inTerm: number;
}

/** An entry that came to lie on a disk, and the hash of the one before it. */
interface Landed {
  readonly entry: LogEntry;
  readonly previousHash: string;
}

/** What one disk said before. */
interface DiskMemory {
  readonly diskNumber: number;
  hardState: HardState;
  appliedIndex: number;
}

export interface GroupChecksOptions {
  readonly subject: Subject;
  readonly violations: Violations;
  readonly hosts: () => readonly SimHost[];
  /** What a running node holds, on disk or not. */
  readonly statusOf: (host: SimHost) => ReplicaStatus | undefined;
}

export class GroupChecks {
  readonly #subject: Subject;
  readonly #violations: Violations;
  readonly #leaderByTerm = new Map<number, string>();
  /** By host, disk and term: whom the vote went to. */
  readonly #voteByVoter = new Map<string, number>();
  /** By index and term: the hash of the entry, which names all before it. */
  readonly #hashByPlace = new Map<string, string>();
  readonly #landedByHash = new Map<string, Landed>();
  /** By leader's term and index: the term of the entry that it sent for that place. */
  readonly #sentTerms = new Map<string, number>();
  readonly #committed: Committed[] = [];
  /** Disks as they were before they were damaged or replaced: what they promised counted. */
  readonly #lost: (readonly [number, LogImage])[] = [];
  /** As of the change before the last one. */
  #groupBefore: GroupRecord = EMPTY_GROUP;
  readonly #memoryByHost = new Map<SimHost, DiskMemory>();
  /** By applied index: what the state's rows come to, and who said so first. */
  readonly #digestByIndex = new Map<number, { readonly digest: string; readonly host: string }>();
  readonly #options: GroupChecksOptions;

  constructor(options: GroupChecksOptions) {
    this.#options = options;
    this.#subject = options.subject;
    this.#violations = options.violations;
  }

  /** Knows what this one knows by now, and from there on goes its own way. */
  copy(): GroupChecks {
    const copy = new GroupChecks(this.#options);
    addAll(copy.#leaderByTerm, this.#leaderByTerm);
    addAll(copy.#voteByVoter, this.#voteByVoter);
    addAll(copy.#hashByPlace, this.#hashByPlace);
    addAll(copy.#landedByHash, this.#landedByHash);
    addAll(copy.#sentTerms, this.#sentTerms);
    addAll(copy.#digestByIndex, this.#digestByIndex);
    for (const [host, memory] of this.#memoryByHost) copy.#memoryByHost.set(host, { ...memory });
    copy.#committed.push(...this.#committed);
    copy.#lost.push(...this.#lost);
    copy.#groupBefore = this.#groupBefore;
    return copy;
  }

  /** In order, from index 1. */
  get committed(): readonly Committed[] {
    return this.#committed;
  }

  get leaderCount(): number {
    return this.#leaderByTerm.size;
  }

  get comparedStateCount(): number {
    return this.#digestByIndex.size;
  }

  /** What the rows of a state came to that has applied everything up to there. */
  digestAt(index: number): string | undefined {
    return this.#digestByIndex.get(index)?.digest;
  }

  /** Whether any disk ever held an entry of that term at that index. */
  isKnown(index: number, term: number): boolean {
    return this.#hashByPlace.has(`${index}/${term}`);
  }

  /**
   * A running leader has counted a quorum for an entry of its own term: that commits the entry, and all
   * before it. Its disk may say so much later, and who can be spared is to be known now.
   */
  onCounted(host: SimHost, index: number, term: number): void {
    const chain: LogEntry[] = [];
    let hash = this.#hashByPlace.get(`${index}/${term}`);
    for (let at = index; at > this.#committed.length; at -= 1) {
      const landed = hash === undefined ? undefined : this.#landedByHash.get(hash);
      if (landed === undefined) return;
      chain.push(landed.entry);
      hash = landed.previousHash;
    }
    const last = this.#committed[Math.min(index, this.#committed.length) - 1];
    const goesOn = hash === undefined || last === undefined || textOf(last.entry.hash) === hash;
    this.#violations.require(goesOn, 'commits', () => {
      return `${host.name} counts entry ${index} of term ${term}, which does not follow what is committed`;
    });
    if (goesOn) for (const entry of chain.reverse()) this.#commit(host, entry, term);
  }

  /** Who belongs to the group as of what a host has applied; undefined where that is nothing. */
  believedBy(host: SimHost): GroupRecord | undefined {
    const store = host.disk.store(stateStoreName(logOn(host).generation));
    const standing = store === undefined ? undefined : this.#subject.standingIn(store);
    return this.#committed[(standing?.appliedEntry.index ?? 0) - 1]?.group;
  }

  /** The host's disk is about to be damaged, or replaced. */
  onLosing(host: SimHost): void {
    this.#lost.push([this.#subject.nodeOf(host), logOn(host)]);
  }

  onLanded(host: SimHost, store: SimStore, writes: readonly KvWrite[]): void {
    if (store.name === LOG_STORE) this.#onLogLanded(host, store, writes);
    else if (isStateStore(store.name)) this.#onStateLanded(host, store);
  }

  onMessage(host: SimHost, message: Message): void {
    switch (message.type) {
      case 'vote-reply':
        if (!message.rejected) this.#onVote(host, message);
        return;
      case 'append-reply':
        if (message.rejection === undefined) this.#onAcknowledged(host, message);
        return;
      case 'append':
        this.#onLeaderSpoke(host, message.term);
        this.#noteSent(message.term, message.prevIndex, message.prevTerm);
        for (const { index, term } of message.entries) this.#noteSent(message.term, index, term);
        return;
      case 'vote':
        this.#onAsked(host, message);
        this.#onCampaign(host);
        return;
      case 'pre-vote':
        this.#onCampaign(host);
        return;
      case 'heartbeat':
      case 'snapshot':
      case 'timeout-now':
        this.#onLeaderSpoke(host, message.term);
        return;
      default:
    }
  }

  #onLeaderSpoke(host: SimHost, term: number): void {
    const name = nameOf(host);
    const known = this.#leaderByTerm.get(term);
    if (known === name) return;
    this.#violations.require(known === undefined, 'elections', () => {
      return `${known} and ${name} both lead in term ${term}`;
    });
    this.#leaderByTerm.set(term, name);
    // Of a node that is being stopped, nothing newer is told than what it was before.
    const status = this.#options.statusOf(host);
    const lastIndex = status?.term === term ? status.lastIndex : undefined;
    // Who was elected before an entry was committed need not have it, and may only now hear that it leads.
    const promised = this.#committed.findLast(({ inTerm }) => inTerm < term)?.entry.index ?? 0;
    this.#violations.require(lastIndex === undefined || lastIndex >= promised, 'commits', () => {
      return `${name} leads in term ${term} with entries up to ${lastIndex}, committed are ${promised}`;
    });
  }

  #onVote(host: SimHost, { term, to }: VoteReply): void {
    const voter = `${nameOf(host)}/${term}`;
    const before = this.#voteByVoter.get(voter) ?? to;
    this.#voteByVoter.set(voter, to);
    this.#violations.require(before === to, 'elections', () => {
      return `${host.name} votes for ${to} in term ${term}, after it voted for ${before}`;
    });
    const kept = logOn(host).hardState;
    const isKept = kept.term > term || (kept.term === term && kept.vote === to);
    this.#violations.require(isKept, 'promises', () => {
      return `${host.name} votes for ${to} in term ${term} while its disk says ${shown(kept)}`;
    });
  }

  /** Whoever forgets in a crash that it asked asks anew in that term, perhaps with less, and is answered twice. */
  #onAsked(host: SimHost, { term, from, lastTerm, lastIndex }: VoteMessage): void {
    const log = logOn(host);
    const kept = log.hardState;
    const isKept = kept.term > term || (kept.term === term && kept.vote === from);
    this.#violations.require(isKept, 'promises', () => {
      return `${host.name} asks for votes in term ${term} while its disk says ${shown(kept)}`;
    });
    // What it asked with may be replaced as soon as another one leads.
    const status = this.#options.statusOf(host);
    if (status?.standing !== 'candidate' || status.term !== term) return;
    const isThere = lastIndex <= log.start.index || log.entry(lastIndex)?.term === lastTerm;
    this.#violations.require(isThere, 'promises', () => {
      return `${host.name} asks for votes with entry ${lastIndex} of term ${lastTerm}, which its disk lacks`;
    });
  }

  #onAcknowledged(host: SimHost, { term, index }: AppendReply): void {
    const log = logOn(host);
    const kept = log.hardState;
    this.#violations.require(kept.term >= term, 'promises', () => {
      return `${host.name} acknowledges entry ${index} in term ${term}, its disk says ${shown(kept)}`;
    });
    if (kept.term > term || index <= log.start.index) return;
    const entry = log.entry(index);
    const sentTerm = this.#sentTerms.get(`${term}/${index}`) ?? entry?.term;
    this.#violations.require(entry !== undefined && entry.term === sentTerm, 'promises', () => {
      const found = entry === undefined ? 'nothing' : `an entry of term ${entry.term}`;
      return `${host.name} acknowledges entry ${index} of term ${sentTerm}, its disk holds ${found}`;
    });
  }

  /** Its voters might be some that a change has done away with, of which it knows that it is committed. */
  #onCampaign(host: SimHost): void {
    const status = this.#options.statusOf(host);
    if (status?.standing !== 'candidate') return;
    const { appliedIndex, commitIndex } = status;
    const pending = this.#committed
      .slice(appliedIndex, commitIndex)
      .find(({ entry }) => entry.type === 'membership');
    this.#violations.require(pending === undefined, 'membership', () => {
      return `${host.name} campaigns at ${appliedIndex}, and knows that the change at ${pending?.entry.index} is committed`;
    });
  }

  #noteSent(leaderTerm: number, index: number, term: number): void {
    if (index > 0) this.#sentTerms.set(`${leaderTerm}/${index}`, term);
  }

  #onLogLanded(host: SimHost, store: SimStore, writes: readonly KvWrite[]): void {
    // What is said to be on disk and is not, is checked when it is relied upon.
    if (store.unsynced.length > 0) return;
    const memory = this.#memoryOf(host);
    for (const write of writes) {
      const key = textOf(write.key);
      if (write.type === 'put' && key >= ENTRY_FROM && key < ENTRY_TO) {
        this.#onEntryLanded(host, memory, decodeEntry(write.value, indexOfKey(write.key)));
      }
    }
    const keys = writes.map(({ key }) => textOf(key));
    if (keys.includes(HARD_STATE)) this.#onHardState(host, memory);
    if (keys.includes(GENERATION)) this.#onSwitched(host);
  }

  /** A state that came in takes over. */
  #onSwitched(host: SimHost): void {
    const store = host.disk.store(stateStoreName(logOn(host).generation));
    if (store !== undefined) this.#onStateLanded(host, store);
  }

  #onEntryLanded(
    host: SimHost,
    memory: DiskMemory,
    { entry, previousHash }: ReturnType<typeof decodeEntry>,
  ): void {
    const place = `${entry.index}/${entry.term}`;
    const hash = textOf(entry.hash);
    const known = this.#hashByPlace.get(place) ?? hash;
    this.#hashByPlace.set(place, hash);
    this.#landedByHash.set(hash, { entry, previousHash: textOf(previousHash) });
    this.#violations.require(known === hash, 'logs', () => {
      return `${host.name} has another log before entry ${entry.index} of term ${entry.term}`;
    });
    const committed = this.#committed[entry.index - 1];
    if (committed === undefined || entry.index > memory.hardState.commit) return;
    this.#violations.require(isSame(committed.entry, entry), 'commits', () => {
      return `${host.name} replaces entry ${entry.index}, which it knows to be committed`;
    });
  }

  #onHardState(host: SimHost, memory: DiskMemory): void {
    const before = memory.hardState;
    const now = logOn(host).hardState;
    memory.hardState = now;
    const keepsVote = now.term > before.term || before.vote === 0 || now.vote === before.vote;
    const goesOn = now.term >= before.term && keepsVote && now.commit >= before.commit;
    this.#violations.require(goesOn, 'elections', () => {
      return `the disk of ${host.name} went back from ${shown(before)} to ${shown(now)}`;
    });
    this.#commitThrough(host, now.commit);
  }

  /** The disk says that all up to there is committed; it may hear of it first, as a follower's does. */
  #commitThrough(host: SimHost, index: number): void {
    const known = this.#committed[index - 1];
    if (known !== undefined) {
      this.#violations.require(logOn(host).holds(known.entry), 'commits', () => {
        return `${host.name} commits another entry ${index} than ${known.entry.term}/${index}`;
      });
      return;
    }
    const log = logOn(host);
    const latestTerm = Math.max(0, ...this.#leaderByTerm.keys());
    for (let next = this.#committed.length + 1; next <= index; next += 1) {
      const entry = log.entry(next);
      if (entry === undefined) return;
      this.#commit(host, entry, Math.max(entry.term, latestTerm));
    }
  }

  #commit(host: SimHost, entry: LogEntry, inTerm: number): void {
    const before = this.#committed.at(-1)?.group ?? EMPTY_GROUP;
    const group = groupAfter(before, entry);
    this.#committed.push({ entry, group, inTerm });
    if (entry.type === 'membership') this.#onMembership(before, group);
    this.#requireOnQuorum(host, entry, before);
    if (group !== before) this.#groupBefore = before;
  }

  /**
   * Counted by the membership before the entry, or by the one before that: a change counts from its
   * application on, and one at a time is under way. A founding entry is committed by itself.
   */
  #requireOnQuorum(host: SimHost, entry: LogEntry, group: GroupRecord): void {
    if (group.membership.voters.length === 0 || entry.term === FOUNDING_TERM) return;
    const present = this.#options
      .hosts()
      .map((each) => [this.#subject.nodeOf(each), logOn(each)] as const);
    const holders = [...present, ...this.#lost]
      .filter(([, log]) => log.holds(entry))
      .map(([node]) => node);
    const isOnQuorum = [group, this.#groupBefore].some(({ membership }) => {
      return membership.voters.length > 0 && isQuorumOf(holders, membership);
    });
    this.#violations.require(isOnQuorum, 'commits', () => {
      const says = said(group.membership);
      return `${host.name} takes entry ${entry.index} for committed, but of ${says} only ${holders.join()} hold it`;
    });
  }

  #onMembership(before: GroupRecord, after: GroupRecord): void {
    if (before.membership.voters.length === 0) return;
    this.#violations.require(
      everyQuorumMeets(before.membership, after.membership),
      'membership',
      () => `${said(before.membership)} is followed by ${said(after.membership)}`,
    );
  }

  /** Of a state that is still coming in nothing is known. */
  #onStateLanded(host: SimHost, store: SimStore): void {
    if (store.unsynced.length > 0 || store.name !== stateStoreName(logOn(host).generation)) return;
    const standing = this.#subject.standingIn(store);
    if (standing === undefined) return;
    const { appliedEntry, groupRecord } = standing;
    this.#onApplied(host, appliedEntry);
    this.#compareState(host, store, appliedEntry.index);
    const committed = this.#committed[appliedEntry.index - 1];
    if (committed === undefined || groupRecord === undefined) return;
    const isLogs = Buffer.compare(encodeGroupRecord(committed.group), groupRecord) === 0;
    this.#violations.require(isLogs, 'membership', () => {
      return `the group record of ${host.name} at ${appliedEntry.index} is not what the log says`;
    });
  }

  #onApplied(host: SimHost, applied: LogWitness): void {
    const memory = this.#memoryOf(host);
    this.#violations.require(applied.index >= memory.appliedIndex, 'states', () => {
      return `${host.name} applied ${memory.appliedIndex} and now stands at ${applied.index}`;
    });
    memory.appliedIndex = applied.index;
    this.#violations.require(logOn(host).holds(applied), 'states', () => {
      return `${host.name} applied entry ${applied.index} of term ${applied.term}, which its own log does not hold`;
    });
    this.#commitThrough(host, applied.index);
    const known = this.#committed[applied.index - 1];
    this.#violations.require(known === undefined || isSame(known.entry, applied), 'commits', () => {
      return `${host.name} applied another entry ${applied.index} than is committed`;
    });
  }

  #compareState(host: SimHost, store: SimStore, index: number): void {
    const digest = stateDigest(store.rows);
    const known = this.#digestByIndex.get(index);
    if (known === undefined) {
      this.#digestByIndex.set(index, { digest, host: host.name });
      return;
    }
    this.#violations.require(known.digest === digest, 'states', () => {
      return `the states of ${known.host} and ${host.name} differ at entry ${index}`;
    });
  }

  #memoryOf(host: SimHost): DiskMemory {
    const known = this.#memoryByHost.get(host);
    if (known?.diskNumber === host.diskNumber) return known;
    const memory = {
      diskNumber: host.diskNumber,
      hardState: { term: 0, vote: 0, commit: 0 },
      appliedIndex: 0,
    };
    this.#memoryByHost.set(host, memory);
    return memory;
  }
}

export function groupAfter(group: GroupRecord, { type, payload }: LogEntry): GroupRecord {
  if (type !== 'membership') return group;
  const change = decodeMembershipChange(payload);
  return change === undefined ? group : nextGroupRecord(group, change);
}

function addAll<Key, Value>(to: Map<Key, Value>, from: ReadonlyMap<Key, Value>): void {
  for (const [key, value] of from) to.set(key, value);
}

function nameOf(host: SimHost): string {
  return `${host.name}/${host.diskNumber}`;
}

function isSame(left: LogWitness, right: LogWitness): boolean {
  return left.term === right.term && Buffer.compare(left.hash, right.hash) === 0;
}

function shown({ term, vote, commit }: HardState): string {
  return `term ${term}, vote ${vote}, commit ${commit}`;
}

function said({ voters, votersOutgoing }: Membership): string {
  return votersOutgoing.length === 0
    ? `voters ${voters.join()}`
    : `voters ${voters.join()} with ${votersOutgoing.join()}`;
}
