// What a server tells the person who started it: where it listens, and what to type next.

import t from 'tap';
import { banner, openedText } from '../../src/cli/agent/banner.ts';
import { readSettings } from '../../src/node/settings/settings.ts';

const settings = readSettings({ flags: { 'node-name': 'n1' }, files: [], environment: {} });

function started({
  url = 'http://127.0.0.1:8500',
  program = '/opt/conclave/dist/src/main.js',
  isBootstrapped = false,
} = {}) {
  const node = {
    addresses: [{ host: 'unused', port: 0, url }],
    clusterAddress: undefined,
    isBootstrapped: () => isBootstrapped,
    info: { leader: () => undefined, notReadyReasons: () => [] },
  };
  return { settings, node, program };
}

function lastLine(text: string): string | undefined {
  return text.trimEnd().split('\n').at(-1)?.trim();
}

t.test('banner: what to type next reaches the server that was started', (t) => {
  const next: readonly (readonly [string, string])[] = [
    ['http://127.0.0.1:8500', 'npx conclave acl bootstrap'],
    ['http://0.0.0.0:8500', 'npx conclave acl bootstrap'],
    ['http://0.0.0.0:9500', 'CONCLAVE_HTTP_ADDR=http://127.0.0.1:9500 npx conclave acl bootstrap'],
    ['https://[::]:8501', 'CONCLAVE_HTTP_ADDR=https://[::1]:8501 npx conclave acl bootstrap'],
    ['http://10.0.0.1:8500', 'CONCLAVE_HTTP_ADDR=http://10.0.0.1:8500 npx conclave acl bootstrap'],
  ];
  for (const [url, command] of next) {
    const text = banner(started({ url }), '1.2.3');
    t.equal(lastLine(text), command);
    t.match(text, `listening   ${url}`, 'where it listens is said as it is');
    t.equal(text.includes('CONCLAVE_CACERT'), url.startsWith('https:'));
  }
  t.equal(lastLine(openedText(started({ isBootstrapped: true }))), 'npx conclave acl token list');
  t.end();
});

t.test('banner: a program on the path is called by its name', (t) => {
  const calls: readonly (readonly [string, string])[] = [
    ['/usr/local/bin/conclave', 'conclave acl bootstrap'],
    ['/srv/app/node_modules/.bin/conclave', 'npx conclave acl bootstrap'],
    ['', 'npx conclave acl bootstrap'],
  ];
  for (const [program, command] of calls) {
    t.equal(lastLine(banner(started({ program }), '1.2.3')), command);
  }
  t.end();
});
