// Parts that several kinds of objects show alike: links, identities, stamps, times.

import type { Static } from 'typebox';
import type {
  Link,
  NodeIdentity,
  ServiceIdentity,
  TemplatedPolicy,
} from '../../api/bodies/answers.ts';
import type { MetaOptions } from '../command-line.ts';
import type { Connection } from '../flags/connection.ts';
import { field, fieldIf, list, type Part } from './block.ts';
import type { Column } from './table.ts';

type LinkShape = Static<typeof Link>;

export interface Granting {
  readonly Policies?: readonly LinkShape[] | null;
  readonly Roles?: readonly LinkShape[];
  readonly ServiceIdentities?: readonly Static<typeof ServiceIdentity>[];
  readonly NodeIdentities?: readonly Static<typeof NodeIdentity>[];
  readonly TemplatedPolicies?: readonly Static<typeof TemplatedPolicy>[];
}

export interface Stamped {
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
}

/** Everything that gives rights, one list a kind; kinds without members are left out. */
export function grantParts(object: Granting): readonly Part[] {
  return [
    list('Policies', (object.Policies ?? []).map(linkText)),
    list('Roles', (object.Roles ?? []).map(linkText)),
    list(
      'Service Identities',
      (object.ServiceIdentities ?? []).map(
        ({ ServiceName, Datacenters }) =>
          `${ServiceName} (Datacenters: ${datacentersText(Datacenters)})`,
      ),
    ),
    list(
      'Node Identities',
      (object.NodeIdentities ?? []).map(
        ({ NodeName, Datacenter }) => `${NodeName} (Datacenter: ${Datacenter})`,
      ),
    ),
    list('Templated Policies', (object.TemplatedPolicies ?? []).map(templatedText)),
  ];
}

export function linkText({ ID, Name }: LinkShape): string {
  return `${ID} - ${Name}`;
}

function templatedText(policy: Static<typeof TemplatedPolicy>): string {
  const name = policy.TemplateVariables?.name;
  const variables = name === undefined ? '' : ` name=${name}`;
  return `${policy.TemplateName}${variables} (Datacenters: ${datacentersText(policy.Datacenters)})`;
}

/** The words for where something is valid: no list means everywhere, also where nothing is yet. */
export function datacentersText(names: readonly string[] | null | undefined): string {
  return names === null || names === undefined || names.length === 0 ? 'all' : names.join(', ');
}

/** The names in one cell; beyond three, how many more there are. */
export function namesCell(names: readonly string[]): string {
  const shown = names.slice(0, 3).join(', ');
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown;
}

/** Service, node and templated identities in one cell: `service web, node n1, builtin/dns`. */
export function identitiesCell(object: Granting): string {
  return namesCell([
    ...(object.ServiceIdentities ?? []).map(({ ServiceName }) => `service ${ServiceName}`),
    ...(object.NodeIdentities ?? []).map(({ NodeName }) => `node ${NodeName}`),
    ...(object.TemplatedPolicies ?? []).map(({ TemplateName, TemplateVariables }) =>
      TemplateVariables?.name === undefined
        ? TemplateName
        : `${TemplateName} ${TemplateVariables.name}`,
    ),
  ]);
}

export function stampParts(object: Stamped & { readonly Hash?: string | null }): readonly Part[] {
  return [
    ...fieldIf('Hash', object.Hash ?? undefined),
    field('Create Index', object.CreateIndex),
    field('Modify Index', object.ModifyIndex),
  ];
}

/** What `--meta` adds to the columns of a list. */
export function metaColumns({
  meta,
}: MetaOptions): readonly Column<Stamped & { readonly Hash?: string | null }>[] {
  if (meta !== true) return [];
  return [
    { heading: 'Hash', cell: ({ Hash }) => Hash ?? '' },
    { heading: 'Create Index', cell: ({ CreateIndex }) => String(CreateIndex) },
    { heading: 'Modify Index', cell: ({ ModifyIndex }) => String(ModifyIndex) },
  ];
}

/** A time to the second, in UTC; texts that are no time stay as they are. */
export function timeText(text: string): string {
  const milliseconds = Date.parse(text);
  if (Number.isNaN(milliseconds)) return text;
  return new Date(milliseconds)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
}

/** A column that is only worth its place when objects of several namespaces are listed. */
export function namespaceColumn(
  connection: Connection,
): readonly Column<{ readonly Namespace?: string }>[] {
  if (connection.namespace !== '*') return [];
  return [{ heading: 'Namespace', cell: ({ Namespace }) => Namespace ?? 'default' }];
}

/** Whether a policy was made from an identity or a template: its name is a hash and names nothing stored. */
export function isSynthetic(policyName: string): boolean {
  return policyName.startsWith('synthetic-policy-');
}

/** The text with such names cut to what an eye can tell apart. */
export function withShortNames(text: string): string {
  return text.replace(/(synthetic-policy-[0-9a-f]{8})[0-9a-f]+/g, '$1…');
}
