// What this node tells over HTTP about itself and the others of its group, as far as it knows.

import type { Member, MemberView } from '../../cluster/member/group-member.ts';
import { addressText, type NetAddress } from '../../cluster/platform/net.ts';
import type { MemberInfo, NodeInfo } from '../http/serving/node-info.ts';
import type { Federation } from '../service/datacenters/federation.ts';
import type { StateView } from '../state/view.ts';
import type { Settings } from './settings/settings.ts';

type Group = Pick<Member<unknown>, 'standing' | 'members' | 'status' | 'address' | 'otherClusters'>;

export interface NodeInfoParts {
  readonly settings: Settings;
  readonly nodeId: string;
  /** The version of the program. */
  readonly version: string;
  /** Up to which feature level the program reads. */
  readonly reads: number;
  readonly group: Group;
  readonly view: StateView;
  readonly federation: Pick<Federation, 'primary' | 'datacenters'>;
  /** Of the HTTP interface; undefined before it listens. */
  httpAddress(): NetAddress | undefined;
  /** Why the node is not ready, apart from its HTTP interface. */
  notReadyReasons(): readonly string[];
}

export class GroupNodeInfo implements NodeInfo {
  readonly #parts: NodeInfoParts;

  constructor(parts: NodeInfoParts) {
    this.#parts = parts;
  }

  get nodeName(): string {
    return this.#parts.settings.node_name;
  }

  get nodeId(): string {
    return this.#parts.nodeId;
  }

  get datacenter(): string {
    return this.#parts.settings.datacenter;
  }

  get primaryDatacenter(): string {
    return this.#parts.federation.primary().datacenter;
  }

  get version(): string {
    return this.#parts.version;
  }

  leader(): string | undefined {
    const at = this.#parts.group.standing();
    if (at.kind !== 'member' || at.leader === undefined) return undefined;
    const address = at.isLeader ? this.#ownAddress(at.leader.address) : at.leader.address;
    return address === undefined ? undefined : addressText(address);
  }

  peers(): readonly string[] {
    const voters = this.members().filter(({ isVoter, port }) => isVoter && port > 0);
    return voters.map(({ address, port }) => addressText({ host: address, port }));
  }

  members(): readonly MemberInfo[] {
    const members = this.#parts.group.members();
    const all = members.map((member) => this.#infoOf(member));
    return members.some(({ isSelf }) => isSelf) ? all : [this.#ownInfo(), ...all];
  }

  datacenters(): readonly string[] {
    return this.#parts.federation.datacenters();
  }

  config(): Readonly<Record<string, string | number | boolean>> {
    const { settings } = this.#parts;
    return {
      ACLsEnabled: settings['acl.enabled'],
      ACLDefaultPolicy: settings['acl.default_policy'],
      NamespacesEnabled: settings['namespaces.enabled'],
      HTTPDialect: settings['http.dialect'],
      BootstrapExpect: settings.bootstrap_expect,
      RaftElectionTimeoutMs: Number(settings['raft.election_timeout']) / 1e6,
    };
  }

  stats(): Readonly<Record<string, Readonly<Record<string, string>>>> {
    const { group, view } = this.#parts;
    const status = group.status();
    const voters = group.members().filter(({ isVoter, isSelf }) => isVoter && !isSelf);
    const { epoch, seq } = view.position();
    const digests = view.digests();
    const others = group
      .otherClusters()
      .map(({ clusterId, servers }) => `${clusterId}: ${servers.join(', ')}`);
    return {
      raft: {
        state: stateOf(group),
        term: String(status.term),
        first_log_index: String(status.firstIndex),
        last_log_index: String(status.lastIndex),
        commit_index: String(status.commitIndex),
        applied_index: String(status.appliedIndex),
        num_peers: String(voters.length),
        last_contact: lastContactOf(group),
        ...(others.length > 0 && { other_clusters: others.join('; ') }),
      },
      state: {
        index: String(view.index()),
        position: `${epoch}.${seq}`,
        digest_global: digests.global,
        digest_all: digests.all,
      },
    };
  }

  notReadyReasons(): readonly string[] {
    const { group, notReadyReasons, httpAddress } = this.#parts;
    const reasons = [...notReadyReasons()];
    if (httpAddress() === undefined) reasons.push('the HTTP interface does not listen yet');
    const { commitIndex, appliedIndex } = group.status();
    // What is under way at this moment is no lag: it is answered within the same second.
    if (commitIndex - appliedIndex > APPLY_LAG_MAX) {
      reasons.push(`${commitIndex - appliedIndex} committed entries are not applied yet`);
    }
    return reasons;
  }

  #infoOf({ isSelf, address, ...member }: MemberView): MemberInfo {
    const { id, name, version, isAlive, isVoter, reads } = member;
    const { host = '', port = 0 } = (isSelf ? this.#ownAddress(address) : address) ?? {};
    return { id, name, version, address: host, port, isAlive, isVoter, reads };
  }

  /** This node is at least itself: before it belongs to a group, and before it is on its record. */
  #ownInfo(): MemberInfo {
    const { host = '', port = 0 } = this.#ownAddress() ?? {};
    const isVoter = this.#parts.group.standing().kind === 'member';
    const { nodeId: id, version, reads } = this.#parts;
    return { id, name: this.nodeName, version, address: host, port, isAlive: true, isVoter, reads };
  }

  /** Of the port between servers; of a node without one, where HTTP is answered. */
  #ownAddress(onRecord?: NetAddress): NetAddress | undefined {
    const { group, httpAddress } = this.#parts;
    return group.address === undefined ? httpAddress() : (onRecord ?? group.address);
  }
}

const APPLY_LAG_MAX = 10_000;

/** In the words that deployed clients know. */
function stateOf(group: Group): string {
  switch (group.status().standing) {
    case 'leader':
      return 'Leader';
    case 'candidate':
      return 'Candidate';
    default:
      return 'Follower';
  }
}

/** As deployed servers say it. */
function lastContactOf(group: Group): string {
  const at = group.standing();
  if (at.kind !== 'member' || at.lastContactMs === undefined) return 'never';
  return at.lastContactMs === 0 ? '0' : `${Math.round(at.lastContactMs)}ms`;
}
