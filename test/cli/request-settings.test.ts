// What settings, common flags and the environment make of every request: token, namespace, address, certificates.

import t from 'tap';
import { certify, makeAuthority } from '../support/certificates.ts';
import { POLICY_ID, SECRET } from './fixtures.ts';
import { run } from './harness.ts';
import { FILES, policy, SERVER } from './whole-server.ts';

t.test('every request: carries the token and nothing of the other dialect', async (t) => {
  const { requests } = await run(['acl', 'policy', 'create', '-name', 'x', '-token', SECRET], {
    answers: SERVER,
  });
  t.same(requests[0]?.headers, {
    accept: 'application/json, application/problem+json',
    'content-type': 'application/json',
    'x-service-token': SECRET,
  });
});

const SOURCES: readonly (readonly [
  name: string,
  flags: readonly string[],
  environment: Readonly<Record<string, string>>,
  sent: string | undefined,
])[] = [
  [
    'a flag before all else',
    ['--token', 'from-flag', '--token-file', 'secret'],
    { CONCLAVE_TOKEN: 'from-env' },
    'from-flag',
  ],
  [
    'a file named by a flag before the environment',
    ['--token-file', 'secret'],
    { CONCLAVE_TOKEN: 'from-env' },
    SECRET,
  ],
  [
    'CONCLAVE_TOKEN before CONCLAVE_TOKEN_FILE',
    [],
    { CONCLAVE_TOKEN: 'from-env', CONCLAVE_TOKEN_FILE: 'secret' },
    'from-env',
  ],
  ['CONCLAVE_TOKEN_FILE', [], { CONCLAVE_TOKEN_FILE: 'secret' }, SECRET],
  ['a flag that names a file with @', ['--token', '@secret'], {}, SECRET],
  ['nothing', [], {}, undefined],
];

for (const [name, flags, environment, sent] of SOURCES) {
  t.test(`the token: comes from ${name}`, async (t) => {
    const { requests } = await run(['members', ...flags], {
      answers: SERVER,
      environment,
      files: FILES,
    });
    t.equal(requests[0]?.headers['x-service-token'], sent);
  });
}

t.test('--token-of: asks in the name of that token, not of the own one', async (t) => {
  const { requests } = await run(
    [
      'acl',
      'explain',
      '--resource',
      'acl',
      '--access',
      'read',
      '--token-of',
      '@secret',
      '--token',
      'mine-mine',
    ],
    { answers: SERVER, files: FILES },
  );
  t.same(
    requests.map(({ headers }) => headers['x-service-token']),
    [SECRET],
  );
});

t.test('common flags: reach the query of the request', async (t) => {
  const { asked } = await run(
    ['acl', 'policy', 'list', '-stale', '-ns', '*', '-datacenter=dc2', '-consistent=false'],
    { answers: SERVER },
  );
  t.same(asked, [`GET /v1/acl/policies?ns=*&dc=dc2&stale&limit=1000`]);
});

t.test('consistency: is not asked of a write', async (t) => {
  const { asked } = await run(['acl', 'policy', 'delete', POLICY_ID, '--stale'], {
    answers: SERVER,
  });
  t.same(asked, [`DELETE ${policy}`]);
});

t.test('CONCLAVE_NAMESPACE: is the namespace where endpoints have one', async (t) => {
  const environment = { CONCLAVE_NAMESPACE: 'team-a' };
  const list = await run(['acl', 'role', 'list'], { answers: SERVER, environment });
  const self = await run(['acl', 'token', 'read', '--self'], { answers: SERVER, environment });
  t.same(list.asked, [`GET /v1/acl/roles?ns=team-a&limit=1000`]);
  t.same(self.asked, ['GET /v1/acl/token/self']);
});

const AUTHORITY = makeAuthority('all');

const ADDRESSES: readonly (readonly [
  given: string,
  url: string,
  socketPath: string | undefined,
])[] = [
  ['10.0.0.1:9500', 'http://10.0.0.1:9500/v1/agent/members', undefined],
  ['https://acl.example/', 'https://acl.example/v1/agent/members', undefined],
  ['unix:///run/conclave.sock', 'http://localhost/v1/agent/members', '/run/conclave.sock'],
];

for (const [given, url, socketPath] of ADDRESSES) {
  t.test(`CONCLAVE_HTTP_ADDR=${given}: is where the request goes`, async (t) => {
    const { requests, transports } = await run(['members'], {
      answers: SERVER,
      environment: { CONCLAVE_HTTP_ADDR: given, CONCLAVE_CACERT: 'ca.pem' },
      files: { 'ca.pem': AUTHORITY.cert },
    });
    t.equal(requests[0]?.url, url);
    const tls = { ca: AUTHORITY.cert, cert: undefined, key: undefined };
    t.same(transports[0], { socketPath, tls });
  });
}

t.test('certificates: an own one is shown, and what cannot be read is named', async (t) => {
  const own = certify(AUTHORITY, 'own');
  const files = {
    'text.pem': 'no certificate',
    'c.pem': own.cert,
    'k.pem': own.key,
    'key.pem': certify(AUTHORITY, 'other').key,
    'cut.pem': AUTHORITY.cert + AUTHORITY.cert.slice(0, -100),
  };
  const shown = ['--client-cert', 'c.pem', '--client-key', 'k.pem'];
  const { transports } = await run(['members', ...shown], { answers: SERVER, files });
  t.same(transports[0]?.tls, { ca: undefined, ...own });
  for (const [given, says] of [
    [['--client-cert', 'c.pem'], '--client-cert and --client-key belong together'],
    [['--ca-file', 'none.pem'], '--ca-file: cannot read the file none.pem'],
    [
      ['--ca-file', 'text.pem'],
      '--ca-file (or CONCLAVE_CACERT): the file holds no certificate as PEM',
    ],
    [['--ca-file', 'key.pem'], 'the file holds no certificate as PEM'],
    [['--ca-file', 'cut.pem'], 'a certificate as PEM that cannot be read, number 2 of 2'],
    [['--client-cert', 'none.pem', '--client-key', 'k.pem'], '--client-cert: cannot read the file'],
    [
      ['--client-cert', 'k.pem', '--client-key', 'k.pem'],
      '--client-cert (or CONCLAVE_CLIENT_CERT): the file holds no certificate as PEM',
    ],
    [
      ['--client-cert', 'c.pem', '--client-key', 'key.pem'],
      '--client-key (or CONCLAVE_CLIENT_KEY): the file does not hold the key of --client-cert',
    ],
    [['--client-cert', 'c.pem', '--client-key', 'text.pem'], 'does not hold the key of'],
  ] as const) {
    const { status, err } = await run(['members', ...given], { answers: SERVER, files });
    t.match(err, says);
    t.equal(status, 2);
  }
});
