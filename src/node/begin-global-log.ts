// How a datacenter comes to have a global log, and to belong to a federation. The federation is called after
// the cluster that began the log; other datacenters hear its id from there and keep it.

import { AclError } from '../acl/error.ts';
import type { Command } from '../state/commands.ts';
import type { StateMachine } from '../state/machine.ts';
import type { Outcome } from '../state/outcome.ts';
import type { FederationPlan } from './federation-settings.ts';
import { type FollowingDeps, verdictOf } from './follow-primary.ts';

export interface BeginningDeps {
  readonly plan: Pick<FederationPlan, 'datacenter' | 'firstPrimary' | 'isWitness'>;
  readonly machine: Pick<StateMachine, 'replication'>;
  readonly clusterId: () => string | undefined;
  /** Past the gate: without a log there is nothing that it could keep back. */
  readonly propose: (command: Command) => Promise<Outcome>;
  readonly following: FollowingDeps;
}

/** Rejects when this server does not lead any more. A log that is there already stays as it is. */
export async function beginGlobalLog(deps: BeginningDeps): Promise<void> {
  const { plan, propose, following } = deps;
  const { datacenter, firstPrimary: primary, isWitness } = plan;
  const change = { type: 'global-log.begin', datacenter, primary, isWitness } as const;
  const timeMs = following.wallMs();
  const outcome = await propose({ change, timeMs, cas: undefined, request: undefined });
  if (outcome.kind === 'refused') throw new AclError('internal', outcome.message);
  await nameFederation(deps);
}

async function nameFederation({
  plan,
  machine,
  clusterId,
  following,
}: BeginningDeps): Promise<void> {
  const replication = machine.replication();
  const own = clusterId();
  if (replication === undefined || replication.federationId !== '' || own === undefined) return;
  const isNamedHere = replication.epochs[0]?.primary === plan.datacenter;
  if (isNamedHere) await adoptFederation(machine, following, own);
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
