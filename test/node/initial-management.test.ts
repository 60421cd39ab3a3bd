// The management token of the settings is made once: who deletes it has revoked it, whichever server leads next, and
// however often servers are started with the same settings.

import t from 'tap';
import { InitialManagement } from '../../src/node/initial-management.ts';
import type { SecretId } from '../../src/acl/ids.ts';
import type { AppliedEvent } from '../../src/state/watch.ts';
import {
  leaderOf,
  allReady,
  runServers,
  type ServerUnderTest,
  until,
} from '../support/running-group.ts';
import { ROOT } from '../support/running-node.ts';

const SECRET = 'the-secret-of-the-settings' as SecretId;

/** One server's memory, over a state that has the token or not. */
function aServer(secret: SecretId | undefined, text?: string) {
  const world = { hasToken: false, text, isFull: false, warned: [] as string[] };
  let listener: ((event: AppliedEvent) => void) | undefined;
  const start = () =>
    new InitialManagement({
      secret,
      view: { tokenBySecret: () => (world.hasToken ? ({} as never) : undefined) },
      watch: {
        onApplied: (told) => {
          listener = told;
          return () => undefined;
        },
      },
      kept: {
        read: () => world.text,
        write: (given) => {
          if (world.isFull) throw new Error('ENOSPC');
          world.text = given;
        },
      },
      logger: {
        debug: () => {},
        info: () => {},
        warn: (_, message) => void world.warned.push(message),
        error: () => {},
      },
    });
  /** The state changes. */
  const apply = (hasToken: boolean, table: 'tokens' | 'policies' = 'tokens'): void => {
    world.hasToken = hasToken;
    listener?.({ kind: 'changed', changes: [{ table, key: '', watchKeys: [] }] });
  };
  return { world, start, apply };
}

t.test('made once: what stood and is gone is made no more, by no life of the server', (t) => {
  const { world, start, apply } = aServer(SECRET);
  const first = start();
  t.equal(first.secretToMake(), SECRET, 'nobody has it');
  t.equal(first.secretToMake(), SECRET, 'nor was that enough');
  apply(true);
  t.equal(first.secretToMake(), undefined);
  t.notMatch(world.text, SECRET, 'the secret is no text of a plain file');
  apply(false);
  t.equal(first.secretToMake(), undefined, 'it was deleted');
  t.equal(first.secretToMake(), undefined);
  t.equal(world.warned.length, 1, 'said once');
  t.equal(start().secretToMake(), undefined, 'and after a start');
  const other = aServer('another-secret-of-settings' as SecretId, world.text);
  t.equal(other.start().secretToMake(), 'another-secret-of-settings', 'of another secret, one is');
  t.end();
});

t.test('made once: a server that starts where it stands remembers it', (t) => {
  const { world, start, apply } = aServer(SECRET);
  world.hasToken = true;
  const server = start();
  apply(false);
  t.equal(server.secretToMake(), undefined);
  t.equal(aServer(undefined).start().secretToMake(), undefined, 'settings without one');
  t.end();
});

t.test('made once: a full disk does not bring it back', (t) => {
  const { world, start, apply } = aServer(SECRET);
  const server = start();
  world.isFull = true;
  apply(true);
  apply(false);
  t.equal(server.secretToMake(), undefined, 'this life knows');
  world.isFull = false;
  apply(true);
  t.equal(typeof world.text, 'string', 'and the disk as soon as it can');
  t.end();
});

async function statusAt(server: ServerUnderTest, secret: string): Promise<number> {
  return (await server.client.as(secret).get('/acl/token/self')).status;
}

t.test('made once: an election and a start leave it revoked everywhere', async (t) => {
  const servers = await runServers(t, 3);
  const leader = await leaderOf(servers);
  const own = (await leader.client.get('/acl/token/self')).json.AccessorID;
  const policies = { Policies: [{ Name: 'global-management' }] };
  const { SecretID: mine } = await leader.client.made('PUT', '/acl/token', policies);
  const admin = leader.client.as(mine);
  t.equal((await admin.delete(`/acl/token/${own}`)).text, 'true');

  await leader.close();
  await until('another one leads', async () => (await leaderOf(servers)) !== leader);
  const next = await leaderOf(servers);
  const made = await next.client.as(mine).put('/acl/policy', { Name: 'behind' });
  t.equal(made.status, 200, 'its reign has begun');
  t.equal(await statusAt(next, ROOT), 403);

  await leader.open();
  await Promise.all(servers.filter((each) => each !== leader).map((each) => each.close()));
  for (const each of servers) if (!each.isOpen) await each.open();
  await allReady(servers);
  for (const each of servers) t.equal(await statusAt(each, ROOT), 403, each.name);
});
