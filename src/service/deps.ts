// What the service needs from the rest of the node, declared by the service. The assembly fills it in;
// a test fills it with a state machine on memory and a proposer that applies at once.

import type { Clock } from '../../cluster/platform/clock.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import type { TtlLimits } from '../acl/checks/token-expiry.ts';
import type { SecretId } from '../acl/ids.ts';
import type { AuthMethods } from '../auth-methods/auth-method-types.ts';
import type { Command } from '../state/commands/commands.ts';
import type { Outcome } from '../state/commands/outcome.ts';
import type { StateView } from '../state/view.ts';
import type { Watch } from '../state/watch.ts';
import type { AckLevel } from './call.ts';
import type { Federation } from './datacenters/federation.ts';
import type { Metrics } from './metrics.ts';
import type { Remote } from './remote.ts';
import type { UnderWay } from './writes/under-way.ts';

export interface ServiceSettings {
  readonly nodeName: string;
  readonly datacenter: string;
  readonly aclEnabled: boolean;
  readonly defaultPolicy: 'allow' | 'deny';
  /** Shown only: every node resolves tokens from its own full state. */
  readonly downPolicy: string;
  readonly tokenLimits: TtlLimits;
  /** Of which a management token is made where there was no bootstrap yet; undefined: of none. */
  readonly initialManagementSecret: SecretId | undefined;
  readonly namespacesEnabled: boolean;
  /** How long a write is tried while there is no leader, or none that answers. */
  readonly leaderWaitMs: number;
  /** How many datacenters must have a global write that does not say so; see acknowledge.ts. */
  readonly defaultAck: AckLevel;
  /** How long such a write waits for them. */
  readonly ackTimeoutMs: number;
  /** How long a write that went to another datacenter waits until it can be read here. */
  readonly visibleWaitMs: number;
}

/** How this node stands to its datacenter's leader. */
export interface LeaderContact {
  readonly isLeader: boolean;
  readonly knownLeader: boolean;
  /** Milliseconds since the leader was last heard; 0 on the leader. */
  readonly lastContactMs: number;
}

export interface ServiceDeps {
  readonly view: StateView;
  readonly watch: Watch;
  /**
   * Resolves once the command is applied and on disk. Rejects with LeaderAway (nothing was done, also
   * when this node leads in another reign than the one that is named), 'unavailable' or
   * 'outcome-unknown'.
   */
  propose(command: Command, reign?: number): Promise<Outcome>;
  /** What of it is not over yet: see tracking-writes.ts. */
  readonly underWay: UnderWay;
  /**
   * Resolves when the state holds every write that was answered before the call; undefined when it
   * does already. Rejects with LeaderAway or 'unavailable'.
   */
  readBarrier(): Promise<void> | undefined;
  leaderContact(): LeaderContact;
  /**
   * The reign of this node, once its state holds all that earlier leaders answered. Rejects with
   * LeaderAway when it does not lead, or no longer.
   */
  reign(): number | Promise<number>;
  /** Why no operation can run here yet, in words; undefined as soon as one can. */
  notOpenBecause(): string | undefined;
  /** Resolves when one can, when it is in vain to wait for that, and at the latest after `limitMs`. */
  opens(limitMs: number): Promise<void>;
  readonly remote: Remote;
  readonly federation: Federation;
  /**
   * Reads the operator's reset index and deletes it, so that it works once. Undefined when there is none for whoever
   * asks for a token with this secret.
   */
  takeResetIndex(secret: SecretId | undefined): number | undefined;
  readonly authMethods: AuthMethods;
  readonly clock: Clock;
  /** Milliseconds of the wall clock that a majority of the group's servers has come to; 0 where that is not known. */
  agreedMs(): Promise<number>;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly settings: ServiceSettings;
}
