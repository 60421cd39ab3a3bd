// What commands print of objects, lists and decisions, and what they never print.

import t from 'tap';
import { TransportError } from '../../../src/client/transport.ts';
import {
  AUTHORIZATION,
  MEMBER,
  METHOD,
  OTHER_POLICY_ID,
  PLAIN_TOKEN,
  POLICIES,
  POLICY,
  POLICY_ID,
  ROLE,
  RULE,
  SECRET,
  TOKEN,
  TOKEN_ID,
} from '../fixtures.ts';
import { problem, run } from '../harness.ts';

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

interface Shown {
  readonly Hash?: string | null;
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
}

t.test(
  'a list: with --meta has hashes and indexes, and one object takes the flag too',
  async (t) => {
    const lists: readonly (readonly [kind: string, path: string, value: Shown])[] = [
      ['token', 'tokens', PLAIN_TOKEN],
      ['policy', 'policies', POLICY],
      ['role', 'roles', ROLE],
      ['auth-method', 'auth-methods', METHOD],
      ['binding-rule', 'binding-rules', RULE],
    ];
    for (const [kind, path, value] of lists) {
      const answers = { [`GET /v1/acl/${path}`]: { value: [value] } };
      const plain = await run(['acl', kind, 'list'], { answers });
      t.notMatch(plain.out, 'Modify Index', kind);
      const { out } = await run(['acl', kind, 'list', '-meta'], { answers });
      const { Hash, CreateIndex, ModifyIndex } = value;
      t.match(out, /Hash +Create Index +Modify Index\n/, kind);
      t.match(out, new RegExp(` ${Hash ?? '-'} +${CreateIndex} +${ModifyIndex}\n`), kind);
    }
    const answers = { [`GET /v1/acl/policy/${POLICY_ID}`]: { value: POLICY } };
    const read = ['acl', 'policy', 'read', '--id', POLICY_ID];
    const [plain, withMeta] = [
      await run(read, { answers }),
      await run([...read, '-meta'], { answers }),
    ];
    t.same([withMeta.status, withMeta.out], [0, plain.out]);
  },
);

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

t.test('explain: names the namespace of the question where it is not default', async (t) => {
  const ask = async (Namespace: string) => {
    const answer = { Resource: 'acl', Access: 'read', Namespace, Allow: true };
    const { out } = await run(['acl', 'explain', '--resource', 'acl', '--access', 'read'], {
      answers: { 'POST /v1/internal/acl/authorize': { value: [answer] } },
    });
    return out;
  };
  t.match(await ask('team'), /ALLOWED {2}read on acl \(namespace team\)\n/);
  t.match(await ask('default'), /ALLOWED {2}read on acl\n/);
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
  const lost = await run(['operator', 'datacenters'], {
    answers: {
      ...answers,
      'GET /v1/operator/primary': problem(503, 'unavailable', 'No cluster leader'),
    },
  });
  t.same(
    [lost.status, lost.out, lost.err.split('\n')[1]],
    [0, plain.out, 'Whether it takes writes is not known: No cluster leader'],
    'the table alone looks as if all were well',
  );
  const coloured = await run(['operator', 'datacenters'], { answers, isTerminal: true });
  const red = [...coloured.out.matchAll(/\u001b\[31m(.*?)\u001b\[39m/g)].map(([, cell]) => cell);
  t.same(red, ['away', '90.0s', 'stopped', 'differs', '2']);
});
