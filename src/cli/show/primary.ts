// The primary on the screen: which datacenter it is, how it was moved, and what was left behind.

import type { CallOutput } from '../../client/call-types.ts';
import { field, list, type Part } from './block.ts';
import { timeText } from './common.ts';
import type { Column } from './table.ts';

type Primary = CallOutput<'operator.primary'>;
type Moved = CallOutput<'operator.move-primary'>;
type Divergence = CallOutput<'operator.divergence'>;
type Entry = Divergence['Entries'][number];
type ChangedObject = Entry['Objects'][number];

/** Of what one entry changed, so many objects are shown. */
const OBJECTS_SHOWN = 3;

export function primaryParts(primary: Primary): readonly Part[] {
  const closed = primary.Closed === '' ? [] : [field('Closed', primary.Closed)];
  return [
    field('Datacenter', primary.Datacenter),
    field('Epoch', primary.Epoch),
    field('Promised Epoch', primary.PromisedEpoch),
    field('Position', primary.Position),
    field('Head Position', primary.HeadPosition),
    field('Divergent Entries', primary.DivergentEntries),
    field('Gone Entries', primary.GoneEntries),
    ...closed,
    list('Voters', primary.Voters),
  ];
}

/** Undefined where the primary takes writes. */
export function closedSentence({ Closed }: Primary): string | undefined {
  return Closed === '' ? undefined : `Closed: ${Closed}`;
}

export function movedSentence({ Datacenter, Epoch, Position, HeadPosition }: Moved): string {
  const lost =
    Position === HeadPosition
      ? ''
      : `; the log was known to go to ${HeadPosition}, what is behind ${Position} may be lost`;
  return `${Datacenter} is the primary now, epoch ${Epoch} behind ${Position}${lost}.`;
}

export const DIVERGENCE_COLUMNS: readonly Column<Entry>[] = [
  { heading: 'Position', cell: ({ Position }) => Position },
  { heading: 'Time', cell: ({ Time }) => timeText(Time) },
  { heading: 'Token', cell: ({ AccessorID }) => AccessorID },
  { heading: 'Change', cell: changeText },
];

/** What was lost, and cannot be looked at. */
export function goneSentence({ First, Last, Count }: Divergence['Gone'][number]): string {
  const entries = Count === 1 ? `entry ${First} is` : `${Count} entries, ${First} to ${Last}, are`;
  return `Lost: ${entries} gone. The log was trimmed before it was known that nobody else has them; clients may have been told that they are written.`;
}

/** What to do next, where there is something. */
export function divergenceSentence({ Count, Entries }: Divergence): string {
  if (Count === 0) return 'Take note of what is gone with `divergence discard --all`.';
  if (Count > Entries.length) return `There are ${Count} divergent entries.`;
  return 'Make each anew with `divergence resubmit`, or forget it with `divergence discard`.';
}

function changeText({ Kind, Objects }: Entry): string {
  if (Objects.length === 0) return Kind;
  const shown = Objects.slice(0, OBJECTS_SHOWN).map(objectText).join(', ');
  const more = Objects.length - OBJECTS_SHOWN;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function objectText({ Kind, ID, Name, Deleted }: ChangedObject): string {
  const named = Name === '' || Name === ID ? ID : `${ID} (${Name})`;
  return Deleted ? `${Kind} ${named} deleted` : `${Kind} ${named}`;
}
