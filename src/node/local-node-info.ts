// What this node tells over HTTP about itself. Alone in its datacenter it is its own leader, its only
// voter and its only member.

import type { Replica } from '../../cluster/replica/replica.ts';
import type { MemberInfo, NodeInfo } from '../http/node-info.ts';
import type { Outcome } from '../state/outcome.ts';
import type { StateView } from '../state/view.ts';
import type { Settings } from './settings.ts';

export interface NodeInfoParts {
  readonly settings: Settings;
  readonly nodeId: string;
  /** The version of the program. */
  readonly version: string;
  readonly replica: Replica<Outcome>;
  readonly view: StateView;
  /** `host:port` of the HTTP interface; undefined before it listens. */
  address(): { readonly host: string; readonly port: number } | undefined;
}

export class LocalNodeInfo implements NodeInfo {
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
    return this.#parts.settings.datacenter;
  }

  get version(): string {
    return this.#parts.version;
  }

  leader(): string | undefined {
    const address = this.#parts.address();
    const isLeader = this.#parts.replica.status().standing === 'leader';
    return isLeader && address !== undefined ? `${address.host}:${address.port}` : undefined;
  }

  peers(): readonly string[] {
    const address = this.#parts.address();
    return address === undefined ? [] : [`${address.host}:${address.port}`];
  }

  members(): readonly MemberInfo[] {
    const address = this.#parts.address();
    return [
      {
        name: this.nodeName,
        address: address?.host ?? '',
        port: address?.port ?? 0,
        isAlive: true,
        isVoter: true,
      },
    ];
  }

  datacenters(): readonly string[] {
    return [this.datacenter];
  }

  config(): Readonly<Record<string, string | number | boolean>> {
    const { settings } = this.#parts;
    return {
      ACLsEnabled: settings['acl.enabled'],
      ACLDefaultPolicy: settings['acl.default_policy'],
      NamespacesEnabled: settings['namespaces.enabled'],
      HTTPDialect: settings['http.dialect'],
    };
  }

  stats(): Readonly<Record<string, Readonly<Record<string, string>>>> {
    const { replica, view } = this.#parts;
    const status = replica.status();
    const { epoch, seq } = view.position();
    const digests = view.digests();
    return {
      raft: {
        state: status.standing === 'leader' ? 'Leader' : 'Follower',
        term: String(status.term),
        first_log_index: String(status.firstIndex),
        last_log_index: String(status.lastIndex),
        commit_index: String(status.commitIndex),
        applied_index: String(status.appliedIndex),
        num_peers: '0',
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
    const { commitIndex, appliedIndex, standing } = this.#parts.replica.status();
    const reasons: string[] = [];
    if (standing !== 'leader') reasons.push('no leader is known');
    if (this.#parts.address() === undefined) reasons.push('the HTTP interface does not listen yet');
    // What is under way at this moment is no lag: it is answered within the same second.
    if (commitIndex - appliedIndex > APPLY_LAG_MAX) {
      reasons.push(`${commitIndex - appliedIndex} committed entries are not applied yet`);
    }
    return reasons;
  }
}

const APPLY_LAG_MAX = 10_000;
