// Namespaces and members on the screen.

import { addressText } from '../../../cluster/platform/net.ts';
import type { CallOutput } from '../../client/call-types.ts';
import { field, list, type Part } from './block.ts';
import { linkText, namesCell, stampParts } from './common.ts';
import type { Column } from './table.ts';

type Namespace = CallOutput<'namespace.read'>;
type Member = CallOutput<'agent.members'>[number];

export function namespaceParts(namespace: Namespace): readonly Part[] {
  return [
    field('Name', namespace.Name),
    field('Description', namespace.Description),
    ...stampParts(namespace),
    list('Default Policies', (namespace.ACLs.PolicyDefaults ?? []).map(linkText)),
    list('Default Roles', (namespace.ACLs.RoleDefaults ?? []).map(linkText)),
    list(
      'Meta',
      Object.entries(namespace.Meta ?? {}).map(([name, value]) => `${name} = ${value}`),
    ),
  ];
}

export const NAMESPACE_COLUMNS: readonly Column<Namespace>[] = [
  { heading: 'Name', cell: ({ Name }) => Name },
  {
    heading: 'Default Policies',
    cell: ({ ACLs }) => namesCell((ACLs.PolicyDefaults ?? []).map(({ Name }) => Name)),
  },
  {
    heading: 'Default Roles',
    cell: ({ ACLs }) => namesCell((ACLs.RoleDefaults ?? []).map(({ Name }) => Name)),
  },
  { heading: 'Description', cell: ({ Description }) => Description },
];

const STATUS_WORDS: ReadonlyMap<number, string> = new Map([
  [1, 'alive'],
  [2, 'leaving'],
  [3, 'left'],
  [4, 'failed'],
]);

export const MEMBER_COLUMNS: readonly Column<Member>[] = [
  { heading: 'Node', cell: ({ Name }) => Name },
  { heading: 'Address', cell: ({ Addr, Port }) => addressText({ host: Addr, port: Port }) },
  { heading: 'Status', cell: ({ Status }) => STATUS_WORDS.get(Status) ?? `status ${Status}` },
  { heading: 'Voter', cell: ({ Tags }) => (Tags.voter === 'true' ? 'yes' : 'no') },
];
