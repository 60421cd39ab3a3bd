// How this server stands in the federation, by the state of its datacenter: which datacenter writes, and
// whether it is this server that does. Pure over what the state says.

import type { FeedStanding } from '../../../cluster/federation/feed/feed-server.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import type { Primacy } from '../../service/datacenters/federation.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import {
  currentEpoch,
  isPrimary,
  primaryIn,
  type Replication,
  removedOf,
} from '../../state/global-log/replication.ts';
import type { FederationPlan } from '../settings/federation-settings.ts';

/**
 * Which datacenter writes; before there is a global log, what the settings say, unless this one has objects: then it
 * was its own primary, and settings, which one of its servers alone may have, give them to no other datacenter.
 */
export function primacyOf(
  replication: Replication | undefined,
  plan: Pick<FederationPlan, 'datacenter' | 'firstPrimary'>,
  position: Position,
): Primacy {
  if (replication === undefined) {
    const { datacenter, firstPrimary } = plan;
    return { datacenter: hasWritten(position) ? datacenter : firstPrimary, epoch: position.epoch };
  }
  return { datacenter: primaryIn(replication), epoch: currentEpoch(replication).epoch };
}

/** Whether a datacenter without a global log has objects that all would share: it has written them itself. */
export function hasWritten({ seq }: Position): boolean {
  return seq > 0;
}

/** Which settings of this server the state overrules, and what to do; undefined where none. */
export function overruledSettings(
  replication: Replication | undefined,
  plan: Pick<FederationPlan, 'datacenter' | 'firstPrimary' | 'isWitness'>,
  position: Position,
): string | undefined {
  if (replication !== undefined) return overruledWitness(replication, plan);
  const { datacenter, firstPrimary } = plan;
  if (!hasWritten(position) || firstPrimary === datacenter) return undefined;
  return (
    `primary_datacenter is ${firstPrimary}, and ${datacenter} has objects that it wrote as its own primary, ` +
    `which it goes on being: take the setting back on this server; or, to give them up for those of ` +
    `${firstPrimary}, keep an archive, and start all servers of ${datacenter} with empty data folders`
  );
}

/** A datacenter stays what it began as. */
function overruledWitness(
  { isWitness }: Replication,
  { datacenter, isWitness: isWanted }: Pick<FederationPlan, 'datacenter' | 'isWitness'>,
): string | undefined {
  if (isWitness === isWanted) return undefined;
  const [began, wish] = isWitness
    ? ['as a witness', 'to have objects there']
    : ['with objects', 'to have no objects there'];
  return (
    `federation.witness is ${isWanted}, and ${datacenter} began ${began}, and stays so: make it ${isWitness} on ` +
    `this server; or, ${wish}, stop all servers of ${datacenter}, remove and allow it ` +
    `(\`conclave operator datacenter\`), and start them with empty data folders`
  );
}

export interface OwnStanding {
  readonly replication: Replication | undefined;
  /** This server leads its datacenter, and has applied what came before its reign. */
  readonly isReigning: boolean;
  /** The level that the log of the datacenter uses. */
  readonly level: number;
  /** Whoever is part of the federation, listed or not, heard or not. */
  readonly datacenters: readonly string[];
  /** Servers of the primary, and of it the leader first, as far as they are known. */
  readonly primaryAddresses: () => readonly NetAddress[];
}

/** Whether this server is the one that other datacenters follow. */
export function feedStandingOf(own: OwnStanding): FeedStanding {
  const { replication, isReigning, level, datacenters, primaryAddresses } = own;
  const elsewhere = (says: string) => {
    return { kind: 'elsewhere', addresses: primaryAddresses(), says } as const;
  };
  if (replication === undefined) return elsewhere('this datacenter has no global log yet');
  const { epoch, primary, startSeq } = currentEpoch(replication);
  const { federationId } = replication;
  if (!isPrimary(replication)) {
    const isEnded = isReigning && primary === replication.datacenter;
    const ended = isEnded ? { ended: { federationId, epoch } } : {};
    return { ...elsewhere(`the primary is ${primaryIn(replication)}`), ...ended };
  }
  if (!isReigning) return elsewhere('another server leads the primary');
  const voting = replication.datacenters.filter(({ isVoter }) => isVoter);
  const voters = voting.map(({ name }) => name);
  const witnesses = voting.filter(({ isWitness }) => isWitness).map(({ name }) => name);
  const joining = datacenters.filter((each) => !voters.includes(each));
  const removed = removedOf(replication);
  const counting = { epochStartSeq: startSeq, voters, witnesses, joining, removed };
  return { kind: 'primary', federationId, epoch, level, ...counting };
}
