// Who takes part in the federation and where each is found, as this server sees it: what the log of its own
// datacenter says, and before that the settings, and what others have told meanwhile.

import type { Directory } from '../../../cluster/federation/directory/directory.ts';
import type { Member } from '../../../cluster/member/group-member.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import type { Primacy } from '../../service/datacenters/federation.ts';
import {
  clusterIdOf,
  isPrimary,
  type Replication,
  removedOf,
} from '../../state/global-log/replication.ts';
import type { StateMachine } from '../../state/machine.ts';
import type { FederationPlan } from '../settings/federation-settings.ts';
import { primaryAddressesOf } from './calls/primary-addresses.ts';
import { primacyOf } from './federation-role.ts';

export interface FederationViewOptions {
  readonly plan: FederationPlan;
  readonly machine: Pick<StateMachine, 'replication' | 'position'>;
  readonly member: Pick<Member<unknown>, 'members'>;
  readonly directory: Pick<Directory, 'addressesOf' | 'datacenters' | 'hasOutrun' | 'primary'>;
  /** There is a federation already, in which the settings make nobody the primary. */
  readonly isKeptOut: () => boolean;
  /** Datacenters that this server has let in to follow the global log. */
  readonly followers: () => readonly string[];
}

export class FederationView {
  readonly #options: FederationViewOptions;

  constructor(options: FederationViewOptions) {
    this.#options = options;
  }

  /** Whether this datacenter writes what all share. */
  get isPrimary(): boolean {
    const { isKeptOut, plan } = this.#options;
    const replication = this.#replication();
    if (replication !== undefined) return isPrimary(replication);
    return this.primary().datacenter === plan.datacenter && !isKeptOut();
  }

  primary(): Primacy {
    const { machine, plan } = this.#options;
    return primacyOf(this.#replication(), plan, machine.position());
  }

  /** The own one first; without those that were removed. */
  datacenters(): readonly string[] {
    const { directory, followers, plan } = this.#options;
    const known = this.#replication()?.datacenters.map(({ name }) => name) ?? [];
    const told = directory.datacenters();
    const all = [plan.datacenter, this.primary().datacenter, ...known, ...followers(), ...told];
    const isPart = (each: string): boolean => each === plan.datacenter || !this.isRemoved(each);
    return [...new Set(all)].filter(isPart);
  }

  /** Whom others follow is not: refusing that reign would leave this datacenter alone with a past that was lost. */
  isRemoved(datacenter: string): boolean {
    const isListed = removedOf(this.#replication()).includes(datacenter);
    return isListed && !this.isFollowed(datacenter);
  }

  /**
   * Whether others follow it in a reign that began behind what this datacenter knows: who was removed, and which
   * cluster has its name, that reign knows, and the own log does not.
   */
  isFollowed(datacenter: string): boolean {
    return this.#options.directory.hasOutrun(datacenter, this.primary().epoch);
  }

  /** The cluster that has the name of another datacenter; undefined where the global log does not say. */
  clusterIdOf(datacenter: string): string | undefined {
    return clusterIdOf(this.#replication(), datacenter);
  }

  /** Whose promises count, as the global log has it; undefined while there is none. */
  voters(): readonly string[] | undefined {
    const voters = this.#replication()?.datacenters.filter(({ isVoter }) => isVoter);
    return voters?.map(({ name }) => name);
  }

  /** The likeliest place first. */
  primaryAddresses(): readonly NetAddress[] {
    const { directory, plan } = this.#options;
    return primaryAddressesOf({
      datacenter: plan.datacenter,
      isPrimary: this.isPrimary,
      primary: this.primary(),
      replication: this.#replication(),
      told: directory.primary(),
      addressesOf: (datacenter) => this.addressesOf(datacenter),
    });
  }

  addressesOf(datacenter: string): readonly NetAddress[] {
    const { directory, plan } = this.#options;
    if (datacenter === plan.datacenter) return this.ownAddresses();
    const told = directory.addressesOf(datacenter);
    // At first nothing is known but what the settings say, and it may be the other datacenter.
    return told.length === 0 && datacenter === this.primary().datacenter ? plan.retryJoin : told;
  }

  /** The leader's first. */
  ownAddresses(): readonly NetAddress[] {
    const all = this.#options.member.members();
    const leaders = all.filter(({ isLeader }) => isLeader);
    const others = all.filter(({ isLeader, isAlive }) => !isLeader && isAlive);
    return [...leaders, ...others].map(({ address }) => address);
  }

  #replication(): Replication | undefined {
    return this.#options.machine.replication();
  }
}
