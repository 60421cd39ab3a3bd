// The datacenters on the screen: who writes, how far each is behind, and what stands still.

import type { CallOutput } from '../../client/call-types.ts';
import { timeText } from './common.ts';
import type { Column } from './table.ts';

export type Federation = CallOutput<'replication.status'>;
type Datacenter = Federation['Datacenters'][number];

/** Where nothing moves until somebody or something changes. */
const STANDS_STILL: ReadonlySet<string> = new Set(['away', 'stopped', 'differs']);
/** Who is further behind is shown as an alarm. */
const LAG_ALARM_SECONDS = 60;

export const DATACENTER_COLUMNS: readonly Column<Datacenter>[] = [
  {
    heading: 'Datacenter',
    cell: ({ Name, Witness }) => (Witness ? `${Name} (witness)` : Name),
  },
  {
    heading: 'State',
    cell: ({ State }) => State,
    isAlarming: ({ State }) => STANDS_STILL.has(State),
  },
  { heading: 'Position', cell: ({ Position }) => Position ?? '' },
  { heading: 'Behind', cell: entriesText },
  { heading: 'Bytes', cell: ({ LagBytes }) => (LagBytes === null ? '' : String(LagBytes)) },
  {
    heading: 'Lag',
    cell: ({ LagSeconds }) => secondsText(LagSeconds),
    isAlarming: ({ LagSeconds }) => LagSeconds !== null && LagSeconds > LAG_ALARM_SECONDS,
  },
  {
    heading: 'Differences',
    cell: ({ Differences }) => String(Differences),
    isAlarming: ({ Differences }) => Differences > 0,
  },
  { heading: 'Last Contact', cell: ({ LastContactSeconds }) => secondsText(LastContactSeconds) },
  { heading: 'Last Error', cell: errorText },
];

/** Who writes, and from where to where the global log goes. */
export function federationSentence(federation: Federation): string {
  const { PrimaryDatacenter, Epoch, HeadPosition, MajorityPosition } = federation;
  const majority = MajorityPosition === null ? '' : `, a majority has ${MajorityPosition}`;
  return `The primary is ${PrimaryDatacenter}, epoch ${Epoch}; the log ends at ${HeadPosition}${majority}.`;
}

function entriesText({ LagEntries }: Datacenter): string {
  if (LagEntries === null) return '';
  return LagEntries === 1 ? '1 entry' : `${LagEntries} entries`;
}

function secondsText(seconds: number | null): string {
  return seconds === null ? '' : `${seconds.toFixed(1)}s`;
}

function errorText({ LastError, LastErrorMessage }: Datacenter): string {
  return LastErrorMessage === '' ? '' : `${timeText(LastError)} ${LastErrorMessage}`;
}
