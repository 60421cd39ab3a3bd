// When a server says that it is ready, what the leader began its reign with is there for whoever asks.

import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { openNode } from '../../../src/node/node.ts';
import {
  answeringReign,
  passReignBarrier,
  REIGN_METHOD,
} from '../../../src/node/reign/reign-barrier.ts';
import { readSettings } from '../../../src/node/settings/settings.ts';
import { openSystemPlatform } from '../../../src/platform-node/system-platform.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import { Client } from '../../support/running/running-node.ts';
import { watched } from '../../support/simulated/group-actions.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

/** A leader whose reign begins when the test says so. */
function aLeader() {
  let begin: (term: number) => void = () => undefined;
  const reign = new Promise<number>((resolve) => {
    begin = resolve;
  });
  return { begin: () => begin(1), leadership: { reign: () => reign } };
}

for (const isLeader of [true, false]) {
  const who = isLeader ? 'the leader' : 'a follower';
  t.test(`reign barrier: ${who} waits for the reign first, then for its own state`, async (t) => {
    const { begin, leadership } = aLeader();
    const answer = answeringReign(leadership);
    const steps: string[] = [];
    const passed = watched(
      passReignBarrier({
        leadership: {
          ...leadership,
          contact: () => ({ isLeader, knownLeader: true, lastContactMs: 0 }),
        },
        forwarding: {
          ask: (method) => {
            steps.push(method);
            return answer();
          },
        },
        readBarrier: async () => {
          steps.push('read barrier');
        },
      }).then(() => 'passed'),
    );
    await settled();
    const asked = isLeader ? [] : [REIGN_METHOD];
    t.same([steps, passed.result], [asked, undefined]);
    begin();
    await settled();
    t.same([steps, passed.result], [[...asked, 'read barrier'], 'passed']);
  });
}

t.test('reign barrier: who does not lead says so, and other faults are its own', async (t) => {
  const away = answeringReign({ reign: () => Promise.reject(new LeaderAway()) });
  await t.rejects(away(), { name: 'RpcRefusal', code: 'not-leader' });
  const broken = answeringReign({ reign: () => Promise.reject(new Error('broken')) });
  await t.rejects(broken(), { name: 'Error', message: 'broken' });
});

t.test('ready: the management token of the settings is there from then on', async (t) => {
  const folders: string[] = [];
  // The timers of a node do not keep a process alive, and a test waits for them.
  const awake = setInterval(() => undefined, 1_000);
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => {
    clearInterval(awake);
    agent.destroy();
    for (const folder of folders) rmSync(folder, { recursive: true });
  });
  for (const secret of ['the-first-secret', 'the-second-secret', 'the-third-secret']) {
    const dataFolder = mkdtempSync(join(tmpdir(), 'reign-'));
    folders.push(dataFolder);
    const settings = readSettings({
      flags: {
        'data-dir': dataFolder,
        'ports-http': '0',
        'ports-cluster': '-1',
        'log-level': 'error',
        'acl-tokens-initial-management': secret,
      },
      files: [],
      environment: {},
    });
    const platform = openSystemPlatform(settings);
    const node = await openNode({ settings, platform, version: 'test' });
    try {
      await node.opened;
      const own = { port: node.addresses[0]?.port ?? 0, agent, dataFolder };
      const self = await new Client(own, 'X-Service-', secret).get('/acl/token/self');
      t.equal(self.status, 200, `${secret}: ${self.text}`);
    } finally {
      await node.close();
    }
  }
});
