// What commands say of what they did, where they leave secrets, and what becomes of readers that leave.

import { chmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { ARCHIVE_TYPE } from '../../../src/api/bodies/schema.ts';
import { readTextFile, writeSecretFile } from '../../../src/platform-node/disk/files.ts';
import {
  LOGIN_EXPLANATION,
  POLICY_ID,
  ROLE_ID,
  RULE_ID,
  SECRET,
  TOKEN,
  TOKEN_ID,
} from '../fixtures.ts';
import { problem, run } from '../harness.ts';

t.test('standard input: what is empty there is no text, and no secret', async (t) => {
  for (const line of [
    'acl policy create --name p --rules -',
    'acl token read --self --token-file -',
  ]) {
    const { status, err, asked } = await run(line.split(' '), { standardInput: '' });
    t.match(err, /: standard input is empty, or another option has read it already/);
    t.equal(status, 2);
    t.same(asked, []);
  }
});

t.test('standard input: where it cannot be read the flag is named', async (t) => {
  const { status, err } = await run(['acl', 'policy', 'create', '--name', 'p', '--rules', '-'], {
    standardInput: new Error('EISDIR: illegal operation on a directory, read'),
  });
  t.equal(status, 2);
  t.match(err, 'Error: --rules: cannot read standard input: EISDIR: illegal operation');
});

t.test('rules: those of a blank file, or of blank input, blank no policy', async (t) => {
  for (const rules of ['@blank', '-']) {
    const { status, err, asked } = await run(
      ['acl', 'policy', 'update', POLICY_ID, '--rules', rules],
      { files: { blank: '\n' }, standardInput: ' \n' },
    );
    t.match(err, /--rules is empty/);
    t.same([status, asked], [2, []]);
  }
});

t.test('login: writes the secret into the sink file and nowhere else', async (t) => {
  for (const format of ['table', 'json']) {
    const { out, err, secretFiles, status } = await run(
      `login --method ci --bearer-token-file jwt --token-sink-file sink --format ${format}`.split(
        ' ',
      ),
      { answers: { 'POST /v1/acl/login': { value: TOKEN } }, files: { jwt: 'a.b.c\n' } },
    );
    t.same([status, secretFiles], [0, { sink: SECRET }]);
    t.match(out, TOKEN_ID);
    t.notMatch(out + err, SECRET);
  }
});

t.test('login: a dry run shows each step, and fails where the login would', async (t) => {
  const line = 'login --method ci --bearer-token-file jwt --dry-run'.split(' ');
  const files = { jwt: 'a.b.c\n' };
  const answering = (value: object) => ({ 'POST /v1/acl/login/explain': { value } });
  const granted = await run(line, { answers: answering(LOGIN_EXPLANATION), files });
  t.same([granted.status, granted.err, granted.secretFiles], [0, '', {}]);
  t.equal(
    granted.out,
    [
      'Login:           GRANTED  no token was made',
      'Because:         Granted: 1 of 2 binding rules bind something.',
      'Namespace:       team-a',
      'Namespace rule:  value.team == eng',
      'Local:           true',
      'Expires after:   5m0s',
      'Identity:',
      '   value.team = "eng"',
      '   list.groups = ["a","b"]',
      'Binding rules:',
      `   bound  ${RULE_ID}  service "eng-api": its selector matches`,
      `   not-selected  ${ROLE_ID}  role "ops": its selector does not match  [ops in list.groups]`,
      'Service Identities:',
      '   eng-api (Datacenters: all)',
      '',
    ].join('\n'),
  );
  const refusal = { Granted: false, Summary: 'Refused: why.', BindingRules: [] };
  const refused = await run(line, { answers: answering(refusal), files });
  t.match(refused.out, /REFUSED[\s\S]*Refused: why\./);
  t.same([refused.status, refused.err], [1, 'Error: the login would be refused\n']);
});

t.test('login: one that is refused says how to find out why', async (t) => {
  const why = problem(403, 'permission-denied', 'Permission denied');
  for (const [line, hint] of [
    ['login --method ci --bearer-token-file jwt --token-sink-file sink', true],
    ['login --method ci --bearer-token-file jwt --dry-run', false],
    ['logout', false],
  ] as const) {
    const path = line.endsWith('run') ? '/login/explain' : line === 'logout' ? '/logout' : '/login';
    const answers = { [`POST /v1/acl${path}`]: why };
    const { err } = await run(line.split(' '), { answers, files: { jwt: 'a.b.c\n' } });
    t.equal(err.includes('Next: the same with --dry-run'), hint, line);
  }
});

t.test('login: a token whose secret cannot be written is given back', async (t) => {
  const line = 'login --method ci --bearer-token-file jwt --token-sink-file sink'.split(' ');
  const login = { 'POST /v1/acl/login': { value: TOKEN } };
  const script = { files: { jwt: 'a.b.c\n' }, isDiskFull: true };
  const answers = { ...login, 'POST /v1/acl/logout': { value: true } };
  const given = await run(line, { ...script, answers });
  t.equal(given.status, 1);
  t.match(given.err, /could not be written to sink: ENOSPC.*; the token is destroyed again/);
  t.same(
    given.requests.map(({ url, headers }) => [new URL(url).pathname, headers['x-service-token']]),
    [
      ['/v1/acl/login', undefined],
      ['/v1/acl/logout', SECRET],
    ],
  );
  const kept = await run(line, { ...script, answers: login });
  t.match(kept.err, /could not be destroyed: it lives until/);
  t.notMatch(given.err + kept.err + given.out + kept.out, SECRET);
});

t.test('a sink file: is for its owner alone, also when it was there before', async (t) => {
  const path = join(t.testdir({ sink: 'old' }), 'sink');
  chmodSync(path, 0o644);
  writeSecretFile(path, SECRET);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(readTextFile(path), SECRET);
});

/** What takes rights away, and what the server is asked for it. */
const DELETIONS: readonly (readonly [words: string, path: string])[] = [
  [`acl token delete ${TOKEN_ID}`, `/v1/acl/token/${TOKEN_ID}`],
  [`acl policy delete ${POLICY_ID}`, `/v1/acl/policy/${POLICY_ID}`],
  [`acl role delete ${TOKEN_ID}`, `/v1/acl/role/${TOKEN_ID}`],
  [`acl binding-rule delete ${TOKEN_ID}`, `/v1/acl/binding-rule/${TOKEN_ID}`],
  ['acl auth-method delete m', '/v1/acl/auth-method/m'],
  ['namespace delete team', '/v1/namespace/team'],
];

t.test('a delete: says whether all datacenters are known to have it', async (t) => {
  let value = ['dc1', 'dc2'];
  const ask = (words: string, path: string, level: string | undefined) => {
    const headers = level === undefined ? {} : { 'x-service-ack': level };
    const deletion = { [`DELETE ${path}`]: { value: true, headers } };
    return run(words.split(' '), {
      answers: { ...deletion, 'GET /v1/catalog/datacenters': { value } },
    });
  };
  for (const [words, path] of DELETIONS) {
    for (const [level, said] of [
      ['primary', /^Known to have it so far: the primary\. .*operator datacenters/],
      ['majority', /^Known to have it so far: a majority of the datacenters\. /],
      ['all', /^$/],
      [undefined, /^$/],
    ] as const) {
      const { status, out, err } = await ask(words, path, level);
      t.equal(status, 0, words);
      t.match(out, /^Deleted /);
      t.match(err, said, `${words}: ${level}`);
    }
    const all = await ask(`${words} --ack all --cas 7`, path, 'all');
    t.same(all.asked, [`DELETE ${path}?cas=7&ack=all`], words);
    t.equal((await ask(`${words} --ack some`, path, 'all')).status, 2, words);
  }
  const [words, path] = DELETIONS[0]!;
  value = ['dc1'];
  t.equal((await ask(words, path, 'primary')).err, '', 'nobody else is to hear of it');
  const late = problem(
    504,
    'wait-timeout',
    'The write stands at position 1.7, but in time it was acknowledged by the primary only and not by all datacenters',
  );
  const { status, err } = await run([...words.split(' '), '--ack', 'all'], {
    answers: { [`DELETE ${path}`]: late },
  });
  t.equal(status, 1);
  t.match(err, 'Next: nothing is to be repeated');
});

t.test('a logout: says so, too, and waits for whom it is told to', async (t) => {
  const ask = (words: string, level: string) =>
    run(words.split(' '), {
      answers: {
        'POST /v1/acl/logout': { value: true, headers: { 'x-service-ack': level } },
        'GET /v1/catalog/datacenters': { value: ['dc1', 'dc2'] },
      },
    });
  const { status, out, err } = await ask('logout', 'primary');
  t.equal(status, 0);
  t.match(out, /^Logged out: /);
  t.match(err, /^Known to have it so far: the primary\. /);
  const all = await ask('logout --ack all', 'all');
  t.same([all.err, all.asked], ['', ['POST /v1/acl/logout?ack=all']]);
});

t.test('a reader that leaves early: is no error', async (t) => {
  const { status, err } = await run(['members'], {
    send: () => Promise.reject(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
  });
  t.same([status, err], [0, '']);
});

t.test('a full disk behind the output: says that the command is done', async (t) => {
  const failing = (code: string) => () =>
    Promise.reject(Object.assign(new Error(`write ${code}`), { code }));
  const answers = { 'PUT /v1/acl/bootstrap': { value: { ID: TOKEN.SecretID, ...TOKEN } } };
  const full = await run(['acl', 'bootstrap'], { answers, writeOut: failing('ENOSPC') });
  t.equal(full.status, 1);
  t.match(full.err, /^Error: the output could not be written: write ENOSPC\nNext: .* is done: /);
  const left = await run(['acl', 'bootstrap'], { answers, writeOut: failing('EPIPE') });
  t.same([left.status, left.err], [0, '']);
});

t.test('help: a reader that leaves early is no error, and a full disk is one', async (t) => {
  for (const [code, expected] of [
    ['EPIPE', 0],
    ['ENOSPC', 1],
  ] as const) {
    const failing = () => Promise.reject(Object.assign(new Error(`write ${code}`), { code }));
    const { status, err } = await run(['acl', 'token', '--help'], { writeOut: failing });
    t.same([status, err], [expected, expected === 0 ? '' : `Error: write ${code}\n`]);
  }
});

t.test(
  'an archive: is cut off where its reader leaves early, and that is no success',
  async (t) => {
    const failing = () =>
      Promise.reject(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    const { status, err } = await run(['snapshot', 'save', '-'], {
      stream: async () => ({
        status: 200,
        headers: { 'content-type': ARCHIVE_TYPE },
        body: Readable.from([Buffer.from('archive')]),
      }),
      writeOut: failing,
    });
    t.equal(status, 1);
    t.match(err, /^Error: the archive is cut off: .*write EPIPE/);
  },
);
