// What commands print, what they end with, and what they never print.

import { chmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { Readable } from 'node:stream';
import t from 'tap';
import { TransportError } from '../../src/client/transport.ts';
import { readTextFile, writeSecretFile } from '../../src/platform-node/files.ts';
import {
  AUTHORIZATION,
  MEMBER,
  OTHER_POLICY_ID,
  PLAIN_TOKEN,
  POLICIES,
  POLICY,
  POLICY_ID,
  ROLE,
  SECRET,
  TOKEN,
  TOKEN_ID,
} from './fixtures.ts';
import { run } from './harness.ts';

const problem = (status: number, code: string, detail: string) => ({
  status,
  headers: { 'content-type': 'application/problem+json; charset=utf-8' },
  text: JSON.stringify({ status, code, detail, title: 'x', type: 'about:blank' }),
});

t.test('one object: is a block of names and values, aligned', async (t) => {
  const { out } = await run(['acl', 'token', 'read', '--self'], {
    answers: { 'GET /v1/acl/token/self': { value: TOKEN } },
  });
  t.equal(
    out,
    `AccessorID:       ${TOKEN_ID}
SecretID:         ${SECRET}
Namespace:        default
Description:      deploys of the web team
Local:            true
Create Time:      2026-11-21 07:00:00 UTC
Expiration Time:  2026-11-21 15:00:00 UTC
Hash:             aGFzaA==
Create Index:     10
Modify Index:     12
Policies:
   ${POLICY_ID} - ops
Roles:
   ${ROLE.ID} - deployers
Service Identities:
   web (Datacenters: dc1)
Node Identities:
   n1 (Datacenter: dc1)
Templated Policies:
   builtin/service name=api (Datacenters: all)
`,
  );
});

t.test('a policy: ends with its rules as they were written', async (t) => {
  const { out } = await run(['acl', 'policy', 'read', '--name', 'ops'], {
    answers: { 'GET /v1/acl/policy/name/ops': { value: POLICY } },
  });
  t.match(out, /\nDatacenters: {3}all\n/);
  t.ok(out.endsWith(`\nRules:\n${POLICY.Rules}`));
});

t.test('a policy: what of its rules says nothing is told once they are written', async (t) => {
  const rules =
    'acl = "read"\nservce "web" { policy = "deny" }\nkey "k" { policy = "read" plicy = "" }';
  const answers = {
    'PUT /v1/acl/policy': { value: POLICY },
    'GET /v1/acl/policy/name/ops': { value: POLICY },
    [`PUT /v1/acl/policy/${POLICY.ID}`]: { value: POLICY },
  };
  for (const line of [
    'create --name ops',
    'update --name ops',
    'create --format json --name ops',
  ]) {
    const given = ['acl', 'policy', ...line.split(' '), '--rules', rules];
    const { status, out, err } = await run(given, { answers });
    t.equal(status, 0, line);
    t.ok(out.includes(POLICY.ID), line);
    t.equal(
      err,
      `Warning: line 2, column 1 of the rules: "servce" is not a known keyword and ignored
Warning: line 3, column 27 of the rules: "plicy" is not an attribute of key and ignored
`,
      line,
    );
  }
  const refused = { 'PUT /v1/acl/policy': { status: 403, text: 'Permission denied' } };
  const { err } = await run(['acl', 'policy', 'create', '--name', 'ops', '--rules', rules], {
    answers: refused,
  });
  t.notMatch(err, 'Warning');
  const known = await run(['acl', 'policy', 'update', '--name', 'ops', '--rules', 'acl = "read"'], {
    answers,
  });
  t.equal(known.err, '');
});

t.test('an expanded token: shows every policy behind it', async (t) => {
  const expanded = {
    ...PLAIN_TOKEN,
    ExpandedPolicies: [POLICY, { ...POLICY, Name: 'second', Description: '' }],
    ExpandedRoles: [ROLE],
    AgentACLDefaultPolicy: 'deny',
    ResolvedByAgent: 'n1',
  };
  const { out } = await run(['acl', 'token', 'read', 'anonymous', '--expanded'], {
    answers: { [`GET /v1/acl/token/${PLAIN_TOKEN.AccessorID}`]: { value: expanded } },
  });
  t.ok(
    out.endsWith(`Roles in effect:
   ${ROLE.ID} - deployers
Policy in effect, ops:
# for people on duty
${POLICY.Rules}
Policy in effect, second:
${POLICY.Rules}Where no rule speaks:
   deny (default policy of n1)
`),
    out,
  );
});

t.test('a list: is columns, with a hyphen where there is nothing', async (t) => {
  const { out } = await run(['acl', 'policy', 'list'], {
    answers: { 'GET /v1/acl/policies': { value: POLICIES } },
  });
  t.equal(
    out,
    `ID                                    Name      Datacenters  Description
${POLICY_ID}  ops       all          for people on duty
${OTHER_POLICY_ID}  web-read  dc1, dc2     -
`,
  );
});

t.test('a list over all namespaces: says which one each object is in', async (t) => {
  const answers = { 'GET /v1/acl/tokens': { value: [PLAIN_TOKEN] } };
  const one = await run(['acl', 'token', 'list'], { answers });
  const all = await run(['acl', 'token', 'list', '--ns', '*'], { answers });
  t.notMatch(one.out, 'Namespace');
  t.match(all.out, /^Namespace {2}AccessorID/);
});

t.test('an empty list: leaves standard output empty and says so beside it', async (t) => {
  const answers = { 'GET /v1/acl/roles': { value: [] } };
  const table = await run(['acl', 'role', 'list'], { answers });
  t.same([table.status, table.out], [0, '']);
  t.match(table.err, 'There are no roles');
  const json = await run(['acl', 'role', 'list', '--format', 'json'], { answers });
  t.same([json.out, json.err], ['[]\n', '']);
});

t.test('a secret: is in no list', async (t) => {
  const { out } = await run(['acl', 'token', 'list'], {
    answers: { 'GET /v1/acl/tokens': { value: [TOKEN] } },
  });
  t.match(out, TOKEN_ID);
  t.notMatch(out, SECRET);
});

t.test('control characters of a description: cannot reach the terminal', async (t) => {
  const evil = { ...PLAIN_TOKEN, Description: '\u001b[2Jgone\nAccessorID: forged\u202e' };
  const answers = {
    'GET /v1/acl/tokens': { value: [evil] },
    'GET /v1/acl/token/self': { value: evil },
  };
  for (const line of ['acl token list', 'acl token read --self']) {
    const { out } = await run(line.split(' '), { answers });
    t.match(out, '\\x1b[2Jgone\\nAccessorID: forged\\u202e');
    t.notMatch(out, /[\u001b\u202e]/);
  }
});

t.test('JSON: is what the service said, and nothing that a terminal obeys', async (t) => {
  const evil = {
    ...PLAIN_TOKEN,
    Description: 'one\u2028two\u2029\u009b2Jgone\u0085\u202eend\nlast',
  };
  const answers = {
    'GET /v1/acl/tokens': { value: [evil] },
    'GET /v1/acl/token/self': { value: evil },
  };
  for (const line of ['acl token list --format json', 'acl token read --self --format json']) {
    const { out } = await run(line.split(' '), { answers });
    const [shown] = [JSON.parse(out) as typeof evil | readonly (typeof evil)[]].flat();
    t.equal(shown?.Description, evil.Description, line);
    t.notMatch(out, /[\u007f-\u009f\u2028-\u202e]/, line);
  }
});

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

const PAGES = [
  { value: [POLICIES[0]], headers: { 'x-service-next': 'k/1' } },
  { value: [{ ...POLICIES[1], Name: 'a-name-wider-than-its-column' }] },
];

t.test('a list of several pages: asks for each with the word of the one before', async (t) => {
  const { asked, out } = await run(['acl', 'policy', 'list'], {
    answers: { 'GET /v1/acl/policies': PAGES },
  });
  t.same(asked, ['GET /v1/acl/policies?limit=1000', 'GET /v1/acl/policies?limit=1000&next=k%2F1']);
  t.match(out, `${OTHER_POLICY_ID}  a-name-wider-than-its-column  dc1, dc2  `);
});

for (const format of ['table', 'json']) {
  t.test(`a list as ${format}: prints a page before it asks for the next`, async (t) => {
    let pagesSent = 0;
    const outcome = await run(['acl', 'policy', 'list', '--format', format], {
      send: async () => {
        pagesSent += 1;
        if (pagesSent === 3) throw new TransportError('timeout', 'no answer within 60 seconds');
        const next = { 'x-service-next': String(pagesSent) };
        return { status: 200, headers: next, text: JSON.stringify(POLICIES) };
      },
    });
    t.equal(outcome.status, 1);
    t.equal(outcome.out.split(POLICY_ID).length - 1, 2, 'both pages that came are printed');
    t.match(outcome.err, 'no answer within 60 seconds');
    t.notMatch(outcome.out, /\]\n$/, 'an array that was cut off is not closed');
  });
}

t.test('--format json: is what the server said, as one array over all pages', async (t) => {
  const { out, outWrites } = await run(['acl', 'policy', 'list', '-format=json'], {
    answers: { 'GET /v1/acl/policies': PAGES },
  });
  t.same(JSON.parse(out), [...PAGES.flatMap(({ value }) => JSON.parse(JSON.stringify(value)))]);
  t.equal(outWrites.length, 3);
});

t.test('--format json: is one object for one object, and true for a delete', async (t) => {
  const read = await run(['acl', 'policy', 'read', '--name', 'ops', '--format', 'json'], {
    answers: { 'GET /v1/acl/policy/name/ops': { value: POLICY } },
  });
  t.equal(read.out, `${JSON.stringify(POLICY, undefined, 2)}\n`);
  const deleted = await run(['acl', 'policy', 'delete', POLICY_ID, '--format', 'json'], {
    answers: { [`DELETE /v1/acl/policy/${POLICY_ID}`]: { value: true } },
  });
  t.equal(deleted.out, 'true\n');
});

t.test('explain: tells the decision and the way to it', async (t) => {
  const { out } = await run(
    ['acl', 'explain', '--resource', 'service', '--segment', 'web', '--access', 'write'],
    { answers: { 'POST /v1/internal/acl/authorize': { value: [AUTHORIZATION] } } },
  );
  t.equal(
    out,
    `Decision:  DENIED  write on service "web"
Because:   the policy web-read denies it
Token:     ${TOKEN_ID}  deploys of the web team
Role:      ${ROLE.ID}  deployers
Policy:    ${OTHER_POLICY_ID}  web-read
Rule:      service "web" { policy = "read" }  (line 3, column 1 of the rules)
Also matched, without effect:
   ops: service_prefix "" { policy = "write" }  (a longer name goes first)
`,
  );
});

t.test('explain: shortens the hashes that policies of identities are named by', async (t) => {
  const name = `synthetic-policy-${'ab'.repeat(80)}`;
  const { Explanation } = AUTHORIZATION;
  const overruled = { Policy: name, Rule: 'service "x" {}', Why: 'weaker' };
  const value = {
    ...AUTHORIZATION,
    Explanation: {
      ...Explanation,
      Summary: `Allowed by policy "${name}".`,
      Identity: 'service web',
      Policy: { ID: 'ab'.repeat(80), Name: name },
      Overruled: [overruled, overruled],
    },
  };
  const { out } = await run(['acl', 'explain', '--resource', 'service', '--access', 'read'], {
    answers: { 'POST /v1/internal/acl/authorize': { value: [value] } },
  });
  t.match(out, 'Because:   Allowed by policy "synthetic-policy-abababab…".\n');
  t.match(out, 'Policy:    synthetic-policy-abababab…\n');
  t.ok(
    out.endsWith('without effect:\n   synthetic-policy-abababab…: service "x" {}  (weaker)\n'),
    'one line for what is listed twice',
  );
});

t.test('colours: only on a terminal, and not where NO_COLOR is set', async (t) => {
  const answers = { 'GET /v1/agent/members': { value: [MEMBER] } };
  const piped = await run(['members'], { answers });
  const shown = await run(['members'], { answers, isTerminal: true });
  const plain = await run(['members'], {
    answers,
    isTerminal: true,
    environment: { NO_COLOR: '1' },
  });
  t.match(shown.out, '\u001b[1m');
  t.notMatch(piped.out, '\u001b');
  t.equal(plain.out, piped.out);
});

t.test('operator datacenters: what stands still is red, and what differed', async (t) => {
  const shown = (Name: string, State: string, more: object = {}) => ({
    ...{ Name, State, Position: '1.9', LagEntries: 0, LagBytes: 0, LagSeconds: 0 },
    ...{ LastContactSeconds: 0.5, LastSuccess: '', LastError: '', LastErrorMessage: '' },
    ...{ Differences: 0, ...more },
  });
  const error = { LastError: '2026-11-22T10:00:00Z', LastErrorMessage: 'the line is cut' };
  const value = {
    ...{ Enabled: false, PrimaryDatacenter: 'dc1', Epoch: 1, Position: '1.9' },
    ...{ HeadPosition: '1.9', MajorityPosition: '1.8' },
    Datacenters: [
      shown('dc1', 'primary'),
      shown('dc2', 'away', { LagEntries: 1, LagBytes: 70, LagSeconds: 90, ...error }),
      shown('dc3', 'stopped', { Position: null, LagEntries: null, LagSeconds: null }),
      shown('dc4', 'differs', { Differences: 2 }),
      shown('dc5', 'removed', { Position: null }),
    ],
  };
  const answers = { 'GET /v1/acl/replication': { value } };
  const plain = await run(['operator', 'datacenters'], { answers });
  t.equal(
    plain.out,
    `Datacenter  State    Position  Behind     Bytes  Lag    Differences  Last Contact  Last Error
dc1         primary  1.9       0 entries  0      0.0s   0            0.5s          -
dc2         away     1.9       1 entry    70     90.0s  0            0.5s          2026-11-22 10:00:00 UTC the line is cut
dc3         stopped  -         -          0      -      0            0.5s          -
dc4         differs  1.9       0 entries  0      0.0s   2            0.5s          -
dc5         removed  -         0 entries  0      0.0s   0            0.5s          -
`,
  );
  t.match(plain.err, /^The primary is dc1, epoch 1; the log ends at 1.9, a majority has 1.8.\n/);
  const primary = (Closed: string) => ({
    ...answers,
    'GET /v1/operator/primary': { value: { Datacenter: 'dc1', Closed } },
  });
  const closed = await run(['operator', 'datacenters'], {
    answers: primary('no majority is heard'),
  });
  t.same(
    [closed.status, closed.out, closed.err.split('\n')[1]],
    [0, plain.out, 'Closed: no majority is heard'],
  );
  const open = await run(['operator', 'datacenters'], { answers: primary('') });
  t.same(
    [open.out, open.err],
    [plain.out, plain.err],
    'nothing is said of what is as it should be',
  );
  const coloured = await run(['operator', 'datacenters'], { answers, isTerminal: true });
  const red = [...coloured.out.matchAll(/\u001b\[31m(.*?)\u001b\[39m/g)].map(([, cell]) => cell);
  t.same(red, ['away', '90.0s', 'stopped', 'differs', '2']);
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

const REFUSALS: readonly (readonly [name: string, answer: object, ...said: string[]])[] = [
  [
    'no token',
    problem(
      403,
      'permission-denied',
      "Permission denied: anonymous token lacks permission 'acl:read'.",
    ),
    'http://127.0.0.1:8500 refused GET /v1/acl/tokens (403 permission-denied)',
    "Permission denied: anonymous token lacks permission 'acl:read'.",
    'CONCLAVE_TOKEN',
  ],
  [
    'no token to log out',
    problem(401, 'unauthenticated', 'Supplied token does not exist'),
    'no token was sent',
  ],
  [
    'a datacenter of an older release',
    problem(503, 'unavailable', 'the other datacenter runs a release without this operation'),
    'Next: upgrade the servers that run the older release',
  ],
  [
    'a token without the right',
    problem(
      403,
      'permission-denied',
      "Permission denied: token with AccessorID 'x' lacks permission 'acl:read'",
    ),
    'conclave acl explain',
  ],
  [
    'an unknown token',
    problem(403, 'token-unknown', 'ACL not found'),
    'ACL not found',
    'has expired',
  ],
  [
    'before the bootstrap',
    problem(403, 'token-unknown', 'ACL system must be bootstrapped before making any requests'),
    'conclave acl bootstrap',
  ],
  ['a bare text', { status: 500, text: 'No cluster leader' }, '(500)', 'No cluster leader'],
  [
    'a server without leader',
    {
      ...problem(503, 'unavailable', 'No cluster leader'),
      headers: { 'retry-after': '2', 'content-type': 'application/problem+json' },
    },
    'try again in 2 s',
  ],
  [
    'the primary does not answer',
    problem(503, 'unavailable', 'Remote DC has no server currently reachable: dc1: refused'),
    'If it lasts: `conclave operator datacenters` says why',
  ],
  [
    'a primary that hears no majority',
    problem(
      503,
      'unavailable',
      'Nothing was written: datacenter dc1 is the primary, but has not heard a majority of the 3 datacenters for 31s',
    ),
    'lost for good that no majority is left: `conclave operator datacenter remove',
  ],
  [
    'an unknown outcome',
    problem(504, 'outcome-unknown', 'the leader was lost'),
    'may have taken effect',
  ],
  ['an answer that is no JSON', { status: 200, text: '<html>' }, 'is this a Conclave server?'],
];

for (const [name, answer, ...said] of REFUSALS) {
  t.test(
    `a refusal (${name}): exit status 1, the server's text, and what to do next`,
    async (t) => {
      const outcome = await run(['acl', 'token', 'list'], {
        answers: { 'GET /v1/acl/tokens': answer },
      });
      t.same([outcome.status, outcome.out], [1, '']);
      t.match(outcome.err, /^Error: /);
      t.match(outcome.err, /\nNext: .*\n$|\nNo cluster leader\n$/);
      for (const words of said) t.match(outcome.err, words);
    },
  );
}

t.test('a refusal about the own token: speaks of the secret, not of an accessor id', async (t) => {
  const gone = problem(403, 'token-unknown', 'token does not exist: ACL not found');
  const { err } = await run(['acl', 'token', 'read', '--self'], {
    answers: { 'GET /v1/acl/token/self': gone },
  });
  t.match(err, 'Next: the token is unknown to the server or has expired');
});

t.test(
  'a server that is not there: exit status 1, the address, and how to start one',
  async (t) => {
    const { status, err } = await run(['members', '--http-addr', 'localhost:1'], {
      send: () => Promise.reject(new TransportError('refused', 'connect ECONNREFUSED')),
    });
    t.equal(status, 1);
    t.match(err, 'no answer from localhost:1: connect ECONNREFUSED');
    t.match(err, 'npm start');
  },
);

t.test('a delete of something that is not there: says so with exit status 1', async (t) => {
  const { status, out, err } = await run(['acl', 'token', 'delete', TOKEN_ID], {
    answers: { [`DELETE /v1/acl/token/${TOKEN_ID}`]: { value: false } },
  });
  t.same([status, out], [1, '']);
  t.match(err, `there is no token ${TOKEN_ID}: nothing was deleted`);
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

t.test('the beginning of an id: several that fit are shown, none is chosen', async (t) => {
  const answers = { 'GET /v1/acl/policies': { value: POLICIES } };
  const several = await run(['acl', 'policy', 'delete', 'aaaa'], { answers });
  t.equal(several.status, 1);
  t.same(several.asked, ['GET /v1/acl/policies?limit=1000']);
  t.match(several.err, `${POLICY_ID}  ops`);
  t.match(several.err, `${OTHER_POLICY_ID}  web-read`);
  const none = await run(['acl', 'policy', 'delete', 'ffff'], { answers });
  t.equal(none.status, 1);
  t.match(none.err, 'conclave acl policy list');
});

t.test('a name: goes before an id that begins with the same letters', async (t) => {
  const policies = [POLICIES[0], { ...POLICIES[1], Name: 'AAAA1' }];
  const { asked } = await run(['acl', 'policy', 'delete', 'aaaa1'], {
    answers: { 'GET /v1/acl/policies': { value: policies } },
  });
  t.equal(asked[1], `DELETE /v1/acl/policy/${OTHER_POLICY_ID}`);
});

t.test('a token: is found by no description', async (t) => {
  const { asked, status } = await run(['acl', 'token', 'delete', 'Anonymous Token'], {
    answers: { 'GET /v1/acl/tokens': { value: [PLAIN_TOKEN] } },
  });
  t.same([status, asked.length], [1, 1]);
});

const USAGE: readonly (readonly [line: string, said: string])[] = [
  ['acl token create --no-such-flag x', '--no-such-flag'],
  ['acl token create -no-such-flag', '-no-such-flag'],
  ['acl token create extra', 'too many arguments'],
  ['acl tokens', "unknown command 'tokens'"],
  ['acl token read', 'a token id or --accessor-id'],
  [`acl token read ${TOKEN_ID} --accessor-id ${TOKEN_ID}`, 'give only one of'],
  [`acl token read --self ${TOKEN_ID}`, '--self'],
  ['acl token create --node-identity n1', '--node-identity'],
  ['acl token create --var name:x', '--var'],
  ['acl token create --templated-policy builtin/service --var other:x', '--var'],
  ['acl token create --description', '--description'],
  ['acl policy create --rules acl', '--name'],
  ['acl policy create --name x --rules @missing', '--rules: cannot read the file missing'],
  ['acl policy update x --cas soon', '--cas'],
  ['acl auth-method create --name x', '--type'],
  ['acl auth-method create --name x --type jwt --config [1]', '--config'],
  [
    'acl auth-method create --name x --type jwt --namespace-rule-selector a',
    '--namespace-rule-bind-namespace',
  ],
  ['acl binding-rule create --method ci', '--bind-type'],
  ['acl explain --access read', '--resource'],
  [
    `acl explain --resource acl --access read --accessor-id ${TOKEN_ID} --token-of @secret`,
    'give only one of --token-of and --accessor-id',
  ],
  ['login --method ci', '--bearer-token-file'],
  ['members --format xml', '--format'],
  ['members --stale --consistent', '--stale'],
  ['members --http-addr http://a/b', '--http-addr'],
  ['members --token-file missing', '--token-file'],
  ['operator promote --election --token x ', 'the name of the datacenter is empty'],
  ['acl token create --service-identity web:', '"web:"'],
  ['acl token create --service-identity web:dc1:dc2', '"web:dc1:dc2"'],
  ['acl', 'Usage: conclave acl'],
];

for (const [line, said] of USAGE) {
  t.test(`conclave ${line}: exit status 2, names the flag, asks nothing`, async (t) => {
    const { status, out, err, asked } = await run(line.split(' '));
    t.same([status, out, asked], [2, '', []]);
    t.ok(err.includes(said), err);
    t.match(err, /Usage: conclave /);
  });
}

t.test('--help and --version: go to standard output with exit status 0', async (t) => {
  const help = await run(['acl', 'token', 'update', '-help']);
  t.same([help.status, help.err], [0, '']);
  t.match(help.out, /Usage: conclave acl token update .*--append-policy-id.*Connection:/s);
  const version = await run(['--version']);
  t.same([version.status, version.out], [0, 'conclave 1.2.3\n']);
});

const LEAKS: readonly (readonly string[])[] = [
  ['members', `--tokn=${SECRET}`],
  ['members', '--token', SECRET],
  ['acl', 'bootstrap', SECRET],
  ['acl', 'token', 'create', '--secret', SECRET],
  ['acl', 'explain', '--resource', 'acl', '--access', 'read', '--token-of', SECRET],
  [
    'acl',
    'auth-method',
    'create',
    '--name',
    'x',
    '--type',
    'jwt',
    '--config',
    `{"Key": x${SECRET}}`,
  ],
];

for (const given of LEAKS) {
  t.test(`${given.slice(0, -1).join(' ')}: no error repeats the secret`, async (t) => {
    const { status, err } = await run(given, {
      answers: {},
      send: async () => ({ status: 400, headers: {}, text: `who is ${SECRET}?` }),
    });
    t.not(status, 0);
    t.notMatch(err, SECRET.slice(0, 8));
  });
}

t.test('the value of a flag: is passed on although it looks like a flag', async (t) => {
  const { asked } = await run(
    ['acl', 'token', 'create', '-description', '-local', '-secret', '-'],
    { answers: { 'PUT /v1/acl/token': { value: TOKEN } }, standardInput: `${SECRET}\n` },
  );
  t.same(asked, [`PUT /v1/acl/token {"SecretID":"${SECRET}","Description":"-local"}`]);
});

t.test('an error that nobody foresaw: one line, and the stack only when asked for', async (t) => {
  const agent = () =>
    new Command('agent').action(() => {
      throw new Error('the disk\nis gone');
    });
  const plain = await run(['agent'], { agent: agent() });
  t.same([plain.status, plain.err], [1, 'Error: the disk\\nis gone\n']);
  const debug = await run(['agent'], { agent: agent(), environment: { CONCLAVE_DEBUG: '1' } });
  t.match(debug.err, /^Error: the disk.*\n {4}at /s);
});

t.test('a reader that leaves early: is no error', async (t) => {
  const { status, err } = await run(['members'], {
    send: () => Promise.reject(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
  });
  t.same([status, err], [0, '']);
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
        headers: {},
        body: Readable.from([Buffer.from('archive')]),
      }),
      writeOut: failing,
    });
    t.equal(status, 1);
    t.match(err, /^Error: the archive is cut off: .*write EPIPE/);
  },
);

t.test('a switch: may say what deployed scripts write behind it, and nothing else', async (t) => {
  const listed = { 'GET /v1/agent/members': { value: [] } };
  for (const [flag, asked] of [
    ['-stale=1', 'GET /v1/agent/members?stale'],
    ['--stale=T', 'GET /v1/agent/members?stale'],
    ['-stale=0', 'GET /v1/agent/members'],
    ['-stale=False', 'GET /v1/agent/members'],
  ] as const) {
    t.same((await run(['members', flag], { answers: listed })).asked, [asked], flag);
  }
  const { status, err } = await run(['members', '--stale=maybe']);
  t.same([status, err], [2, 'Error: --stale is a switch: behind = it takes true or false\n']);
});

t.test('a 404 with a word of the service: is not taken for another server', async (t) => {
  const text = 'There is no divergent entry 1.1 in this datacenter';
  const { err } = await run(['operator', 'divergence', 'resubmit', '1.1'], {
    send: async () => ({
      status: 404,
      headers: { 'content-type': 'application/problem+json' },
      text: JSON.stringify({ code: 'not-found', detail: text }),
    }),
  });
  t.match(err, /Next: `conclave operator divergence list` shows/);
  t.notMatch(err, 'check the address');
});
