// Settings: where values come from, what is refused, and that secrets stay hidden.

import t from 'tap';
import { readSettings, SettingsError, shownSettings } from '../../src/node/settings.ts';
import { flagOf, SETTING_KEYS, variableOf } from '../../src/node/settings-keys.ts';

const nothing = { flags: {}, files: [], environment: {} };

function refusalOf(sources: Partial<Parameters<typeof readSettings>[0]>): string {
  try {
    readSettings({ ...nothing, ...sources });
  } catch (error) {
    if (error instanceof SettingsError) return error.message;
    throw error;
  }
  return 'accepted';
}

t.test('settings: without any source every key has its default', async (t) => {
  const settings = readSettings(nothing);
  t.equal(settings.datacenter, 'dc1');
  t.equal(settings['ports.http'], 8500);
  t.equal(settings['acl.default_policy'], 'deny');
  t.equal(settings['acl.token_max_ttl'], 86_400_000_000_000n);
  const names = new Set<string>(SETTING_KEYS.map(({ name }) => name));
  t.same(new Set(Object.keys(settings)), names);
});

t.test(
  'settings: flags win over files, later files over earlier, files over the environment',
  async (t) => {
    const files = [
      { path: 'a.json', value: { datacenter: 'from-a', ports: { http: 1 }, log_level: 'warn' } },
      { path: 'b.yaml', value: { datacenter: 'from-b', ports: { http: 2 } } },
    ];
    const environment = {
      CONCLAVE_LOG_LEVEL: 'error',
      CONCLAVE_NODE_NAME: 'from-env',
      CONCLAVE_PORTS_HTTP: '9',
    };
    const settings = readSettings({ flags: { 'ports-http': '3' }, files, environment });
    t.equal(settings['ports.http'], 3);
    t.equal(settings.datacenter, 'from-b');
    t.equal(settings.log_level, 'warn');
    t.equal(settings.node_name, 'from-env');
  },
);

t.test('settings: every key has a flag and a variable of its own', async (t) => {
  t.equal(flagOf('limits.http_max_conns_per_client'), 'limits-http-max-conns-per-client');
  t.equal(variableOf('acl.tokens.initial_management'), 'CONCLAVE_ACL_TOKENS_INITIAL_MANAGEMENT');
  t.equal(new Set(SETTING_KEYS.map(({ name }) => flagOf(name))).size, SETTING_KEYS.length);
  t.equal(new Set(SETTING_KEYS.map(({ name }) => variableOf(name))).size, SETTING_KEYS.length);
});

t.test('settings: a refusal names the setting and where it came from', async (t) => {
  const cases: readonly (readonly [Parameters<typeof refusalOf>[0], string])[] = [
    [{ flags: { 'no-such': 'x' } }, 'unknown flag --no-such'],
    [{ files: [{ path: 'f.json', value: { nope: 1 } }] }, 'f.json: unknown setting nope'],
    [
      { files: [{ path: 'f.json', value: { ports: { grpc: 1 } } }] },
      'f.json: unknown setting ports.grpc',
    ],
    [
      { files: [{ path: 'f.json', value: { ports: 5 } }] },
      'f.json: expected a map of settings under ports',
    ],
    [{ files: [{ path: 'f.json', value: [] }] }, 'f.json: expected a map of settings'],
    [
      { flags: { 'ports-http': '70000' } },
      'ports.http (flag --ports-http): expected a port: -1 (off), 0 (any free one) or 1 to 65535, not "70000"',
    ],
    [
      { environment: { CONCLAVE_ACL_ENABLED: 'maybe' } },
      'acl.enabled (environment variable CONCLAVE_ACL_ENABLED): expected true or false, not "maybe"',
    ],
    [
      { flags: { 'acl-default-policy': 'ask' } },
      'acl.default_policy (flag --acl-default-policy): expected one of deny, allow, not "ask"',
    ],
    [
      { flags: { 'acl-token-max-ttl': '1d' } },
      'acl.token_max_ttl (flag --acl-token-max-ttl): expected a duration above zero such as 90s or 1h30m, not "1d"',
    ],
    [
      { flags: { 'acl-token-min-ttl': '2h', 'acl-token-max-ttl': '1h' } },
      'acl.token_min_ttl is longer than acl.token_max_ttl',
    ],
    [
      { flags: { 'ports-http': '-1' } },
      'ports.http and ports.https are both off: nothing would listen',
    ],
    [
      { flags: { 'acl-tokens-initial-management': 'manage' } },
      'acl.tokens.initial_management: the secret is a word that the system keeps for itself',
    ],
    [{ flags: { 'ports-https': '0' } }, 'ports.https needs tls.cert_file and tls.key_file'],
    [
      { flags: { datacenter: 'Big DC' } },
      'datacenter: expected lower-case letters, digits, - and _ (at most 64), not "Big DC"',
    ],
  ];
  for (const [sources, expected] of cases) t.equal(refusalOf(sources), expected);
});

t.test('settings: a secret is shown nowhere, not even when it is refused', async (t) => {
  const files = [{ path: 'f.json', value: { acl: { tokens: { initial_management: 123456 } } } }];
  t.notMatch(refusalOf({ files }), /123456/);
  const shown = shownSettings(
    readSettings({ ...nothing, flags: { 'acl-tokens-default': 'hush-hush' } }),
  );
  t.equal(shown['acl.tokens.default'], '<hidden>');
  t.equal(shown['acl.tokens.initial_management'], '');
  t.doesNotThrow(() => JSON.stringify(shown));
});
