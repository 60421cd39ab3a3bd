// Links to policies and roles as flags give them: ids, beginnings of ids and names. Names and whole
// ids go to the service as they are; anything else is looked up.

import { isUuid } from '../../acl/ids.ts';
import type { CallInput } from '../../client/call-types.ts';
import type { Session } from '../session.ts';

export type LinkList = NonNullable<CallInput<'role.create'>['body']['Policies']>;

/** The links of an `…-id` and an `…-name` flag; undefined when neither was given. */
export async function linksOf(
  session: Session,
  idOf: (session: Session, given: string) => Promise<string>,
  ids: readonly string[] | undefined,
  names: readonly string[] | undefined,
): Promise<LinkList | undefined> {
  if (ids === undefined && names === undefined) return undefined;
  const links: LinkList = [];
  for (const id of ids ?? []) links.push({ ID: isUuid(id) ? id : await idOf(session, id) });
  for (const name of names ?? []) links.push({ Name: name });
  return links;
}
