// The operator of a replica's group: a node that was replaced is taken out and the new one in, as
// learner first; now and then a voter is made a learner for a while. One change at a time, asked of
// whoever leads.

import { membersOf } from '../../../cluster/raft/membership/membership.ts';
import type { MemberChange } from '../../../cluster/raft/membership/membership-change.ts';
import { encodeGroupContext } from '../../../cluster/replica/group-record.ts';
import type { SimGroup } from '../run/sim-group.ts';
import type { LiveReplica, ReplicaSubject } from '../subject/replica-subject.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { Stream } from '../world/stream.ts';
import type { World } from '../world/world.ts';

export interface GroupKeeperOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly subject: ReplicaSubject;
  readonly everyMs: number;
  /** How likely it is, at each look, that somebody is demoted. */
  readonly demotionRate: number;
}

/** A learner is promoted when it lacks no more than that. */
const LAG_MAX = 20;

export class GroupKeeper {
  readonly #options: GroupKeeperOptions;
  readonly #stream: Stream;
  #isStopped = false;
  changeCount = 0;

  constructor(options: GroupKeeperOptions) {
    this.#options = options;
    this.#stream = options.world.stream.fork('keeper');
  }

  begin(): void {
    this.#look();
  }

  /** Nothing more is asked for; what is under way may still happen. */
  stop(): void {
    this.#isStopped = true;
  }

  #look(): void {
    const { world, everyMs } = this.#options;
    world.time.after(this.#stream.between(0.5, 1.5) * everyMs, () => {
      if (this.#isStopped) return;
      void this.#step().then(() => this.#look());
    });
  }

  async #step(): Promise<void> {
    const { world, group, everyMs } = this.#options;
    const leader = group.leader(world.hosts);
    if (leader === undefined) return;
    await group.ask(leader, 20 * everyMs, async (node) => {
      const { replica } = node as LiveReplica;
      const changes = this.#changesAt(node as LiveReplica, leader);
      if (changes.length === 0) return;
      const context = encodeGroupContext({ members: this.#records(changes) });
      await replica.proposeMembership({ transition: 'auto', changes, context });
      this.changeCount += 1;
    });
  }

  #records(changes: readonly MemberChange[]): ReturnType<ReplicaSubject['recordOf']>[] {
    const { subject, world } = this.#options;
    return world.hosts
      .filter((host) => changes.some(({ node }) => node === subject.nodeOf(host)))
      .map((host) => subject.recordOf(host));
  }

  #changesAt({ replica }: LiveReplica, leader: SimHost): readonly MemberChange[] {
    const { subject, world, demotionRate } = this.#options;
    const { membership } = replica.groupRecord();
    const present = world.hosts.map((host) => subject.nodeOf(host));
    const known = membersOf(membership);
    const gone = known.find((node) => !present.includes(node));
    const fresh = present.find((node) => !known.includes(node));
    if (gone !== undefined || fresh !== undefined) {
      const removal = gone === undefined ? [] : [{ kind: 'remove' as const, node: gone }];
      const addition = fresh === undefined ? [] : [{ kind: 'add-learner' as const, node: fresh }];
      return [...removal, ...addition];
    }
    const { followers } = replica.groupStatus();
    const { lastIndex } = replica.status();
    const ready = membership.learners.find((node) =>
      followers.some((each) => each.node === node && each.matchIndex + LAG_MAX >= lastIndex),
    );
    if (ready !== undefined && this.#stream.chance(0.7))
      return [{ kind: 'add-voter', node: ready }];
    const own = subject.nodeOf(leader);
    const others = membership.voters.filter((node) => node !== own);
    if (others.length < 2 || !this.#stream.chance(demotionRate)) return [];
    return [{ kind: 'add-learner', node: this.#stream.pick(others) }];
  }
}
