// How the datacenters stand to each other, as JSON: beside what deployed clients know of replication,
// the epoch, positions, and how far each datacenter is. What is not known is null.

import { quoteValue } from './quote.ts';
import type { ShownReplication } from './shown.ts';
import { positionText, type ShownDatacenter, type ShownPosition } from './shown-federation.ts';

const ZERO_TIME = '0001-01-01T00:00:00Z';
const MS_OF_SECOND = 1000;

export function renderReplication(status: ShownReplication): string {
  const { primary, head, majority, datacenters } = status.federation;
  const own = datacenters.find(({ isSelf }) => isSelf);
  return quoteValue({
    Enabled: status.enabled,
    Running: status.running,
    SourceDatacenter: status.sourceDatacenter,
    ReplicationType: status.replicationType,
    ReplicatedIndex: status.replicatedIndex,
    ReplicatedRoleIndex: status.replicatedRoleIndex,
    ReplicatedTokenIndex: status.replicatedTokenIndex,
    LastSuccess: wholeSecond(status.lastSuccessMs),
    LastError: wholeSecond(status.lastErrorMs),
    LastErrorMessage: status.lastErrorMessage,
    PrimaryDatacenter: primary.datacenter,
    Epoch: primary.epoch,
    Position: placeOf(own?.position),
    HeadPosition: positionText(head),
    MajorityPosition: placeOf(majority),
    Datacenters: datacenters.map(datacenterOf),
  });
}

function datacenterOf(datacenter: ShownDatacenter): object {
  return {
    Name: datacenter.name,
    State: datacenter.state,
    Witness: datacenter.isWitness,
    Position: placeOf(datacenter.position),
    LagEntries: datacenter.lagEntries ?? null,
    LagBytes: datacenter.lagBytes ?? null,
    LagSeconds: secondsOf(datacenter.lagMs),
    LastContactSeconds: secondsOf(datacenter.lastContactMs),
    LastSuccess: wholeSecond(datacenter.lastSuccessMs),
    LastError: wholeSecond(datacenter.lastErrorMs),
    LastErrorMessage: datacenter.lastError,
    Differences: datacenter.differences,
  };
}

function placeOf(position: ShownPosition | undefined): string | null {
  return position === undefined ? null : positionText(position);
}

function secondsOf(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms) / MS_OF_SECOND;
}

/** UTC without a fraction; the zero time for never. */
function wholeSecond(ms: number | undefined): string {
  return ms === undefined ? ZERO_TIME : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
