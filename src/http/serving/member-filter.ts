// `filter` of the list of members: a boolean expression over what is shown of each, in the language of
// the selectors of binding rules.

import { compileSelector } from '../../auth-methods/binding/selector.ts';
import type { Attributes, FieldTable } from '../../auth-methods/identity.ts';

const FIELDS: FieldTable = {
  strings: ['Name', 'Addr', 'Port', 'Status'],
  stringMaps: ['Tags'],
  listMaps: [],
  refusesPatterns: true,
};

/** What a filter may speak of, of a member as it is shown. */
export interface FilteredMember {
  readonly Name: string;
  readonly Addr: string;
  readonly Port: number;
  readonly Tags: Readonly<Record<string, string>>;
  readonly Status: number;
}

/** Whether a member is one that the filter means; without a filter all are. Throws 'invalid'. */
export function memberFilterOf(filter: string | undefined): (member: FilteredMember) => boolean {
  const selector = compileSelector(filter ?? '', FIELDS);
  return (member) => selector.matches(attributesOf(member));
}

function attributesOf({ Name, Addr, Port, Tags, Status }: FilteredMember): Attributes {
  const strings = new Map([
    ['Name', Name],
    ['Addr', Addr],
    ['Port', String(Port)],
    ['Status', String(Status)],
  ]);
  for (const [tag, value] of Object.entries(Tags)) strings.set(`Tags.${tag}`, value);
  return { strings, lists: new Map() };
}
