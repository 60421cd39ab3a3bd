// How a datacenter comes to have a global log, and to belong to a federation. The federation is called after
// the cluster that began the log; other datacenters hear its id from there and keep it.

import { FEED_REFUSAL } from '../../../../cluster/federation/feed/feed-session.ts';
import type { Logger } from '../../../../cluster/platform/logger.ts';
import { RpcRefusal } from '../../../../cluster/transport/calls/rpc-error.ts';
import { AclError } from '../../../acl/error.ts';
import type { Command } from '../../../state/commands/commands.ts';
import type { Outcome } from '../../../state/commands/outcome.ts';
import type { StateMachine } from '../../../state/machine.ts';
import type { FederationPlan } from '../../settings/federation-settings.ts';
import { hasWritten, overruledSettings, primacyOf } from '../federation-role.ts';
import { type FollowingDeps, verdictOf } from '../ports/follow-primary.ts';

export interface BeginningDeps {
  readonly plan: Pick<
    FederationPlan,
    'datacenter' | 'firstPrimary' | 'isWitness' | 'isFederated' | 'retryJoin'
  >;
  readonly logger: Logger;
  readonly machine: Pick<StateMachine, 'replication' | 'position'>;
  readonly clusterId: () => string | undefined;
  /** Whether all read what the global log says. */
  readonly mayBegin: () => boolean;
  /** Why no other federation may begin; undefined where nobody who answers knows of one. */
  readonly elsewhere: () => Promise<string | undefined>;
  /** Past the gate: without a log there is nothing that it could keep back. */
  readonly propose: (command: Command) => Promise<Outcome>;
  readonly following: FollowingDeps;
}

export class GlobalLogBeginning {
  readonly #deps: BeginningDeps;
  #notBegunBecause: string | undefined;

  constructor(deps: BeginningDeps) {
    this.#deps = deps;
  }

  /** Why there is no global log here, though settings ask for one. Undefined where one may begin, or has. */
  get notBegunBecause(): string | undefined {
    return this.#deps.machine.replication() === undefined ? this.#notBegunBecause : undefined;
  }

  /**
   * Why this datacenter is not the primary, though its settings say so and it has no log: there is a federation
   * already. Undefined where it may begin one, or has, and where it has objects, and goes on alone.
   */
  get keptOutBecause(): string | undefined {
    return hasWritten(this.#deps.machine.position()) ? undefined : this.notBegunBecause;
  }

  /** What all share is not written here. */
  refusal(): AclError | undefined {
    const why = this.keptOutBecause;
    return why === undefined
      ? undefined
      : new AclError('unavailable', `Nothing was written: ${why}`);
  }

  /** Before the first write of a reign. Rejects when this server does not lead any more. */
  async beforeReign(): Promise<void> {
    const { logger, machine, mayBegin, plan } = this.#deps;
    const why = overruledSettings(machine.replication(), plan, machine.position());
    if (why !== undefined) logger.error({ why }, 'a setting is not followed');
    const isBegun = machine.replication() !== undefined;
    const isWanted = isBegun || (plan.isFederated && why === undefined);
    if (isWanted && mayBegin()) await this.#begin();
  }

  /** The first datacenter that asks the primary for the global log makes there be one. Throws RpcRefusal. */
  async beforeHello(): Promise<void> {
    const { machine, mayBegin, plan } = this.#deps;
    if (machine.replication() !== undefined) return;
    if (!mayBegin()) throw notBegun(plan.datacenter);
    await this.#begin();
    const why = this.notBegunBecause;
    if (why !== undefined) throw new RpcRefusal(FEED_REFUSAL.busy, why);
  }

  /** A log that is there already stays as it is. */
  async #begin(): Promise<void> {
    await this.#lookElsewhere();
    if (this.notBegunBecause !== undefined) return;
    const { plan, propose, following } = this.#deps;
    const { datacenter } = plan;
    const primary = this.#primary;
    // Who has objects is no witness, whatever the settings of this server say.
    const isWitness = plan.isWitness && primary !== datacenter;
    const change = { type: 'global-log.begin', datacenter, primary, isWitness } as const;
    const timeMs = following.wallMs();
    const outcome = await propose({ change, timeMs, cas: undefined, request: undefined });
    if (outcome.kind === 'refused') throw new AclError('internal', outcome.message);
    await this.#nameFederation();
  }

  /** Whoever follows another one begins no federation. */
  async #lookElsewhere(): Promise<void> {
    const { elsewhere, logger, machine, plan } = this.#deps;
    const isFounder = this.#primary === plan.datacenter && plan.retryJoin.length > 0;
    if (machine.replication() !== undefined || !isFounder) return;
    const why = await elsewhere();
    this.#notBegunBecause = why;
    if (why === undefined) return;
    const says =
      this.keptOutBecause === undefined
        ? 'this datacenter goes on alone'
        : 'this datacenter is not the primary';
    logger.error({ why }, says);
  }

  get #primary(): string {
    const { machine, plan } = this.#deps;
    return primacyOf(machine.replication(), plan, machine.position()).datacenter;
  }

  async #nameFederation(): Promise<void> {
    const { plan, machine, clusterId, following } = this.#deps;
    const replication = machine.replication();
    const own = clusterId();
    if (replication === undefined || replication.federationId !== '' || own === undefined) return;
    const isNamedHere = replication.epochs[0]?.primary === plan.datacenter;
    if (isNamedHere) await adoptFederation(machine, following, own);
  }
}

/** Rejects when the datacenter is of another one. */
export async function adoptFederation(
  machine: Pick<StateMachine, 'replication'>,
  following: FollowingDeps,
  federationId: string,
): Promise<void> {
  const { verdict } = await verdictOf(following, { type: 'federation.adopt', federationId });
  if (verdict === 'applied') return;
  const own = machine.replication()?.federationId ?? '';
  const says = `this datacenter is of federation ${own}, not of ${federationId}`;
  throw new AclError('internal', says);
}

function notBegun(datacenter: string): RpcRefusal {
  const says = `${datacenter} has no global log before all its servers can read one: upgrade them, or remove those that are gone for good`;
  return new RpcRefusal(FEED_REFUSAL.busy, says);
}
