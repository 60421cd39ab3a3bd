// Settings: where values come from, what is refused, and that secrets stay hidden.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { agentCommand } from '../../src/cli/agent/agent.ts';
import { COMMAND_VARIABLES } from '../../src/cli/flags/variables.ts';
import { groupPlanOf } from '../../src/node/settings/cluster-settings.ts';
import {
  isManagementGuessable,
  readSettings,
  SettingsError,
  shownSettings,
} from '../../src/node/settings/settings.ts';
import { flagOf, SETTING_KEYS, variableOf } from '../../src/node/settings/settings-keys.ts';
import { strayVariables } from '../../src/node/settings/stray-variables.ts';

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

t.test(
  'settings: an address is one that can be listened at, or dialled, in any spelling',
  async (t) => {
    const bare = (name: string, text: string) =>
      `${name}: expected an address without brackets and without a port, such as 10.0.0.1 or ::1, not ${JSON.stringify(text)}`;
    const named = (text: string) =>
      `bind_addr ${text} names no address that other servers could reach: set advertise_addr`;
    for (const text of ['[::1]', '127.0.0.1:8500', '::g', 'a/b', '::1%']) {
      t.equal(refusalOf({ flags: { 'bind-addr': text } }), bare('bind_addr', text));
      t.equal(refusalOf({ flags: { 'client-addr': text } }), bare('client_addr', text));
    }
    for (const text of ['0.0.0.0', '0', '::', '::0', '0:0:0:0:0:0:0:0', '::ffff:0.0.0.0', '::1%lo'])
      t.equal(refusalOf({ flags: { 'bind-addr': text } }), named(text));
    for (const text of ['::1', '0:0::1', '0:0:0:0:0:0:0:1', '127.0.0.1', '127.8.0.1', 'localhost'])
      t.equal(refusalOf({ flags: { 'bind-addr': text } }), 'accepted', text);
    for (const text of ['::', '::1%lo', 'node-1.internal', '10.0.0.1'])
      t.equal(refusalOf({ flags: { 'client-addr': text } }), 'accepted', text);
    for (const text of ['::2', '::ffff:127.0.0.1', '10.0.0.1', 'node-1'])
      t.match(refusalOf({ flags: { 'bind-addr': text } }), 'nothing keeps strangers out', text);
    for (const text of ['[::0]:8300', '0:0:0:0:0:0:0:0', '0', '[::1%lo]', '::1%lo'])
      t.match(refusalOf({ flags: { 'advertise-addr': text } }), 'advertise_addr: expected', text);
    const lists = ['retry-join', 'retry-join-wan'] as const;
    for (const name of lists) {
      for (const text of [
        ':::',
        '[abc]:1',
        '[fe80::1%eth0]:1',
        'a%b',
        'a?b:1',
        'a\\b',
        '[10.0.0.1]:1',
      ])
        t.match(refusalOf({ flags: { [name]: text } }), `not ${JSON.stringify(text)}`, text);
      for (const text of ['[::1]:8300', '::1', '[fd00::1]', 'a_b:1', 'node-1', '10.0.0.1:8300'])
        t.equal(refusalOf({ flags: { [name]: text } }), 'accepted', text);
    }
  },
);

t.test('settings: a node has a name that others can read', async (t) => {
  for (const name of ['a\u001b[31m', 'a\nb', 'x'.repeat(256), 'ü'.repeat(128)])
    t.match(refusalOf({ flags: { 'node-name': name } }), 'node_name: expected at most 255 bytes');
  for (const name of ['x'.repeat(255), 'Knoten 1'])
    t.equal(refusalOf({ flags: { 'node-name': name } }), 'accepted');
});

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
      {
        files: [
          { path: 'f.yaml', value: { acl: { enabled: true } } },
          { path: 'g.yaml', value: { acl: { enabled: false }, 'acl.enabled': true } },
        ],
      },
      'g.yaml: acl.enabled is set twice',
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
    [
      { flags: { 'acl-tokens-initial-management': 'abc-def\n' } },
      'acl.tokens.initial_management: the secret has blanks at an end, line ends or other characters that no header can carry',
    ],
    [
      { flags: { 'client-addr': '' } },
      'client_addr (flag --client-addr): expected a text that is not empty, not ""',
    ],
    [
      { files: [{ path: 'f.json', value: { acl: { default_policy: ['deny'] } } }] },
      'acl.default_policy (f.json): expected one of deny, allow, not ["deny"]',
    ],
    [
      { flags: { 'federation-primary-lease': '1s' } },
      'federation.primary_lease: expected 2s or more, or 0s for none',
    ],
    [{ flags: { 'federation-primary-lease': '0s' } }, 'accepted'],
    [
      {
        environment: { CONCLAVE_PORTS_HTTP: 'none' },
        files: [{ path: 'f.json', value: { ports: { http: 8500 } } }],
      },
      'ports.http (environment variable CONCLAVE_PORTS_HTTP): expected a port: -1 (off), 0 (any free one) or 1 to 65535, not "none"',
    ],
    [
      {
        files: [{ path: 'f.json', value: { ports: { http: 'x' } } }],
        flags: { 'ports-http': '0' },
      },
      'ports.http (f.json): expected a port: -1 (off), 0 (any free one) or 1 to 65535, not "x"',
    ],
    [
      { flags: { 'federation-visible-wait': '10m1s' } },
      'federation.visible_wait: expected at most 10m',
    ],
    [{ flags: { 'federation-visible-wait': '10m' } }, 'accepted'],
    [
      { flags: { 'federation-ack-timeout': '10m1s' } },
      'federation.ack_timeout: expected at most 10m',
    ],
    [
      { flags: { 'federation-log-max-age': '999ms' } },
      'federation.log_max_age: expected 1s or more',
    ],
    [{ flags: { 'federation-log-max-age': '1s' } }, 'accepted'],
    [{ environment: { CONCLAVE_CLIENT_ADDR: '' } }, 'accepted'],
    [{ flags: { 'ports-https': '0' } }, 'ports.https needs tls.cert_file and tls.key_file'],
    [
      { flags: { 'tls-cert-file': 'cert.pem' } },
      'tls.cert_file and tls.key_file: one is set, and both are needed',
    ],
    [
      { flags: { 'tls-verify-incoming': 'true', 'tls-ca-file': 'ca.pem' } },
      'tls.verify_incoming needs ports.https: it asks nobody at ports.http for a certificate',
    ],
    [{ flags: { 'ports-http': '8300' } }, 'ports.http and ports.cluster are both 8300'],
    [{ flags: { 'ports-http': '8300', 'client-addr': '127.0.0.2' } }, 'accepted'],
    [{ flags: { 'ports-http': '0', 'ports-cluster': '0' } }, 'accepted'],
    [
      { flags: { datacenter: 'Big DC' } },
      'datacenter: expected lower-case letters, digits, - and _ (at most 64), and none of - and _ at an end, not "Big DC"',
    ],
    [
      { files: [{ path: 'f.json', value: { retry_join: [1] } }] },
      'retry_join (f.json): expected a list of texts, or one text with commas between them, not [1]',
    ],
  ];
  for (const [sources, expected] of cases) t.equal(refusalOf(sources), expected);
});

t.test('settings: a list is a list in files, and a text with commas everywhere', async (t) => {
  const wanted = ['10.0.0.2', '10.0.0.3:9300', '[::1]:8300'];
  const text = '10.0.0.2, 10.0.0.3:9300,,[::1]:8300';
  const sources: readonly Partial<Parameters<typeof readSettings>[0]>[] = [
    { flags: { 'retry-join': text } },
    { environment: { CONCLAVE_RETRY_JOIN: text } },
    { files: [{ path: 'f.yaml', value: { retry_join: text } }] },
    { files: [{ path: 'f.yaml', value: { retry_join: wanted } }] },
  ];
  for (const each of sources) t.same(readSettings({ ...nothing, ...each }).retry_join, wanted);
  t.same(readSettings(nothing).retry_join, []);
  const long = Array.from({ length: 101 }, () => 'a').join();
  t.match(
    refusalOf({ flags: { 'retry-join': long } }),
    /^retry_join \(flag --retry-join\): expected a list/,
  );
});

const KEY = Buffer.alloc(32, 7).toString('base64');

t.test('settings: what several servers need of each other is looked at together', async (t) => {
  const open =
    'bind_addr 10.0.0.1 can be reached from other machines, and nothing keeps strangers out of the group. ' +
    'Either set the same cluster_key on all servers (make one with `conclave keygen` (or `openssl rand -base64 32`)), ' +
    'or set tls.cluster.cert_file, tls.cluster.key_file and tls.cluster.ca_file';
  const tls = { 'tls-cluster-cert-file': 'c.pem', 'tls-cluster-key-file': 'k.pem' };
  const cases: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [{ 'bind-addr': '10.0.0.1' }, open],
    [{ 'bind-addr': '10.0.0.1', 'cluster-key': KEY }, 'accepted'],
    [{ 'bind-addr': '10.0.0.1', 'ports-cluster': '-1' }, 'accepted'],
    [{ 'bind-addr': '10.0.0.1', ...tls }, open],
    [{ 'bind-addr': '10.0.0.1', ...tls, 'tls-cluster-ca-file': 'a.pem' }, 'accepted'],
    [{ 'bind-addr': '127.0.0.53' }, 'accepted'],
    [{ 'bind-addr': '::1' }, 'accepted'],
    [
      { 'bind-addr': '0.0.0.0', 'cluster-key': KEY },
      'bind_addr 0.0.0.0 names no address that other servers could reach: set advertise_addr',
    ],
    [{ 'bind-addr': '0.0.0.0', 'cluster-key': KEY, 'advertise-addr': '10.0.0.1' }, 'accepted'],
    [
      { 'advertise-addr': '0.0.0.0' },
      'advertise_addr: expected an address such as 10.0.0.1 or 10.0.0.1:8300, not "0.0.0.0"',
    ],
    [
      { 'advertise-addr': '10.0.0.1', 'ports-cluster': '0' },
      'advertise_addr needs a port of its own when ports.cluster is 0: the others must know it',
    ],
    [{ 'advertise-addr': '10.0.0.1:9300', 'ports-cluster': '0' }, 'accepted'],
    [
      { 'retry-join': '10.0.0.2:99999' },
      'retry_join: expected addresses such as 10.0.0.2 or 10.0.0.2:8300, not "10.0.0.2:99999"',
    ],
    [
      { 'bootstrap-expect': '3' },
      'bootstrap_expect is 3 and retry_join is empty: name the addresses of the other servers in retry_join',
    ],
    [
      { 'ports-cluster': '-1', 'retry-join': '10.0.0.2' },
      'ports.cluster is off and retry_join is set: servers reach each other through that port',
    ],
    [
      { 'tls-cluster-key-file': 'k.pem' },
      'tls.cluster.cert_file and tls.cluster.key_file: one is set, and both are needed',
    ],
    [
      { 'tls-cluster-ca-file': 'a.pem' },
      'tls.cluster.ca_file needs tls.cluster.cert_file and tls.cluster.key_file: every server shows a certificate of its own',
    ],
    [{ 'raft-heartbeat-interval': '5ms' }, 'raft.heartbeat_interval: expected at least 10ms'],
    [
      { 'raft-election-timeout': '400ms' },
      'raft.election_timeout: expected at least 5 times raft.heartbeat_interval',
    ],
    [{ 'raft-election-timeout': '2m' }, 'raft.election_timeout: expected at most 1m'],
  ];
  for (const [flags, expected] of cases) t.equal(refusalOf({ flags }), expected);
});

t.test('settings: what datacenters need of each other is looked at together', async (t) => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [{ 'primary-datacenter': 'dc1' }, 'accepted'],
    [
      { datacenter: 'dc2', 'primary-datacenter': 'dc1' },
      'primary_datacenter is dc1 and this server is of dc2: name addresses of servers of dc1 in retry_join_wan',
    ],
    [{ datacenter: 'dc2', 'primary-datacenter': 'dc1', 'retry-join-wan': '10.1.0.1' }, 'accepted'],
    [
      { 'retry-join-wan': '10.1.0.1', 'ports-cluster': '-1' },
      'ports.cluster is off and retry_join_wan is set: datacenters reach each other through that port',
    ],
    [
      { 'retry-join-wan': '10.1.0.1:99999' },
      'retry_join_wan: expected addresses such as 10.1.0.1 or 10.1.0.1:8300, not "10.1.0.1:99999"',
    ],
    [
      { 'primary-datacenter': 'DC1' },
      'primary_datacenter: expected lower-case letters, digits, - and _ (at most 64), and none of - and _ at an end, not "DC1"',
    ],
  ];
  for (const [flags, expected] of cases) t.equal(refusalOf({ flags }), expected);
});

t.test('settings: a cluster key that is none is refused, and not shown', async (t) => {
  const makeOne = 'make one with `conclave keygen` (or `openssl rand -base64 32`)';
  const start = 'cluster_key: expected 32 bytes in base64, and';
  t.equal(
    refusalOf({ flags: { 'cluster-key': 'open sesame' } }),
    `${start} it is no base64; ${makeOne}`,
  );
  const short = Buffer.alloc(16).toString('base64');
  t.equal(refusalOf({ flags: { 'cluster-key': short } }), `${start} it has 16; ${makeOne}`);
  const settings = readSettings({ ...nothing, flags: { 'cluster-key': KEY } });
  t.same(groupPlanOf(settings).clusterKey, Buffer.alloc(32, 7));
  t.equal(shownSettings(settings).cluster_key, '<hidden>');
});

t.test('settings: the first of several cluster keys is proved, the others are taken', async (t) => {
  const other = Buffer.alloc(32, 8).toString('base64');
  const settings = readSettings({ ...nothing, flags: { 'cluster-key': `${KEY}, ${other}` } });
  const { clusterKey, acceptedKeys } = groupPlanOf(settings);
  t.same(clusterKey, Buffer.alloc(32, 7));
  t.same(acceptedKeys, [Buffer.alloc(32, 8)]);
  t.match(refusalOf({ flags: { 'cluster-key': `${KEY},` } }), /and it has 0/);
  const four = [KEY, other, KEY, other].join();
  t.match(refusalOf({ flags: { 'cluster-key': four } }), /4 keys are named, and at most 3 may be/);
});

t.test(
  'settings: a member is told where it listens, where it is reached, whom to ask',
  async (t) => {
    const flags = {
      'bind-addr': '0.0.0.0',
      'advertise-addr': '10.0.0.1',
      'cluster-key': KEY,
      'bootstrap-expect': '3',
      'retry-join': '10.0.0.2,node-3:9300',
    };
    t.match(groupPlanOf(readSettings({ ...nothing, flags })), {
      listen: { host: '0.0.0.0', port: 8300 },
      advertise: { host: '10.0.0.1', port: 8300 },
      bootstrapExpect: 3,
      retryJoin: [
        { host: '10.0.0.2', port: 8300 },
        { host: 'node-3', port: 9300 },
      ],
      heartbeatMs: 100,
      electionMs: 1500,
      leaderWaitMs: 5000,
    });
    const slow = { 'raft-election-timeout': '4s', 'raft-heartbeat-interval': '500ms' };
    t.equal(groupPlanOf(readSettings({ ...nothing, flags: slow })).leaderWaitMs, 12_000);
    const alone = groupPlanOf(readSettings({ ...nothing, flags: { 'ports-cluster': '-1' } }));
    t.equal(alone.listen, undefined);
    t.equal(alone.advertise, undefined);
  },
);

t.test('settings: a management token that anybody finds is told of, and taken', async (t) => {
  for (const [secret, isGuessable] of [
    ['', false],
    ['root', true],
    ['0123456789abcde', true],
    ['0123456789abcdef', false],
  ] as const) {
    const settings = readSettings({
      ...nothing,
      flags: { 'acl-tokens-initial-management': secret },
    });
    t.equal(isManagementGuessable(settings), isGuessable, secret);
  }
});

t.test('settings: a secret is shown nowhere, not even when it is refused', async (t) => {
  const files = [{ path: 'f.json', value: { acl: { tokens: { initial_management: 123456 } } } }];
  t.notMatch(refusalOf({ files }), /123456/);
  const shown = shownSettings(
    readSettings({ ...nothing, flags: { 'acl-tokens-default': 'hush-hush' } }),
  );
  t.equal(shown['acl.tokens.default'], '<hidden>');
  t.equal(shown['acl.tokens.initial_management'], '');
  t.equal(shown.cluster_key, '', 'nobody takes a key that is not set for one that is');
  t.equal(shown['raft.election_timeout'], '1.5s', 'a duration is shown as it can be written');
  t.doesNotThrow(() => JSON.stringify(shown));
});

t.test('variables: those that are no settings are told by name, with what was meant', async (t) => {
  const nearestOf = (variable: string): string | undefined => {
    const [stray, ...more] = strayVariables({ [variable]: 'hunter2', PATH: '/bin' }, [
      'CONCLAVE_TOKEN',
    ]);
    t.equal(more.length, 0);
    t.equal(stray?.variable, variable);
    t.notMatch(JSON.stringify(stray), 'hunter2');
    return stray?.nearest;
  };
  const cases = [
    ['CONCLAVE_DATADIR', 'CONCLAVE_DATA_DIR'],
    ['CONCLAVE_CLUSTERKEY', 'CONCLAVE_CLUSTER_KEY'],
    ['CONCLAVE_LOGLEVEL', 'CONCLAVE_LOG_LEVEL'],
    ['conclave_log_level', 'CONCLAVE_LOG_LEVEL'],
    ['CONCLAVE_TLS_CERT', 'CONCLAVE_TLS_CERT_FILE'],
    ['CONCLAVE_HTTP_PORT', 'CONCLAVE_PORTS_HTTP'],
    ['CONCLAVE_INITIAL_MANAGEMENT', 'CONCLAVE_ACL_TOKENS_INITIAL_MANAGEMENT'],
    ['CONCLAVE_DEFAULT_POLICY', 'CONCLAVE_ACL_DEFAULT_POLICY'],
    ['CONCLAVE_SERVICE_HOST', undefined],
    ['CONCLAVE_PORT_8500_TCP_PROTO', undefined],
    ['CONCLAVE_', undefined],
    [`CONCLAVE_${'A'.repeat(100_000)}`, undefined],
  ] as const;
  for (const [variable, nearest] of cases)
    t.equal(nearestOf(variable), nearest, variable.slice(0, 40));
  t.same(strayVariables({ CONCLAVE_TOKEN: 'x', CONCLAVE_DATA_DIR: 'y' }, ['CONCLAVE_TOKEN']), []);
});

t.test('variables: those that commands read are known as such', async (t) => {
  const root = join(import.meta.dirname, '..', '..', '..', 'src', 'cli');
  const read = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => readFileSync(join(root, path), 'utf8').match(/CONCLAVE_[A-Z_]+/g) ?? []);
  t.same([...new Set(read)].sort(), [...COMMAND_VARIABLES]);
});

t.test(
  'settings: the help of `agent` says what each takes, and what it is otherwise',
  async (t) => {
    const options = agentCommand('0.0.0').options;
    const saidOf = (name: string): string =>
      options.find(({ long }) => long === `--${flagOf(name)}`)?.description ?? '';
    t.match(saidOf('bootstrap_expect'), ' (1 to 31; default: 1) [CONCLAVE_BOOTSTRAP_EXPECT]');
    t.match(saidOf('acl.default_policy'), ' (deny, allow; default: deny) [');
    t.match(saidOf('data_dir'), ' (default: ./data) [');
    t.notMatch(saidOf('retry_join'), '(default');
  },
);
