// What commands say when they are refused or typed wrongly, and what they end with.

import { Command } from 'commander';
import t from 'tap';
import { TransportError } from '../../../src/client/transport.ts';
import {
  MEMBER,
  OTHER_POLICY_ID,
  PLAIN_TOKEN,
  POLICIES,
  POLICY_ID,
  SECRET,
  TOKEN,
  TOKEN_ID,
} from '../fixtures.ts';
import { problem, run } from '../harness.ts';

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
    'a leader of an older release',
    problem(503, 'unavailable', 'the leader runs a release that does not know this'),
    'Next: upgrade the servers that run the older release',
  ],
  [
    'what was done in part',
    problem(
      503,
      'unavailable',
      '2048 of 3000 entries are forgotten, and the same command goes on with the others: No cluster leader',
    ),
    'Next: run the same command again.\n',
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
    'a token of another namespace',
    problem(
      403,
      'permission-denied',
      `Permission denied: token with AccessorID 'x' lacks permission 'acl:read' outside its namespace "team"`,
    ),
    'conclave acl explain` with the --ns that was meant',
  ],
  [
    'a local token of another datacenter that is changed',
    problem(404, 'update-target-missing', `Cannot find token "${TOKEN_ID}"`),
    'local to another datacenter is changed at a server there (--http-addr), whatever --dc says',
    'live in another namespace (--namespace)',
  ],
  [
    'a token that is not in the namespace that is meant',
    problem(404, 'token-not-found', 'token does not exist: ACL not found'),
    'Next: check the accessor id',
    'live in another namespace (--namespace)',
  ],
  [
    'a template that there is not',
    problem(404, 'template-not-found', 'Invalid templated policy Name: none'),
    'Next: `conclave acl templated-policy list`',
  ],
  [
    'a deletion that names no namespace',
    problem(400, 'malformed', 'the token lives in namespace "team": name it (ns) to delete it'),
    'Next: say so with --namespace; nothing was deleted',
  ],
  [
    'a local token of another datacenter that is presented',
    problem(
      403,
      'token-unknown',
      'ACL not found: the token is local to datacenter dc2 and does not exist in dc1',
    ),
    'Next: use a global token',
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
  [
    'a reset file that is none',
    problem(400, 'invalid', 'Invalid bootstrap reset index (specified 3, reset index: 2)'),
    'Next: write the number at the end of the message, a blank and a new UUID into the file',
  ],
  ['a bare text', { status: 500, text: 'No cluster leader' }, '(500)', 'No cluster leader'],
  [
    'a proxy that heard nothing',
    { status: 502, text: '<html>bad gateway</html>' },
    'Next: a write may have taken effect: read before you try again.\n',
  ],
  [
    'a proxy that had passed on what was asked',
    { status: 503, text: 'upstream connect error or disconnect/reset before headers' },
    'Next: try again in a moment; but a write may have taken effect: read before you try again.\n',
  ],
  [
    'a wait that is none',
    { status: 429, text: 'slow', headers: { 'retry-after': '-5' } },
    'Next: try again in a moment; nothing was changed.\n',
  ],
  [
    'an address that leads elsewhere',
    { status: 301, text: '' },
    'Next: check http:// or https:// in the address',
  ],
  [
    'an auth method that is not there',
    problem(403, 'permission-denied', 'ACL not found: auth method "x" not found'),
    'Next: check the name and the namespace of the auth method',
  ],
  [
    'a bearer token where a browser is needed',
    problem(403, 'login-refused', 'auth method "x" needs the OIDC login flow'),
    'Next: it is no login by a bearer token',
  ],
  [
    'a server without leader',
    {
      ...problem(503, 'unavailable', 'No cluster leader'),
      headers: { 'retry-after': '2', 'content-type': 'application/problem+json' },
    },
    'try again in 2 s',
  ],
  [
    'another datacenter without leader',
    problem(503, 'unavailable', 'No cluster leader in datacenter dc1'),
    'the servers there must run; `conclave operator raft list-peers --stale`, asked at one of them',
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
  [
    'an answer of another program',
    { status: 200, text: '{"ok":true}' },
    'but the answer is not what was asked for',
    'is this a Conclave server?',
  ],
  [
    'an answer with something else in its fields',
    { status: 200, text: `[{"AccessorID":"${TOKEN_ID}","Description":"","Policies":5}]` },
    'but the answer is not what was asked for',
    'is this a Conclave server?',
  ],
  [
    'an answer that lacks what is shown',
    { status: 200, text: `[{"AccessorID":"${TOKEN_ID}"}]` },
    'http://127.0.0.1:8500 does not say what is to be shown',
    'is this a Conclave server?',
  ],
  ['a name that no path can have', { status: 400, text: '' }, 'Next: check the name or id'],
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

t.test('members: an address can be typed as it is shown', async (t) => {
  const member = { ...MEMBER, Addr: '::1', Port: 8300 };
  const { out } = await run(['members'], {
    answers: { 'GET /v1/agent/members': { value: [member] } },
  });
  t.match(out, ' [::1]:8300 ');
});

t.test('what is typed wrongly is repeated without what a terminal would obey', async (t) => {
  const typed = '\u001b]0;x\u0007\u009b31m';
  const lines = [
    ['acl', typed],
    ['acl', 'token', 'list', `--${typed}`],
    ['acl', 'token', 'list', '--format', typed],
    ['acl', 'policy', 'update', '--name', 'x', '--cas', typed],
    ['acl', 'token', 'list', '--token-file', typed],
  ];
  for (const line of lines) {
    const { status, err } = await run(line);
    t.equal(status, 2);
    t.match(err, '\\x1b]0;x\\x07\\x9b31m');
    t.notMatch(err, /[\u001b\u0007\u009b]/);
  }
});

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
  t.match(err, `there is no token ${TOKEN_ID}: nothing was deleted\nNext: \`list\` in place of`);
  t.match(err, '--namespace looks in another namespace');
  const ofNone = await run(['namespace', 'delete', 'team'], {
    answers: { 'DELETE /v1/namespace/team': { value: false } },
  });
  t.equal(ofNone.status, 1);
  t.match(ofNone.err, 'there is no namespace team: nothing was deleted\nNext: `list` in place of');
  t.notMatch(ofNone.err, '--namespace', 'a namespace is in none');
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

t.test('a name that is the beginning of the id of another: neither is chosen', async (t) => {
  const policies = [{ ...POLICIES[1], Name: 'AAAA1' }, POLICIES[0]];
  const next = { 'x-service-next': 'there' };
  const pages = [{ value: policies.slice(0, 1), headers: next }, { value: policies.slice(1) }];
  for (const listed of [{ value: policies }, pages]) {
    const answers = { 'GET /v1/acl/policies': listed };
    for (const line of ['policy delete aaaa1', 'token create --policy-id aaaa1']) {
      const { status, asked, err } = await run(['acl', ...line.split(' ')], { answers });
      t.equal(status, 1);
      t.ok(asked.every((each) => each.startsWith('GET /v1/acl/policies?')));
      t.match(err, '"aaaa1" fits 2 policies:');
      t.match(
        err,
        'Next: give more of the id; a flag that ends with `name` takes nothing but names',
      );
    }
  }
  const { asked } = await run(['acl', 'policy', 'delete', 'aaaa1'], {
    answers: { 'GET /v1/acl/policies': { value: policies.slice(0, 1) } },
  });
  t.equal(asked[1], `DELETE /v1/acl/policy/${OTHER_POLICY_ID}`);
});

t.test('a name that is in several namespaces: none is chosen', async (t) => {
  const policies = [POLICIES[0], { ...POLICIES[1], Name: 'ops', Namespace: 'team-a' }];
  const { status, err } = await run(['acl', 'token', 'list', '--ns', '*', '--policy', 'ops'], {
    answers: { 'GET /v1/acl/policies': { value: policies } },
  });
  t.equal(status, 1);
  t.match(err, '"ops" fits 2 policies:');
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
  ['acl token delete --accessor-id 1 --accessor-id=2', '--accessor-id is given twice'],
  ['acl policy update x -rules a -rules b', '--rules is given twice'],
  ['acl binding-rule update x --bind-vars name=a --bind-vars name=b', '--bind-vars is given twice'],
  ['snapshot inspect a --key-file b --key-file c', '--key-file is given twice'],
  ['namespace create --name x --meta k=a --meta k=b', '--meta: "k" is given twice'],
  [
    'acl token create --templated-policy builtin/service --var name:a --var name:b',
    '--var: "name" is given twice for builtin/service: for another one, give --templated-policy',
  ],
  ['acl templated-policy preview x --var name:a --var name:b', '--var: "name" is given twice'],
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
  [
    'acl token create --local --dc dc2',
    '--local: the token is made in the datacenter of the server',
  ],
  ['members --format xml', '--format'],
  ['members --stale --consistent', '--stale'],
  ['members --http-addr http://a/b', '--http-addr'],
  ['members --http-addr http://a:1/?b', '--http-addr'],
  ['members --http-addr a:1?b', '--http-addr'],
  ['members --http-addr a:1#b', '--http-addr'],
  ['members --http-addr http://:b@a:1', '--http-addr'],
  ['members --http-addr unix://', '--http-addr'],
  ['members --token-file missing', '--token-file'],
  ['acl auth-method delete x --ns=', '--namespace is empty'],
  ['acl token delete 1 --dc=', '--datacenter is empty'],
  ['operator promote --election --token x ', 'the name of the datacenter is empty'],
  ['acl policy create --name x --valid-datacenter=', '--valid-datacenter <name>'],
  ['acl policy update x --valid-datacenter=', '--valid-datacenter <name>'],
  ['acl policy update x --valid-datacenter a --all-datacenters', 'give only one of'],
  [
    'acl binding-rule create --method ci --bind-type role --bind-name x --selector=',
    '--selector is empty',
  ],
  ['acl binding-rule update x --selector=', '--selector is empty: --all-identities stands for'],
  ['acl binding-rule update x --selector a --all-identities', 'give only one of'],
  ['acl binding-rule list --method=', '--method is empty'],
  ['acl role list --policy=', '--policy is empty'],
  ['acl token list --policy=', '--policy is empty'],
  ['acl token list --role=', '--role is empty'],
  ['acl token list --service-name=', '--service-name is empty'],
  ['acl token list --auth-method=', '--auth-method is empty'],
  ['acl policy create --name x --rules=', '--rules is empty'],
  ['acl policy update x --rules=', '--rules is empty: --clear rules takes them away'],
  ['acl policy update x --rules=\n', '--rules is empty'],
  ['acl policy update x --clear policies', 'Allowed choices are rules'],
  ['acl token update x --policy-id=', '--policy-id <id>'],
  ['acl token update x --policy-name web-read --policy-name=', '--policy-name <name>'],
  ['acl token update x --role-id=', '--role-id <id>'],
  ['acl token update x --role-name=', '--role-name <name>'],
  ['acl token update x --append-role-name=', '--append-role-name <name>'],
  ['acl token update x --service-identity=', '--service-identity <name[:dc1,dc2]>'],
  ['acl role update x --node-identity=', '--node-identity <name:dc>'],
  ['acl role update x --templated-policy=', '--templated-policy <name>'],
  ['acl role update x --append-policy-id=', '--append-policy-id <id>'],
  ['acl role update x --clear roles', 'Allowed choices are policies'],
  ['namespace update x --default-policy-name=', '--default-policy-name <name>'],
  ['namespace update x --default-role-id=', '--default-role-id <id>'],
  ['acl auth-method update x --token-locality=', '--token-locality is empty'],
  [
    'acl auth-method update x --namespace-rule-selector= --namespace-rule-bind-namespace a',
    '--namespace-rule-selector <selector>',
  ],
  ['acl binding-rule update x --selector=\t', '--selector is empty'],
  ['acl binding-rule update x --bind-vars=', '--bind-vars'],
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
  ['members', '--http-addr', `http://me:${SECRET}@a:1`],
  ['members', '--http-addr', `a:1?token=${SECRET}`],
  ['members', '--http-addr', `a:1?me@b&token=${SECRET}`],
  ['members', '--http-addr', `a:1/#token=${SECRET}`],
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

t.test(
  'members --http-addr: what cannot be a secret is shown of one that is refused',
  async (t) => {
    for (const [address, shown] of [
      ['http://me:word@a:1', '<hidden>@a:1'],
      ['a:1/x?word', 'a:1/x?<hidden>'],
      ['a:1?me@b', '<hidden>'],
    ] as const) {
      const { err } = await run(['members', '--http-addr', address]);
      t.match(err, `not "${shown}"`);
    }
  },
);

t.test('the word anonymous: is no secret that is hidden in what the server says', async (t) => {
  const refusal = problem(403, 'permission-denied', 'anonymous token lacks permission');
  const { err } = await run(['acl', 'token', 'list', '--token', 'anonymous'], {
    answers: { 'GET /v1/acl/tokens': refusal },
  });
  t.match(err, /\nanonymous token lacks permission\n/);
});

t.test(
  'members: those of another datacenter are not shown for those that --dc names',
  async (t) => {
    const answers = { 'GET /v1/agent/members': { value: [{ ...MEMBER, Tags: { dc: 'dc1' } }] } };
    const ask = (datacenter: string) => run(['members', '--dc', datacenter], { answers });
    t.equal((await ask('dc1')).status, 0);
    const other = await ask('dc2');
    t.same([other.status, other.out], [1, '']);
    t.match(other.err, /a server of datacenter dc1 was asked, and knows no members of dc2\nNext: /);
  },
);

t.test('the value of a flag: is passed on although it looks like a flag', async (t) => {
  const { asked } = await run(
    ['acl', 'token', 'create', '-description', '-locals', '-secret', '-'],
    { answers: { 'PUT /v1/acl/token': { value: TOKEN } }, standardInput: `${SECRET}\n` },
  );
  t.same(asked, [`PUT /v1/acl/token {"SecretID":"${SECRET}","Description":"-locals"}`]);
});

t.test('a flag: is not taken for the value that another one lacks', async (t) => {
  for (const line of [
    'acl token create -description -local',
    'acl token create --description --local',
    'acl token create --description --expires-ttl=1h',
    'login --method x --bearer-token-file y --token-sink-file --dry-run',
    'acl token update x --description --clear policies',
  ]) {
    const { status, err, asked } = await run(line.split(' '));
    t.same([status, asked], [2, []], line);
    t.match(err, /^Error: --[a-z-]+ has no value: --[a-z-]+ follows, which is a flag itself/);
  }
  const { asked } = await run(['acl', 'token', 'create', '--description=--local'], {
    answers: { 'PUT /v1/acl/token': { value: TOKEN } },
  });
  t.same(asked, ['PUT /v1/acl/token {"Description":"--local"}']);
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
