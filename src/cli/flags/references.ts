// What people write for an object and what the service wants: a whole id passes as it is, the beginning
// of an id or a name is looked up in the list. Two that fit are an error that shows both.

import { ANONYMOUS_ACCESSOR, isUuid } from '../../acl/ids.ts';
import { CommandFailed } from '../failed.ts';
import type { Session } from '../session.ts';
import { oneLine } from '../show/safe-text.ts';

/** So many of the objects that fit are shown. */
const MATCHES_SHOWN_MAX = 10;

interface Candidate {
  readonly id: string;
  readonly name: string;
}

interface Lookup {
  readonly given: string;
  /** For messages: `policy`, `policies`. */
  readonly noun: string;
  readonly nouns: string;
  /** What to type to see them all. */
  readonly listCommand: string;
  /** Whether `name` of the candidates names them, or only describes them. */
  readonly by: 'id-or-name' | 'id';
  candidates(): AsyncIterable<readonly Candidate[]>;
}

/** The accessor id of a token: whole, its beginning, or `anonymous`. */
export function tokenId(session: Session, given: string): Promise<string> {
  if (given === 'anonymous') return Promise.resolve(ANONYMOUS_ACCESSOR);
  return idOf({
    given,
    noun: 'token',
    nouns: 'tokens',
    listCommand: 'conclave acl token list',
    by: 'id',
    candidates: () =>
      mapped(session.client.pages('token.list'), (token) => ({
        id: token.AccessorID,
        name: token.Description,
      })),
  });
}

/** The id of a policy: whole, its beginning, or the policy's name. */
export function policyId(session: Session, given: string): Promise<string> {
  return idOf({
    given,
    noun: 'policy',
    nouns: 'policies',
    listCommand: 'conclave acl policy list',
    by: 'id-or-name',
    candidates: () =>
      mapped(session.client.pages('policy.list'), ({ ID, Name }) => ({ id: ID, name: Name })),
  });
}

/** The id of a role: whole, its beginning, or the role's name. */
export function roleId(session: Session, given: string): Promise<string> {
  return idOf({
    given,
    noun: 'role',
    nouns: 'roles',
    listCommand: 'conclave acl role list',
    by: 'id-or-name',
    candidates: () =>
      mapped(session.client.pages('role.list'), ({ ID, Name }) => ({ id: ID, name: Name })),
  });
}

/** The id of a binding rule: whole or its beginning. */
export function bindingRuleId(session: Session, given: string): Promise<string> {
  return idOf({
    given,
    noun: 'binding rule',
    nouns: 'binding rules',
    listCommand: 'conclave acl binding-rule list',
    by: 'id',
    candidates: () =>
      mapped(session.client.pages('binding-rule.list'), (rule) => ({
        id: rule.ID,
        name: `${rule.AuthMethod} ${rule.Description}`,
      })),
  });
}

async function* mapped<From>(
  pages: AsyncIterable<readonly From[]>,
  toCandidate: (item: From) => Candidate,
): AsyncGenerator<readonly Candidate[]> {
  for await (const page of pages) yield page.map(toCandidate);
}

/**
 * What is the name of one object and the beginning of the id of another stands for neither: nobody shall get the
 * rights of the one who meant the other.
 */
async function idOf(lookup: Lookup): Promise<string> {
  const { given, noun, nouns, listCommand, by } = lookup;
  if (isUuid(given)) return given;
  const wanted = given.toLowerCase();
  const matches: Candidate[] = [];
  for await (const page of lookup.candidates()) {
    const isMeant = ({ id, name }: Candidate): boolean =>
      id.toLowerCase().startsWith(wanted) || (by !== 'id' && name.toLowerCase() === wanted);
    matches.push(...page.filter(isMeant));
  }
  if (matches.length === 1) return matches[0]!.id;
  const what = by === 'id' ? 'an id that begins with' : 'the name, or an id that begins with,';
  if (matches.length === 0)
    throw new CommandFailed(
      `no ${noun} has ${what} ${JSON.stringify(given)}\nNext: \`${listCommand}\` shows what there is.`,
    );
  const shown = matches
    .slice(0, MATCHES_SHOWN_MAX)
    .map(({ id, name }) => `   ${id}  ${oneLine(name)}\n`);
  const more =
    matches.length > MATCHES_SHOWN_MAX
      ? `   … and ${matches.length - MATCHES_SHOWN_MAX} more\n`
      : '';
  throw new CommandFailed(
    `${JSON.stringify(given)} fits ${matches.length} ${nouns}:\n${shown.join('')}${more}Next: ${nextOf(by)}.`,
  );
}

function nextOf(by: Lookup['by']): string {
  return by === 'id'
    ? 'give more of the id'
    : 'give more of the id; a flag that ends with `name` takes nothing but names';
}
