// What operators send and get when the primary is moved, with the names of the wire. render-primary.ts
// writes the answers.

import { type Static, Type } from 'typebox';
import { answer, body, count, flag, text } from './schema.ts';

export const Primary = answer('Primary', {
  Datacenter: text('The datacenter that writes what all share.'),
  Epoch: Type.Integer({ description: 'Counts its reigns, and those of others before it.' }),
  PromisedEpoch: Type.Integer({
    description:
      'The highest epoch that the datacenter which was asked has promised; a forced move names the next.',
  }),
  Position: text('What the datacenter which was asked has of the global log.'),
  HeadPosition: text('The end of the global log, as far as it knows.'),
  Voters: Type.Array(Type.String(), { description: 'The datacenters whose promises count.' }),
  Closed: text(
    'Why the primary, when it is asked, takes no global write now, or why nobody may be primary; empty: nothing is known to be wrong.',
  ),
  DivergentEntries: Type.Integer({
    description: 'Entries that only the datacenter which was asked has; see operator/divergence.',
  }),
  GoneEntries: Type.Integer({
    description: 'Entries of that kind which its log did not keep until then: nobody has them.',
  }),
});

export const MovePrimaryBody = body('MovePrimaryInput', {
  Datacenter: text('Which one shall be the primary; default: the one of the server.'),
  Mode: text(
    '`hand-over` (default): the primary gives it away, nothing is lost. `election`: a majority of the datacenters decides. `forced`: neither is asked.',
  ),
  Epoch: count(
    'Only with `forced`: the next epoch, one more than PromisedEpoch, so that nobody does it twice. The one that begins is further on.',
  ),
  AcceptLoss: flag('Only with `forced`: true, because what others have may be lost.'),
});
export type MovePrimaryBody = Static<typeof MovePrimaryBody>;

export const PrimaryMoved = answer('PrimaryMoved', {
  Datacenter: text('The primary from now on.'),
  Epoch: Type.Integer({ description: 'The epoch that has begun.' }),
  Promises: Type.Array(Type.String(), {
    description: 'The other datacenters that promised to take nothing of a lower epoch.',
  }),
  Position: text('The last entry of the reigns before that the new primary has.'),
  HeadPosition: text('The last one that it had heard of: what lies between is lost.'),
});

const DivergentObject = answer('DivergentObject', {
  Kind: text('`token`, `policy`, `role`, `auth-method`, `binding-rule` or `namespace`.'),
  ID: text('Its id; of an auth method and of a namespace, its name.'),
  Name: text('What it is called; of a token, its description. Empty where it is gone.'),
  Deleted: Type.Boolean(),
});

const DivergentEntry = answer('DivergentEntry', {
  Position: text('`epoch.seq`: what names the entry.'),
  Time: text('When it was written.'),
  AccessorID: text('The token that asked for it; empty for the duties of the primary.'),
  Kind: text('`effects`: it changed objects. Other kinds cannot be submitted again.'),
  Objects: Type.Array(DivergentObject),
});

const GoneEntries = answer('GoneEntries', {
  First: text('`epoch.seq` of the first one.'),
  Last: text('`epoch.seq` of the last one, of the same epoch.'),
  Count: Type.Integer({ description: 'At most: a restore may have left out some positions.' }),
});

export const Divergence = answer('Divergence', {
  Count: Type.Integer({ description: 'Of all such entries, listed or not.' }),
  Entries: Type.Array(DivergentEntry, { description: 'Oldest first.' }),
  Gone: Type.Array(GoneEntries, {
    description:
      'Such entries that the log did not keep until this was known: nobody has them, and what was acknowledged of them is lost. Oldest first.',
  }),
});

export const Resubmitted = answer('Resubmitted', {
  Position: text('Where the change stands in the log of the primary.'),
  Index: Type.Integer({ description: 'The index of the change.' }),
});
