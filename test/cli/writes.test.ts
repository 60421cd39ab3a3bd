// Commands that create or change something: for whom they wait, and what they leave of an object as it was.

import t from 'tap';
import {
  METHOD,
  NAMESPACE,
  POLICY,
  POLICY_ID,
  ROLE,
  ROLE_ID,
  RULE,
  RULE_ID,
  SECRET,
  TOKEN,
  TOKEN_ID,
} from './fixtures.ts';
import { problem, run, type Script } from './harness.ts';

const token = `/v1/acl/token/${TOKEN_ID}`;

/** What is written where, and what the server says of it. */
const CREATED: readonly (readonly [line: string, asked: string, value: object])[] = [
  ['acl token create --description x', 'PUT /v1/acl/token', TOKEN],
  [`acl token clone ${TOKEN_ID}`, `PUT ${token}/clone`, TOKEN],
  ['acl policy create --name x', 'PUT /v1/acl/policy', POLICY],
  ['acl role create --name x', 'PUT /v1/acl/role', ROLE],
  ['acl auth-method create --name ci --type jwt', 'PUT /v1/acl/auth-method', METHOD],
  [
    'acl binding-rule create --method ci --bind-type role --bind-name x',
    'PUT /v1/acl/binding-rule',
    RULE,
  ],
  ['namespace create team-a', 'PUT /v1/namespace', NAMESPACE],
  ['login --method ci --bearer-token-file jwt --token-sink-file sink', 'POST /v1/acl/login', TOKEN],
];

const CHANGED: typeof CREATED = [
  [`acl token update ${TOKEN_ID}`, `PUT ${token}`, TOKEN],
  [`acl policy update ${POLICY_ID}`, `PUT /v1/acl/policy/${POLICY_ID}`, POLICY],
  [`acl role update ${ROLE_ID}`, `PUT /v1/acl/role/${ROLE_ID}`, ROLE],
  ['acl auth-method update ci', 'PUT /v1/acl/auth-method/ci', METHOD],
  [`acl binding-rule update ${RULE_ID}`, `PUT /v1/acl/binding-rule/${RULE_ID}`, RULE],
  ['namespace update team-a', 'PUT /v1/namespace/team-a', NAMESPACE],
];

const LATE = problem(
  504,
  'wait-timeout',
  'The write stands at position 1.7, but in time it was acknowledged by the primary only and not by all datacenters',
);

function answers(asked: string, value: object, ...first: object[]): NonNullable<Script['answers']> {
  return { [asked.replace('PUT', 'GET')]: { value }, [asked]: [...first, { value }] };
}

for (const [line, asked, value] of [...CREATED, ...CHANGED]) {
  const writes = (words: string, ...first: object[]) =>
    run([...line.split(' '), ...words.split(' ').filter((word) => word !== '')], {
      answers: answers(asked, value, ...first),
      files: { jwt: 'header.payload.signature' },
    });
  const [method] = asked.split(' ');

  t.test(`conclave ${line} --ack all: waits for all, and for nobody without it`, async (t) => {
    const all = await writes('--ack all');
    t.equal(all.status, 0, all.err);
    const sent = all.requests.filter((each) => each.method === method);
    t.equal(sent.length, 1);
    t.match(sent[0]!.url, /[?&]ack=all$/);
    t.match(sent[0]!.headers, { 'x-service-request-id': /^[0-9a-f]{32}$/ });
    const none = await writes('');
    const plain = none.requests.find((each) => each.method === method)!;
    t.notMatch(plain.url, 'ack');
    t.notOk('x-service-request-id' in plain.headers);
    t.equal((await writes('--ack some')).status, 2);
  });

  t.test(`conclave ${line} --ack all: what is late is shown, and is no success`, async (t) => {
    const late = await writes('--ack all', LATE);
    t.equal(late.status, 1);
    t.match(late.err, 'Next: nothing is to be repeated');
    const [first, again, ...more] = late.requests.filter((each) => each.method === method);
    t.same(more, []);
    t.equal(again!.url, first!.url.replace('ack=all', 'ack=primary'));
    t.same([again!.headers, again!.body], [first!.headers, first!.body]);
    t.equal(late.out, (await writes('')).out);
    if (line.startsWith('login')) t.same(late.secretFiles, { sink: SECRET });
    const lost = await writes('--ack all', LATE, problem(503, 'unavailable', 'No cluster leader'));
    t.same([lost.status, lost.out], [1, '']);
    t.match(lost.err, 'The write stands at position 1.7', 'and not that nothing was changed');
    const refused = await writes('--ack all', problem(403, 'permission-denied', 'no'));
    t.equal(refused.requests.filter((each) => each.method === method).length, 1);
  });
}

for (const [line, asked, value] of CHANGED) {
  t.test(`conclave ${line}: leaves what a later release knows of the object`, async (t) => {
    const later = { ...value, OnlyFrom: ['10.0.0.0/8'] };
    const { requests } = await run([...line.split(' '), '--description', 'x'], {
      answers: answers(asked, later),
    });
    const body = JSON.parse(requests.at(-1)!.body!) as Record<string, unknown>;
    t.same(body.OnlyFrom, ['10.0.0.0/8']);
    for (const field of ['ModifyIndex', 'CreateIndex', 'Hash', 'SecretID'])
      t.notOk(field in body, field);
  });
}

t.test('an update: leaves what a later release knows of a part of the object, too', async (t) => {
  const later = { OnlyFrom: ['10.0.0.0/8'] };
  const [template] = TOKEN.TemplatedPolicies;
  const ofToken = { ...TOKEN, TemplatedPolicies: [{ ...template, ...later }] };
  const given = ['--description', 'x'];
  const tokens = await run(['acl', 'token', 'update', TOKEN_ID, ...given], {
    answers: answers(`PUT ${token}`, ofToken),
  });
  t.match(JSON.parse(tokens.requests[1]!.body!), { TemplatedPolicies: [later] });
  const ofNamespace = { ...NAMESPACE, ACLs: { ...NAMESPACE.ACLs, ...later } };
  const namespaces = await run(['namespace', 'update', 'team-a', ...given], {
    answers: answers('PUT /v1/namespace/team-a', ofNamespace),
  });
  t.match(JSON.parse(namespaces.requests[1]!.body!), { ACLs: later });
});

t.test('operator autopilot set-config: leaves what a later release knows, too', async (t) => {
  const at = '/v1/operator/autopilot/configuration';
  const value = {
    CleanupDeadServers: true,
    LastContactThreshold: '200ms',
    MaxTrailingLogs: 250,
    MinQuorum: 0,
    ServerStabilizationTime: '10s',
    CreateIndex: 1,
    ModifyIndex: 2,
    RedundancyZoneTag: 'x',
  };
  const { requests } = await run(['operator', 'autopilot', 'set-config', '--min-quorum', '3'], {
    answers: { [`GET ${at}`]: { value }, [`PUT ${at}`]: { value: true } },
  });
  const body = JSON.parse(requests[1]!.body!) as object;
  t.match(body, { MinQuorum: 3, RedundancyZoneTag: 'x' });
  t.notOk('ModifyIndex' in body);
});
