// Servers of one datacenter with other settings: the leader finds out and says which, never what a secret is.

import t from 'tap';
import type { RpcCall } from '../../../cluster/transport/transport.ts';
import { SETTINGS_METHOD, SettingsCompared } from '../../../src/node/reign/settings-compared.ts';
import { readSettings } from '../../../src/node/settings/settings.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeRandom } from '../../support/fake-random.ts';

const LOOK_MS = 300_000;

type Answer = (payload: Uint8Array) => Uint8Array;

function settingsOf(flags: Readonly<Record<string, string>>) {
  return readSettings({ flags, files: [], environment: {} });
}

/** A leader, and other servers by the flags that they are started with; or by what they answer. */
function leaderWith(
  flags: Readonly<Record<string, string>>,
  others: readonly (Readonly<Record<string, string>> | Answer)[],
) {
  const clock = new FakeClock();
  const told: Record<string, unknown>[] = [];
  const logger = {
    ...{ debug: () => {}, info: () => {}, warn: () => {} },
    error: (fields: object) => void told.push({ ...fields }),
  };
  const random = new FakeRandom();
  const asked: number[] = [];
  const answers = others.map((other): Answer => {
    if (typeof other === 'function') return other;
    const member = { members: () => [], call: () => Promise.reject(new Error('it does not lead')) };
    const server = new SettingsCompared({
      settings: settingsOf(other),
      member,
      clock,
      random,
      logger,
    });
    return (payload) => server.answer(payload);
  });
  const members = [{ node: 0, name: 'own', isSelf: true, isAlive: true }].concat(
    others.map((_, place) => ({
      ...{ node: place + 1, name: `n${place + 1}`, isSelf: false, isAlive: true },
    })),
  );
  const leader = new SettingsCompared({
    settings: settingsOf(flags),
    member: {
      members: () => members as never,
      call: async (to: unknown, { method, payload }: RpcCall) => {
        asked.push(to as number);
        t.equal(method, SETTINGS_METHOD);
        return answers[(to as number) - 1]!(payload);
      },
    },
    ...{ clock, random, logger },
  });
  const look = async (): Promise<readonly Record<string, unknown>[]> => {
    told.length = 0;
    clock.advance(LOOK_MS);
    for (let turn = 0; turn < 20; turn += 1) await new Promise<void>((done) => setImmediate(done));
    return [...told];
  };
  return { leader, look, asked, members };
}

t.test('set alike: servers with the same settings are not spoken of', async (t) => {
  const own = { 'acl-tokens-initial-management': 'one-secret', 'acl-token-max-ttl': '24h' };
  const alike = {
    ...own,
    'acl-token-max-ttl': '1440m',
    'node-name': 'x',
    'http-dialect': 'consul',
  };
  const { leader, look, asked } = leaderWith(own, [alike, alike]);
  leader.start();
  t.same(await look(), []);
  t.same(asked, [1, 2]);
  leader.stop();
  await look();
  t.same(asked, [1, 2], 'who does not lead asks nobody');
});

t.test('set alike: what differs is told once, for as long as it does', async (t) => {
  const allowing = { 'acl-default-policy': 'allow', 'acl-enabled': 'false' };
  const { leader, look, members } = leaderWith({}, [allowing, {}, { 'primary-datacenter': 'dc1' }]);
  leader.start();
  t.same(await look(), [
    { setting: 'acl.enabled', server: 'n1', here: 'true', there: 'false' },
    { setting: 'acl.default_policy', server: 'n1', here: 'deny', there: 'allow' },
    { setting: 'primary_datacenter', server: 'n3', here: '', there: 'dc1' },
  ]);
  t.same(await look(), []);
  const [, first] = members;
  first!.isAlive = false;
  t.same(await look(), [], 'it is away');
  first!.isAlive = true;
  t.equal((await look()).length, 2, 'and there again');
  await leader.close();
});

t.test('set alike: of a secret it is told that it differs, and no more is sent', async (t) => {
  const own = { 'acl-tokens-initial-management': 'one-secret' };
  const sent: string[] = [];
  const spied = leaderWith(own, [{ 'acl-tokens-initial-management': 'two-secret' }, {}]);
  const server = new SettingsCompared({
    ...{ settings: settingsOf(own), clock: new FakeClock(), random: new FakeRandom() },
    member: { members: () => [], call: () => Promise.reject(new Error('nobody')) },
    logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  for (const byte of [1, 2]) {
    sent.push(new TextDecoder().decode(server.answer(new Uint8Array(32).fill(byte))));
  }
  t.notMatch(sent[0], 'one-secret');
  t.not(sent[0], sent[1], 'what one leader was told is of no use to another');
  spied.leader.start();
  const setting = 'acl.tokens.initial_management';
  t.same(await spied.look(), [
    { setting, server: 'n1' },
    { setting, server: 'n2' },
  ]);
});

t.test('set alike: who cannot tell, or tells nothing of it, is left alone', async (t) => {
  const refuses: Answer = () => {
    throw new Error('no such method');
  };
  const says =
    (text: string): Answer =>
    () =>
      new TextEncoder().encode(text);
  const { leader, look } = leaderWith({}, [
    refuses,
    says('{'),
    says('null'),
    says('{"newer":"1"}'),
  ]);
  leader.start();
  t.same(await look(), []);
  t.same(await look(), [], 'and it goes on');
});
