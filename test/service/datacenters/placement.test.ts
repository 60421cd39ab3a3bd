// Where a call runs: here or in another datacenter.

import t from 'tap';
import { placementOf } from '../../../src/service/datacenters/placement.ts';
import { OPERATION_TABLE } from '../../../src/service/operation-table.ts';
import type { OperationName } from '../../../src/service/operations.ts';

t.test('placement: what another datacenter sends is run, or sent back; never sent on', (t) => {
  const primary = { datacenter: 'dc1', primaryDatacenter: 'dc1' };
  const before = { datacenter: 'dc1', primaryDatacenter: 'dc3' };
  const cases = [
    ['policy.create', undefined, primary, { kind: 'here' }],
    ['policy.create', undefined, before, { kind: 'astray', name: 'dc3' }],
    ['policy.list', undefined, before, { kind: 'here' }],
    ['token.create', true, primary, { kind: 'local-here' }],
    ['token.update', true, primary, { kind: 'local-here' }],
    ['token.delete', true, primary, { kind: 'here' }],
    ['logout', true, before, { kind: 'here' }],
    ['login', true, primary, { kind: 'ahead', name: 'dc2' }],
    ['oidc.callback', true, before, { kind: 'ahead', name: 'dc2' }],
    ['login', false, before, { kind: 'astray', name: 'dc3' }],
  ] as const;
  for (const [name, isLocalToken, topology, expected] of cases) {
    const facts = OPERATION_TABLE[name as OperationName];
    const question = { facts, datacenter: undefined, isLocalToken, from: 'dc2' };
    t.same(placementOf(question, topology), expected, name);
  }
  t.end();
});

t.test('placement: who is named answers for what lives there, and not for what all share', (t) => {
  const primary = { datacenter: 'dc1', primaryDatacenter: 'dc1' };
  const secondary = { datacenter: 'dc2', primaryDatacenter: 'dc1' };
  const cases = [
    ['login', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['login', false, 'dc2', primary, { kind: 'here' }],
    ['login', true, 'dc2', primary, { kind: 'datacenter', name: 'dc2' }],
    ['logout', false, 'dc2', primary, { kind: 'here' }],
    ['logout', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['logout', undefined, 'dc2', primary, { kind: 'datacenter', name: 'dc2' }],
    ['logout', undefined, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['logout', true, 'dc2', secondary, { kind: 'here' }],
    ['login', undefined, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['oidc.auth-url', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
    ['token.delete', false, 'dc2', secondary, { kind: 'datacenter', name: 'dc1' }],
  ] as const;
  for (const [name, isLocalToken, datacenter, topology, expected] of cases) {
    const facts = OPERATION_TABLE[name];
    const question = { facts, datacenter, isLocalToken, from: undefined };
    t.same(placementOf(question, topology), expected, `${name} at ${topology.datacenter}`);
  }
  t.end();
});
