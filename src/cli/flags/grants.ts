// The flags that say what a token or a role is linked to, and what they make of an object: a list that
// is given replaces, `--append-…` adds, `--clear` empties, a list that is not mentioned stays as it is.

import type { Command } from 'commander';
import type { CallInput } from '../../client/call-types.ts';
import {
  addClearFlag,
  addCollected,
  addRepeatable,
  type ClearOptions,
  filled,
  isCleared,
  pairOf,
} from '../command-line.ts';
import type { Session } from '../session.ts';
import type { Granting } from '../show/common.ts';
import { UsageError } from '../usage-error.ts';
import { linksOf } from './links.ts';
import { policyId, roleId } from './references.ts';

type Body = CallInput<'token.create'>['body'];
type TemplateFlag =
  | { readonly kind: 'template'; readonly name: string }
  | { readonly kind: 'variable'; readonly name: string; readonly value: string };

export interface GrantOptions extends ClearOptions {
  readonly policyId?: readonly string[];
  readonly policyName?: readonly string[];
  readonly roleId?: readonly string[];
  readonly roleName?: readonly string[];
  readonly serviceIdentity?: readonly string[];
  readonly nodeIdentity?: readonly string[];
  /** Templates and variables in the order of the command line: a variable belongs to the one before. */
  readonly templatedPolicy?: readonly TemplateFlag[];
  readonly var?: readonly TemplateFlag[];
  readonly appendPolicyId?: readonly string[];
  readonly appendPolicyName?: readonly string[];
  readonly appendRoleId?: readonly string[];
  readonly appendRoleName?: readonly string[];
  readonly appendServiceIdentity?: readonly string[];
  readonly appendNodeIdentity?: readonly string[];
}

/** What of a token or a role a body says about its rights. */
export type GrantBody = Pick<
  Body,
  'Policies' | 'Roles' | 'ServiceIdentities' | 'NodeIdentities' | 'TemplatedPolicies'
>;

/** The flags of an object's policies and identities, which tokens and roles have in common. */
export function addPolicyFlags(command: Command): void {
  addRepeatable(command, '--policy-id <id>', 'policy: id, beginning of it, or name');
  addRepeatable(command, '--policy-name <name>', 'policy by name');
  addRepeatable(command, '--service-identity <name[:dc1,dc2]>', 'service identity');
  addRepeatable(command, '--node-identity <name:dc>', 'node identity');
  const templates: TemplateFlag[] = [];
  addCollected(command, {
    flag: '--templated-policy <name>',
    says: 'templated policy',
    collect: (name) => {
      templates.push({ kind: 'template', name: filled(name) });
      return templates;
    },
  });
  addCollected(command, {
    flag: '--var <name:value>',
    says: 'variable of the templated policy',
    collect: (given) => {
      const [name, value] = pairOf('--var', given, ':');
      templates.push({ kind: 'variable', name, value });
      return templates;
    },
  });
}

/** The flags of a token's roles. */
export function addRoleFlags(command: Command): void {
  addRepeatable(command, '--role-id <id>', 'role: id, beginning of it, or name');
  addRepeatable(command, '--role-name <name>', 'role by name');
}

/** What `--clear` takes away of a role; of a token its roles, too. */
const POLICY_LISTS = ['policies', 'service-identities', 'node-identities', 'templated-policies'];

/** The flags that change the lists of an object that exists. */
export function addRoleUpdateFlags(command: Command): void {
  addPolicyFlags(command);
  addAppendPolicyFlags(command);
  addClearFlag(command, POLICY_LISTS);
}

/** The same of one that has roles. */
export function addTokenUpdateFlags(command: Command): void {
  addPolicyFlags(command);
  addRoleFlags(command);
  addAppendPolicyFlags(command);
  addRepeatable(command, '--append-role-id <id>', 'add a role, keep the others');
  addRepeatable(command, '--append-role-name <name>', 'the same by name');
  addClearFlag(command, [...POLICY_LISTS, 'roles']);
}

function addAppendPolicyFlags(command: Command): void {
  addRepeatable(command, '--append-policy-id <id>', 'add a policy, keep the others');
  addRepeatable(command, '--append-policy-name <name>', 'the same by name');
  addRepeatable(command, '--append-service-identity <name[:dcs]>', 'add a service identity');
  addRepeatable(command, '--append-node-identity <name:dc>', 'add a node identity');
}

/** What the flags say on top of `current`, which is empty for a new object. */
export async function grantsOf(
  session: Session,
  options: GrantOptions,
  current: Granting,
): Promise<GrantBody> {
  const kept = <Item>(
    list: string,
    items: readonly Item[] | null | undefined,
  ): readonly Item[] | undefined => (isCleared(options, list) ? [] : (items ?? undefined));
  return {
    Policies: merged(
      await linksOf(session, policyId, options.policyId, options.policyName),
      await linksOf(session, policyId, options.appendPolicyId, options.appendPolicyName),
      kept('policies', current.Policies),
    ),
    Roles: merged(
      await linksOf(session, roleId, options.roleId, options.roleName),
      await linksOf(session, roleId, options.appendRoleId, options.appendRoleName),
      kept('roles', current.Roles),
    ),
    ServiceIdentities: merged(
      options.serviceIdentity?.map(serviceIdentity),
      options.appendServiceIdentity?.map(serviceIdentity),
      kept('service-identities', current.ServiceIdentities),
    ),
    NodeIdentities: merged(
      options.nodeIdentity?.map(nodeIdentity),
      options.appendNodeIdentity?.map(nodeIdentity),
      kept('node-identities', current.NodeIdentities),
    ),
    TemplatedPolicies:
      templatesOf(options.templatedPolicy ?? options.var) ??
      keptTemplates(kept('templated-policies', current.TemplatedPolicies)),
  };
}

/** A given list goes before the current one; what is appended comes behind either. */
function merged<Item>(
  given: Item[] | undefined,
  appended: Item[] | undefined,
  current: readonly Item[] | undefined,
): Item[] | undefined {
  const start = given ?? current;
  if (start === undefined) return appended;
  return [...start, ...(appended ?? [])];
}

function serviceIdentity(value: string): { ServiceName: string; Datacenters?: string[] } {
  const [name = '', datacenters, ...more] = value.split(':');
  if (datacenters === undefined) return { ServiceName: name };
  const names = datacenters.split(',').filter((datacenter) => datacenter !== '');
  // Without any it would be valid in all of them: more than somebody asked for whose variable is empty.
  if (names.length > 0 && more.length === 0) return { ServiceName: name, Datacenters: names };
  throw new UsageError(`a service identity is name or name:dc1,dc2, not ${JSON.stringify(value)}`);
}

function nodeIdentity(value: string): { NodeName: string; Datacenter: string } {
  const [name, datacenter] = pairOf('--node-identity', value, ':');
  if (datacenter === '') throw new UsageError('--node-identity: the datacenter is empty');
  return { NodeName: name, Datacenter: datacenter };
}

interface TemplateDraft {
  TemplateName: string;
  TemplateVariables?: { name: string };
}

/** With one template its variable may stand anywhere; with several, behind the one it belongs to. */
function templatesOf(flags: readonly TemplateFlag[] | undefined): TemplateDraft[] | undefined {
  if (flags === undefined) return undefined;
  const drafts: TemplateDraft[] = [];
  const isAlone = flags.filter(({ kind }) => kind === 'template').length === 1;
  const ordered = isAlone ? flags.toSorted((a, b) => rank(a) - rank(b)) : flags;
  for (const flag of ordered) {
    if (flag.kind === 'template') {
      drafts.push({ TemplateName: flag.name });
      continue;
    }
    const last = drafts.at(-1);
    if (last === undefined)
      throw new UsageError('--var: stands behind the --templated-policy that it belongs to');
    if (flag.name.toLowerCase() !== 'name')
      throw new UsageError(
        `--var: templates have the variable "name" and no other, not ${JSON.stringify(flag.name)}`,
      );
    if (last.TemplateVariables !== undefined)
      throw new UsageError(
        `--var: "name" is given twice for ${last.TemplateName}: for another one, give --templated-policy once more`,
      );
    last.TemplateVariables = { name: flag.value };
  }
  return drafts;
}

function rank({ kind }: TemplateFlag): number {
  return kind === 'template' ? 0 : 1;
}

/** Templates as they are sent back: the service fills in their ids itself. */
function keptTemplates(current: Granting['TemplatedPolicies']): GrantBody['TemplatedPolicies'] {
  return current?.map(({ TemplateID: _, ...kept }) => kept);
}
