// When a node campaigns before its timeout: its link to the leader is closed, nobody else has a vote, or it
// has just founded its group. One whose disk does not answer never does: it could win, not lead.

import type { Clock } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import { isJoint } from '../../raft/membership/membership.ts';
import { NO_NODE, type NodeId } from '../../raft/node-id.ts';
import type { RawNode } from '../../raft/raw-node.ts';
import type { DiskWatch } from '../workers/disk-watch.ts';
import { Campaigner } from './campaigner.ts';

export interface CampaigningOptions {
  readonly node: RawNode;
  readonly clock: Clock;
  readonly random: Random;
  readonly spreadMs: number;
  readonly diskWatch: Pick<DiskWatch, 'isStalled'>;
  /** It has just founded its group. */
  readonly isFounder: boolean;
  /** The loop is to call `attempt`. */
  readonly onDue: () => void;
}

export class Campaigning {
  readonly #options: CampaigningOptions;
  readonly #campaigner: Campaigner;
  #isFounding: boolean;

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
    if (this.#campaigner.isTimely(status)) node.campaign();
    this.#campaigner.again();
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
