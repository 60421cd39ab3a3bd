// Local tokens that are carried into a snapshot of the reign that left a fork, and what is done to them meanwhile.

import t from 'tap';
import { DEFAULT_NAMESPACE, GLOBAL_MANAGEMENT_ID } from '../../../src/acl/ids.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { aNamespace, anAuthMethod, aToken } from '../../support/state-and-service/fixtures.ts';
import { World } from './world.ts';

/** What a local token links to that was changed while a snapshot of the next reign came in, behind being carried. */
async function linksBehindDiscard(level: number): Promise<readonly string[]> {
  const world = await World.open();
  const { dc1 } = world.machines;
  const methodSaying = (description: string): Change => {
    const method = anAuthMethod('login', { description });
    return { type: 'auth-method.set', presence: 'either', method };
  };
  await world.say('dc1', { type: 'level.raise', level });
  await world.say('dc1', methodSaying('one'));
  const policies = [GLOBAL_MANAGEMENT_ID];
  const authMethod = dc1.machine.authMethod(DEFAULT_NAMESPACE, 'login')!;
  const token = aToken(300, { local: true, policies, authMethod });
  await dc1.one({ type: 'token.set', presence: 'create', token });
  await world.sync('dc1', 'dc2');
  await world.say('dc1', methodSaying('two'));
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  const snapshot = (await world.machines.dc2.machine.globalSnapshot())!;
  const id = 'one';
  await dc1.one({ type: 'global-snapshot.begin', id, header: snapshot.header });
  let number = 0;
  for await (const rows of snapshot.pieces()) {
    number += 1;
    await dc1.one({ type: 'global-snapshot.chunk', id, number, rows });
  }
  await snapshot.close();
  const carry = { type: 'global-snapshot.carry', id } as const;
  await dc1.one({ ...carry, number: 1, keys: [], isLast: false });
  const keys = await dc1.machine.localRows(undefined, 1000);
  await dc1.one({ ...carry, number: 2, keys, isLast: true });
  for (const { epoch, last } of world.at('dc1').divergent) {
    await dc1.one({ type: 'divergent.discard', epoch, upTo: last });
  }
  await dc1.one({ type: 'token.set', presence: 'update', token: { ...token, policies: [] } });
  await dc1.one({ type: 'global-snapshot.commit', id });
  if (world.at('dc1').isDiverged) throw new Error('the snapshot is not taken');
  return dc1.machine.tokenBySecret(token.secretId)!.policies;
}

t.test('a fork: what is taken from a token that was carried is not given back', async (test) => {
  test.same(await linksBehindDiscard(8), []);
  test.same(await linksBehindDiscard(7), [GLOBAL_MANAGEMENT_ID], 'as older releases apply it');
});

t.test('a fork: nothing is left of what hung on a method that was deleted on it', async (test) => {
  const world = await World.open();
  const { dc1 } = world.machines;
  await world.say('dc1', { type: 'level.raise', level: 8 });
  await world.sync('dc1', 'dc2');
  const method = anAuthMethod('login');
  await world.say('dc1', { type: 'auth-method.set', presence: 'either', method });
  const authMethod = dc1.machine.authMethod(DEFAULT_NAMESPACE, 'login')!;
  const token = aToken(300, { local: true, authMethod });
  await dc1.one({ type: 'token.set', presence: 'create', token });
  await world.say('dc1', {
    type: 'auth-method.delete',
    namespace: DEFAULT_NAMESPACE,
    name: 'login',
  });
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  test.equal(await world.take('dc2', 'dc1'), 'applied');
  // The next reign may come to the index of that method later, with a method of its own.
  test.equal(dc1.machine.token(token.accessorId), undefined);
});

t.test('a fork: the namespace of all is the same one, whatever was written of it', async (test) => {
  const world = await World.open();
  const { dc1 } = world.machines;
  await world.say('dc1', { type: 'level.raise', level: 8 });
  await world.sync('dc1', 'dc2');
  const space = aNamespace(DEFAULT_NAMESPACE, { description: 'changed' });
  await world.say('dc1', { type: 'namespace.set', presence: 'update', namespace: space });
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(300, { local: true }) });
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  // From here on nobody can tell what was made on the fork, and what before it.
  const [range] = world.at('dc1').divergent;
  await world.say('dc1', { type: 'divergent.discard', epoch: 1, upTo: range!.last });
  test.equal(await world.take('dc2', 'dc1'), 'applied');
  test.ok(dc1.machine.token(aToken(300).accessorId));
  test.equal(dc1.machine.totals().localTokens, 1);
});
