// The members of simulated groups, and how a group is changed by them.

import type {
  MemberChangeKind,
  MembershipChange,
} from '../../../cluster/raft/membership/membership-change.ts';
import { encodeGroupContext, type MemberRecord } from '../../../cluster/replica/group-record.ts';

export function memberRecordOf(node: number): MemberRecord {
  const address = { host: '127.0.0.1', port: 8300 + node };
  return { node, id: `uuid-${node}`, name: `n${node}`, address, httpAddress: '', version: '1' };
}

/** A change with the records of those who are added. */
export function changeOf(
  ...steps: readonly (readonly [kind: MemberChangeKind, node: number])[]
): MembershipChange {
  const changes = steps.map(([kind, node]) => ({ kind, node }));
  const members = changes
    .filter(({ kind }) => kind !== 'remove')
    .map(({ node }) => memberRecordOf(node));
  const context = encodeGroupContext(members.length === 0 ? {} : { members });
  return { transition: 'auto', changes, context };
}
