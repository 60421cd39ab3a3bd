// The method `aws-iam`, against a server on the loopback that plays AWS.

import t from 'tap';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import { compileSelector } from '../../src/auth-methods/binding/selector.ts';
import { HttpsFailure, type HttpsRequest } from '../../src/auth-methods/outside/https-client.ts';
import { checkTable } from './check-table.ts';
import { authMethod, type Reply, type Seen, startLoopback, testSurroundings } from './loopback.ts';

const ROLE = 'arn:aws:iam::123456789012:role/ops';
const SESSION = 'arn:aws:sts::123456789012:assumed-role/ops/i-0f';

t.test('aws-iam: refuses a config with the prescribed words', async (t) => {
  const bound = { BoundIAMPrincipalARNs: [ROLE] };
  await checkTable(
    'aws-iam',
    [
      [{}, 'BoundIAMPrincipalARNs is required and must have at least 1 entry'],
      [{ BoundIAMPrincipalARNs: [ROLE, 'x'] }, 'invalid principal ARN: "x"'],
      [
        { BoundIAMPrincipalARNs: {} },
        'BoundIAMPrincipalARNs is required and must have at least 1 entry',
      ],
      [{ BoundIAMPrincipalARNs: true }, 'invalid principal ARN: "1"'],
      [{ BoundIAMPrincipalARNs: [ROLE, false] }, 'invalid principal ARN: "0"'],
      [{ BoundIAMPrincipalARNs: [null] }, 'invalid principal ARN: ""'],
      [
        { ...bound, EnableIAMEntityDetails: ['true'] },
        'error decoding config: "EnableIAMEntityDetails" must be a bool',
      ],
      [
        { BoundIAMPrincipalARNs: 'arn:aws:iam::*', EnableIAMEntityDetails: true },
        'invalid principal ARN: "arn:aws:iam::*"',
      ],
      [
        { BoundIAMPrincipalARNs: `${ROLE}*` },
        'must set EnableIAMEntityDetails=true to use wildcards in BoundIAMPrincipalARNs',
      ],
      [
        { ...bound, IAMEntityTags: ['a'] },
        'must set EnableIAMEntityDetails=true to use IAMEntityTags',
      ],
      [{ ...bound, STSEndpoint: 'nonsense' }, 'error STSEndpoint is invalid: not an absolute URL'],
      [
        { ...bound, IAMEndpoint: 'ftp://x' },
        'error IAMEndpoint is invalid: the scheme must be https or http',
      ],
      [{ ...bound, Bogus: 'x' }, 'error decoding config: invalid key "Bogus"'],
      [{ ...bound, MaxRetries: 'many' }, 'error decoding config: "MaxRetries" must be an integer'],
      [
        { ...bound, EnableIAMEntityDetails: 'perhaps' },
        'error decoding config: "EnableIAMEntityDetails" must be a bool',
      ],
    ],
    t,
  );
  const { types } = createAuthMethods(testSurroundings());
  const names = types['aws-iam'].attributeNames(
    authMethod('aws-iam', {
      boundiamprincipalarns: `${ROLE}*`,
      EnableIAMEntityDetails: 'true',
      IAMEntityTags: 'team',
    }),
  );
  t.same(names.interpolatable, [
    'entity_name',
    'entity_id',
    'account_id',
    'entity_path',
    'entity_tags.team',
  ]);
});

interface Bearer {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

const SIGNATURE = '51675a7e'.repeat(8);
const AUTHORIZATION = `AWS4-HMAC-SHA256 Credential=A/20261121/us-east-1/sts/aws4_request, SignedHeaders=host;x-amz-date;x-consul-iam-serverid, Signature=${SIGNATURE}`;
/** What the service signed is without the server id; in front of it, or behind, stands another list. */
const PARTS = 'AWS4-HMAC-SHA256 Credential=A/x, ';
const SIGNED = `SignedHeaders=host;x-amz-date, Signature=${SIGNATURE}`;
const DECOY = 'SignedHeaders=x-consul-iam-serverid';
const STS: Bearer = {
  method: 'POST',
  url: 'https://sts.amazonaws.com/',
  headers: {
    Authorization: [AUTHORIZATION],
    'Content-Type': ['application/x-www-form-urlencoded; charset=utf-8'],
    'Content-Length': ['43'],
    'X-Amz-Date': ['20261121T120000Z'],
    'X-Consul-IAM-ServerID': ['conclave.test'],
  },
  body: 'Action=GetCallerIdentity&Version=2011-06-15',
};

function bearerOf(changes: Partial<Bearer> = {}): string {
  const { method, url, headers, body } = { ...STS, ...changes };
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  return JSON.stringify({
    iam_http_request_method: method,
    iam_request_url: base64(url),
    iam_request_headers: base64(JSON.stringify(headers)),
    iam_request_body: base64(body),
  });
}

const withHeaders = (headers: Record<string, unknown>) =>
  bearerOf({ headers: { ...STS.headers, ...headers } });

function callerXml(arn = SESSION, userId = 'AROAX:i-0f', account = '123456789012'): string {
  return `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
    <Arn>${arn}</Arn><UserId>${userId}</UserId><Account>${account}</Account>
    </GetCallerIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>`;
}

function roleXml(arn = 'arn:aws:iam::123456789012:role/prod/ops', id = 'AROAX'): string {
  return `<GetRoleResponse><GetRoleResult><Role><Path>/prod/</Path><Arn>${arn}</Arn><RoleId>${id}</RoleId>
    <RoleName>ops</RoleName><Tags><member><Key>team</Key><Value>Core</Value></member><member><Key>secret</Key><Value>x</Value></member></Tags>
    </Role></GetRoleResult></GetRoleResponse>`;
}

t.test('aws-iam: a signed request goes to AWS and nowhere else', async (t) => {
  const sent: HttpsRequest[] = [];
  const http = {
    request: (request: HttpsRequest) => {
      sent.push(request);
      return Promise.resolve({ status: 200, headers: {}, body: Buffer.from(callerXml()) });
    },
  };
  const { types } = createAuthMethods({ ...testSurroundings(), http });
  const method = authMethod('aws-iam', {
    BoundIAMPrincipalARNs: ROLE,
    ServerIDHeaderValue: 'conclave.test',
    AllowedSTSHeaderValues: ['X-Amz-Extra'],
  });
  const login = (bearer: string) => types['aws-iam'].validate(method, bearer);
  const identity = await login(bearerOf());
  t.same(Object.fromEntries(identity.interpolatable), {
    entity_name: 'ops',
    entity_id: 'AROAX',
    account_id: '123456789012',
  });
  t.match(sent[0], {
    method: 'POST',
    url: 'https://sts.amazonaws.com/',
    body: STS.body,
    headers: { host: 'sts.amazonaws.com', authorization: [AUTHORIZATION] },
  });
  for (const url of [
    'https://sts.eu-central-1.amazonaws.com',
    'https://sts-fips.us-gov-west-1.amazonaws.com/',
    'https://sts.cn-north-1.amazonaws.com.cn/',
  ]) {
    await login(bearerOf({ url }));
  }
  await login(withHeaders({ 'X-Amz-Extra': 'allowed', Host: 'sts.amazonaws.com' }));
  t.equal(sent.length, 5);
  const refused: Readonly<Record<string, string>> = {
    ...Object.fromEntries(
      [
        'https://evil.test/',
        'https://sts.amazonaws.com.evil.test/',
        'https://sts.evil.s3.amazonaws.com/',
        'https://sts.s3.amazonaws.com/',
        'https://xsts.amazonaws.com/',
        'https://iam.amazonaws.com/',
        'https://sts.amazonaws.com@evil.test/',
        'https://u:p@sts.amazonaws.com/',
        'https://u@sts.amazonaws.com/',
        'https://:p@sts.amazonaws.com/',
        'http://sts.amazonaws.com/',
        'https://sts.amazonaws.com:8443/',
        'https://sts.amazonaws.com/?Action=AssumeRole',
        'https://sts.amazonaws.com/x',
        'https://sts.amazonaws.com/#x',
        'https://127.0.0.1/',
        'http://169.254.169.254/',
        'nonsense',
      ].map((url) => [url, bearerOf({ url })]),
    ),
    'GET instead of POST': bearerOf({ method: 'GET' }),
    'another action': bearerOf({ body: 'Action=GetSessionToken' }),
    'two actions': bearerOf({ body: 'Action=GetCallerIdentity&Action=GetSessionToken' }),
    'one more field': bearerOf({ body: `${STS.body}&X=1` }),
    'no action': bearerOf({ body: 'Version=2011-06-15' }),
    'a foreign amz header': withHeaders({ 'x-amz-target': 'x' }),
    'another host header': withHeaders({ Host: 'evil.test' }),
    'the form of the answer': withHeaders({ 'Accept-Encoding': 'gzip' }),
    'a connection header': withHeaders({ 'Transfer-Encoding': 'chunked' }),
    'a header for a proxy': withHeaders({ 'Proxy-Authorization': 'x' }),
    'a header that is no text': withHeaders({ 'X-Number': 1 as never }),
    'a header twice in two cases': withHeaders({ 'x-amz-DATE': 'x' }),
    'a broken header': withHeaders({ 'X-Amz-Date': 'a\r\nX-Evil: 1' }),
    'a broken header name': withHeaders({ 'X:y': 'a' }),
    'too many headers': withHeaders(
      Object.fromEntries(Array.from({ length: 60 }, (_, place) => [`x-${place}`, ''])),
    ),
    'no headers at all': bearerOf({ headers: null as never }),
    'no server id': bearerOf({ headers: { Authorization: AUTHORIZATION } }),
    'another server id': withHeaders({ 'X-Consul-IAM-ServerID': ['other'] }),
    'two server ids': withHeaders({ 'X-Consul-IAM-ServerID': ['conclave.test', 'other'] }),
    'an unsigned server id': withHeaders({
      Authorization: [AUTHORIZATION.replace(';x-consul-iam-serverid', '')],
    }),
    'a header whose name begins so, signed in its place': withHeaders({
      Authorization: [AUTHORIZATION.replace('serverid', 'serverid-2')],
    }),
    'a server id that is only mentioned': withHeaders({
      Authorization: ['x SignedHeaders=host;x-x-consul-iam-serverid, Signature=1'],
    }),
    ...Object.fromEntries(
      [
        `${PARTS}${DECOY.toLowerCase()}, ${SIGNED}`,
        `${PARTS}${DECOY}, ${SIGNED}`,
        `${PARTS}X=a ${DECOY}, ${SIGNED}`,
        `${PARTS}${SIGNED}, ${DECOY}`,
        `${DECOY}, ${PARTS}${SIGNED}`,
      ].map((text) => [
        `another list: ${text.replace(SIGNATURE, '')}`,
        withHeaders({ Authorization: [text] }),
      ]),
    ),
    words: 'not json',
    'a list': '[]',
    'no fields': '{}',
  };
  for (const [name, bearer] of Object.entries(refused)) {
    const error: unknown = await login(bearer).catch((error: unknown) => error);
    t.match(error, { name: 'AclError', code: 'login-refused' }, name);
    t.notMatch(String(error), /51675a7e/, `${name}: the signature is not repeated`);
  }
  t.equal(sent.length, 5, 'nothing of that was sent');
});

t.test('aws-iam: only the expected answer about a bound principal is a login', async (t) => {
  const server = await startLoopback(t);
  const surroundings = testSurroundings();
  const { types } = createAuthMethods(surroundings);
  let reply: Reply = { body: callerXml() };
  server.reply = () => reply;
  const STSEndpoint = `${server.url}/sts/`;
  const login = (BoundIAMPrincipalARNs = ROLE, bearer = bearerOf()) =>
    types['aws-iam'].validate(
      authMethod('aws-iam', { BoundIAMPrincipalARNs, STSEndpoint }),
      bearer,
    );
  await login();
  t.match(server.seen, [
    {
      path: '/sts/',
      headers: { host: 'sts.amazonaws.com', 'content-length': '43' },
      body: STS.body,
    },
  ]);
  await login(ROLE, bearerOf({ url: server.url }));
  await t.rejects(login(ROLE, bearerOf({ url: 'http://127.0.0.1:1/' })), { code: 'login-refused' });
  await t.rejects(login(`${ROLE}2`), {
    code: 'login-refused',
    message: `IAM principal ${ROLE} is not trusted`,
  });
  const refusals: readonly Reply[] = [
    { status: 403, body: '<ErrorResponse/>' },
    { status: 302, headers: { location: server.url }, body: '' },
    {
      body: {
        GetCallerIdentityResponse: {
          GetCallerIdentityResult: { Arn: ROLE, UserId: 'x', Account: '123456789012' },
        },
      },
    },
    { body: `{"junk": "${callerXml().replaceAll('"', "'")}"}` },
    { body: callerXml().replaceAll('GetCallerIdentityResponse', 'AssumeRoleResponse') },
    { body: callerXml(SESSION, 'AROAX', '999999999999') },
    { body: callerXml('arn:aws:iam::123456789012:root') },
    { body: callerXml().replace('<Arn>', `<Arn>${ROLE}</Arn><Arn>`) },
    { body: '' },
  ];
  for (const answer of refusals) {
    reply = answer;
    const code = answer.status === 302 ? 'unavailable' : 'login-refused';
    await t.rejects(login(), { code }, String(answer.body).slice(0, 40));
  }
  const before = server.seen.length;
  let failures = 1;
  server.reply = () => {
    failures -= 1;
    return failures < 0 ? { body: callerXml() } : { status: 503, body: '' };
  };
  await login();
  t.equal(server.seen.length, before + 2, 'tried again once');
  server.reply = () => ({ status: 503, body: '' });
  await t.rejects(login(), {
    code: 'unavailable',
    message: 'error asking for the identity of the caller: unexpected status 503',
  });
  t.notMatch(surroundings.lines.join(), /51675a7e/);
});

t.test('aws-iam: asks again so many times as the method says, and never very often', async (t) => {
  const server = await startLoopback(t);
  const { types } = createAuthMethods(testSurroundings());
  server.reply = () => ({ status: 503, body: '' });
  const bound = { BoundIAMPrincipalARNs: ROLE, STSEndpoint: server.url };
  for (const [MaxRetries, count] of [
    [1, 2],
    [5, 6],
    [6, 6],
    [-1, 2],
    [true, 2],
    ['3', 4],
  ] as const) {
    server.seen.splice(0);
    const login = types['aws-iam'].validate(
      authMethod('aws-iam', { ...bound, MaxRetries }),
      bearerOf(),
    );
    await t.rejects(login, { code: 'unavailable' });
    t.equal(server.seen.length, count, `MaxRetries ${MaxRetries}`);
  }
  for (const status of [400, 429]) {
    server.seen.splice(0);
    server.reply = () => ({ status, body: '' });
    const code = status === 429 ? 'unavailable' : 'login-refused';
    const login = types['aws-iam'].validate(authMethod('aws-iam', bound), bearerOf());
    await t.rejects(login, { code }, `status ${status}`);
    t.equal(server.seen.length, 1);
  }
});

t.test('aws-iam: asks again where no answer came, and not behind a fault of its own', async (t) => {
  let sent = 0;
  let failures: Error[] = [];
  const http = {
    request: () => {
      const failure = failures[sent];
      sent += 1;
      const answer = { status: 200, headers: {}, body: Buffer.from(callerXml()) };
      return failure === undefined ? Promise.resolve(answer) : Promise.reject(failure);
    },
  };
  const { types } = createAuthMethods({ ...testSurroundings(), http });
  const login = (...next: Error[]) => {
    sent = 0;
    failures = next;
    const method = authMethod('aws-iam', { BoundIAMPrincipalARNs: ROLE });
    return types['aws-iam'].validate(method, bearerOf());
  };
  const away = new HttpsFailure('connection', 'it is away');
  await login(away);
  t.equal(sent, 2);
  await t.rejects(login(away, away, away), { code: 'unavailable' });
  t.equal(sent, 2);
  await t.rejects(login(new TypeError('a fault')), { name: 'TypeError' });
  t.equal(sent, 1);
});

t.test('aws-iam: a long list of tags makes no selector slow', (t) => {
  const IAMEntityTags = Array.from({ length: 80_000 }, (_, place) => `tag${place}`);
  const method = authMethod('aws-iam', {
    BoundIAMPrincipalARNs: [ROLE],
    EnableIAMEntityDetails: true,
    IAMEntityTags,
  });
  const { types } = createAuthMethods(testSurroundings());
  const { selectable } = types['aws-iam'].attributeNames(method);
  const selector = Array.from({ length: 256 }, () => 'entity_tags.t == x').join(' or ');
  const startMs = performance.now();
  for (let rule = 0; rule < 250; rule += 1) compileSelector(selector, selectable);
  // Half a minute where each comparison goes through them.
  t.ok(performance.now() - startMs < 10_000);
  t.end();
});

t.test('aws-iam: entity details are those of the caller, with path and tags', async (t) => {
  const server = await startLoopback(t);
  const { types } = createAuthMethods(testSurroundings());
  const wanted = (
    body = 'Action=GetRole&RoleName=ops&Version=2010-05-08',
    url = 'https://iam.amazonaws.com/',
  ) => ({
    'X-Consul-IAM-GetEntity-Method': ['POST'],
    'X-Consul-IAM-GetEntity-URL': [url],
    'X-Consul-IAM-GetEntity-Headers': [JSON.stringify({ Authorization: ['iam-signature'] })],
    'X-Consul-IAM-GetEntity-Body': [body],
  });
  let entity: Reply = { body: roleXml() };
  server.reply = ({ path }: Seen) => (path === '/iam/' ? entity : { body: callerXml() });
  const method = (arn: string) =>
    authMethod('aws-iam', {
      BoundIAMPrincipalARNs: arn,
      EnableIAMEntityDetails: true,
      IAMEntityTags: ['team', 'absent'],
      STSEndpoint: `${server.url}/sts`,
      IAMEndpoint: `${server.url}/iam`,
    });
  const login = (arn = 'arn:aws:iam::123456789012:role/prod/*', headers = wanted()) =>
    types['aws-iam'].validate(method(arn), withHeaders(headers));
  const identity = await login();
  t.same(Object.fromEntries(identity.interpolatable), {
    entity_name: 'ops',
    entity_id: 'AROAX',
    account_id: '123456789012',
    entity_path: '/prod/',
    'entity_tags.team': 'Core',
  });
  t.match(server.seen[1], {
    path: '/iam/',
    headers: { authorization: 'iam-signature', host: 'iam.amazonaws.com' },
  });
  const { selectable } = types['aws-iam'].attributeNames(method(ROLE));
  const selected = Object.entries({
    'entity_tags.team != ""': true,
    'entity_tags["absent"] != ""': false,
    'entity_tags.absent == ""': true,
    'entity_tags.absent matches "^$"': true,
    'entity_tags.absent != core': true,
    'team in entity_tags': true,
    'absent in entity_tags': false,
    'entity_tags["not configured"] != ""': true,
  });
  for (const [text, wanted] of selected) {
    const selector = compileSelector(text, selectable);
    t.equal(selector.matches(identity.selectable), wanted, `a tag that is not there: ${text}`);
  }
  await t.rejects(login(ROLE), { code: 'login-refused' }, 'with details the path counts');
  const before = server.seen.length;
  const malformed = [
    wanted('Action=GetRole&UserName=ops'),
    wanted('Action=GetUser&RoleName=ops'),
    wanted('Action=GetUser'),
    wanted('Action=DeleteRole&RoleName=ops'),
    wanted(undefined, 'https://sts.amazonaws.com/'),
    wanted(undefined, 'https://evil.test/'),
    { ...wanted(), 'X-Consul-IAM-GetEntity-Method': ['GET'] },
    { ...wanted(), 'X-Consul-IAM-GetEntity-Headers': ['x'] },
    { ...wanted(), 'X-Consul-IAM-GetEntity-Headers': [JSON.stringify({ 'X-Amz-Target': 'x' })] },
  ];
  for (const headers of malformed) {
    await t.rejects(
      login(undefined, headers),
      { code: 'login-refused' },
      JSON.stringify(headers).slice(0, 160),
    );
  }
  await t.rejects(types['aws-iam'].validate(method(ROLE), bearerOf()), {
    message: 'missing header "x-consul-iam-getentity-method"',
  });
  t.equal(server.seen.length, before, 'nothing of that was sent');
  const others = [
    roleXml('arn:aws:iam::123456789012:role/prod/other'),
    roleXml('arn:aws:iam::999999999999:role/prod/ops'),
    roleXml(undefined, 'AROAY'),
    roleXml().replaceAll('Role', 'User'),
    roleXml().replaceAll('GetRoleResponse', 'ListRolesResponse'),
    '<GetRoleResponse/>',
  ];
  for (const body of others) {
    entity = { body };
    await t.rejects(login(), { code: 'login-refused' }, body.slice(0, 130));
  }
});

t.test(
  'aws-iam: a user is described as a role is, and a tag says the whole of its text',
  async (t) => {
    const server = await startLoopback(t);
    const { types } = createAuthMethods(testSurroundings());
    const arn = (name: string) => `arn:aws:iam::123456789012:user/${name}`;
    let described = '';
    server.reply = ({ path }: Seen) =>
      path === '/iam/'
        ? { body: described }
        : { body: callerXml(arn('jeff'), 'AIDAX', '123456789012') };
    const method = authMethod('aws-iam', {
      BoundIAMPrincipalARNs: arn('*'),
      EnableIAMEntityDetails: true,
      IAMEntityTags: ['team'],
      STSEndpoint: `${server.url}/sts`,
      IAMEndpoint: `${server.url}/iam`,
    });
    const login = (body: string, kind = 'User') => {
      described = roleXml(arn('ops/jeff'), 'AIDAX')
        .replaceAll('Role', kind)
        .replace('Core', ' core\t');
      const headers = {
        'X-Consul-IAM-GetEntity-Method': 'POST',
        'X-Consul-IAM-GetEntity-URL': 'https://iam.amazonaws.com/',
        'X-Consul-IAM-GetEntity-Headers': '{}',
        'X-Consul-IAM-GetEntity-Body': body,
      };
      return types['aws-iam'].validate(method, withHeaders(headers));
    };
    const { interpolatable } = await login('Action=GetUser&UserName=jeff');
    t.same(Object.fromEntries(interpolatable), {
      entity_name: 'jeff',
      entity_id: 'AIDAX',
      account_id: '123456789012',
      entity_path: '/prod/',
      'entity_tags.team': ' core\t',
    });
    const asked = server.seen.length;
    for (const body of [
      'Action=GetUser',
      'Action=GetUser&RoleName=jeff',
      'Action=GetUser&UserName=jeff&RoleName=jeff',
      'Action=GetRole&UserName=jeff&RoleName=jeff',
    ]) {
      await t.rejects(login(body), { code: 'login-refused' }, body);
    }
    t.equal(server.seen.length, asked, 'nothing of that was sent');
    await t.rejects(login('Action=GetUser&UserName=jeff', 'Role'), { code: 'login-refused' });
  },
);
