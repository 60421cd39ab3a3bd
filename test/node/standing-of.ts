// Who leads, and how a member stands, as a test says it.

import type { MemberStanding } from '../../cluster/member/group-member.ts';

export const LEADER = {
  node: 2,
  id: 'b',
  name: 'b',
  address: { host: '10.0.0.2', port: 8300 },
  httpAddress: '',
  version: '1',
};

export function memberOf(
  fields: Partial<Extract<MemberStanding, { kind: 'member' }>>,
): MemberStanding {
  return {
    kind: 'member',
    isLeader: false,
    leader: LEADER,
    lastContactMs: 1,
    term: 1,
    isDiskStalled: false,
    ...fields,
  };
}

export async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
