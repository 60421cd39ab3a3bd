// When a node campaigns before its timeout: its link to the leader is closed, nobody else has a vote, or it
// has just founded its group. One whose disk does not answer never does: it could win, not lead.

import type { Clock } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import { isJoint } from '../../raft/membership/membership.ts';
import { NO_NODE, type NodeId } from '../../raft/node-id.ts';
import type { RawNode, Status } from '../../raft/raw-node.ts';
import type { DiskWatch } from '../workers/disk-watch.ts';
import { Campaigner } from './campaigner.ts';

/** Of a voter: that there is a later term, and its vote. */
const VOTE_WRITES = 2;

export interface CampaigningOptions {
  readonly node: RawNode;
  readonly clock: Clock;
  readonly random: Random;
  readonly spreadMs: number;
  readonly diskWatch: Pick<DiskWatch, 'isStalled'>;
  /** Before its own term is there, a candidate has asked nobody. */
  readonly termOnDisk: () => number;
  /** It has just founded its group. */
  readonly isFounder: boolean;
  /** The loop is to call `attempt`. */
  readonly onDue: () => void;
}

export class Campaigning {
  readonly #options: CampaigningOptions;
  readonly #campaigner: Campaigner;
  #isFounding: boolean;
  /** The term that the last attempt is to open, and when it began; 0 when the others have been asked for it. */
  #opening = { term: 0, sinceMs: 0 };

  constructor(options: CampaigningOptions) {
    this.#options = options;
    this.#campaigner = new Campaigner(options);
    this.#isFounding = options.isFounder;
  }

  onLinkClosed(peer: NodeId): void {
    const { node } = this.#options;
    const status = node.status();
    if (status.leader !== peer || peer === status.id) return;
    // From now on this node does not speak against another leader.
    node.forgetLeader();
    this.#campaigner.begin(status);
  }

  attempt(): void {
    const { node, diskWatch } = this.#options;
    const status = node.status();
    // A leader knows itself. A candidate first asks anew whether it could win, and opens no term before.
    if (status.leader !== NO_NODE || diskWatch.isStalled) return;
    if (status.standing === 'candidate' && !this.#hasAsked(status)) {
      this.#campaigner.putOff();
      return;
    }
    this.#opening = { term: status.term + 1, sinceMs: this.#options.clock.monotonicMs() };
    if (this.#campaigner.isTimely(status)) node.campaign();
    this.#campaigner.again();
  }

  /**
   * Something is on the disk: if it is the term of a campaign, the others are asked only now, and have their time.
   * Their disks may be as slow as the own one, and have two things to write.
   */
  onStored(): void {
    const status = this.#options.node.status();
    const { term, sinceMs } = this.#opening;
    if (status.standing !== 'candidate' || status.term !== term || !this.#hasAsked(status)) return;
    this.#opening = { term: 0, sinceMs: 0 };
    const tookMs = this.#options.clock.monotonicMs() - sinceMs;
    this.#campaigner.putOff(VOTE_WRITES * tookMs);
  }

  #hasAsked({ term }: Pick<Status, 'term'>): boolean {
    return this.#options.termOnDisk() >= term;
  }

  /** The only voter has nobody to wait for. */
  attemptIfAlone(): void {
    const { node, diskWatch } = this.#options;
    const { id, leader, standing, membership } = node.status();
    const isAlone = membership.voters.length === 1 && membership.voters[0] === id;
    if (!isAlone || isJoint(membership) || leader !== NO_NODE || standing !== 'follower') return;
    if (!diskWatch.isStalled) node.campaign();
  }

  /** It knows the members now. The others may not be there yet: a founder tries again then. */
  onApplied(): void {
    this.attemptIfAlone();
    if (!this.#isFounding) return;
    this.#isFounding = false;
    this.#campaigner.begin(this.#options.node.status());
  }

  stop(): void {
    this.#campaigner.stop();
  }
}
