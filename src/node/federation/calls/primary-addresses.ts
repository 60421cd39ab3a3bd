// Where the primary may be found, the likeliest place first: who is said to be primary of the latest reign,
// whom this datacenter has promised a later one to, whom its own log names. Pure.

import type { PrimaryClaim } from '../../../../cluster/federation/directory/directory.ts';
import type { NetAddress } from '../../../../cluster/platform/net.ts';
import type { Primacy } from '../../../service/datacenters/federation.ts';
import type { Replication } from '../../../state/global-log/replication.ts';

export interface KnownOfPrimary {
  /** The own one. */
  readonly datacenter: string;
  readonly isPrimary: boolean;
  /** As the own log has it. */
  readonly primary: Primacy;
  readonly replication: Replication | undefined;
  /** As others say. */
  readonly told: PrimaryClaim | undefined;
  readonly addressesOf: (datacenter: string) => readonly NetAddress[];
}

/** A datacenter that is not primary does not look for it among its own servers. */
export function primaryAddressesOf(known: KnownOfPrimary): readonly NetAddress[] {
  const { datacenter, isPrimary, addressesOf } = known;
  const names = candidatesOf(known).filter((name) => isPrimary || name !== datacenter);
  return [...new Set(names)].flatMap((name) => addressesOf(name));
}

function candidatesOf({ primary, replication, told }: KnownOfPrimary): readonly string[] {
  const { maxEpochPromised = 0, votedFor } = replication ?? {};
  const claims: Primacy[] = [primary];
  if (votedFor !== undefined) claims.push({ datacenter: votedFor, epoch: maxEpochPromised });
  if (told !== undefined) claims.push(told);
  // The own log counts for more than others say of the same reign.
  const isNews = ({ epoch }: Primacy): boolean => epoch > primary.epoch;
  const later = claims.filter(isNews).sort((left, right) => right.epoch - left.epoch);
  return [...later, primary].map((claim) => claim.datacenter);
}
