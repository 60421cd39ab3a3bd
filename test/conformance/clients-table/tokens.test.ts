// As objects.test.ts, for tokens, and what they allow.

import t from 'tap';
import { jwtIssuer } from '../../support/running/jwt-issuer.ts';
import {
  answers,
  Client,
  type Fields,
  type Reply,
  runNode,
} from '../../support/running/running-node.ts';
import { linkTo, makersOn } from '../makers.ts';
import { GLOBAL_MANAGEMENT, ID } from './values.ts';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newPolicy, newToken } = makersOn(consul, ISSUER.config);

t.test('tokens', async (t) => {
  const policies = [await newPolicy(), await newPolicy()];
  const body = {
    Description: 'a token',
    Policies: policies.map(linkTo),
    NodeIdentities: [{ NodeName: 'node-x', Datacenter: 'dc1' }],
  };

  await t.test('T1: a create answers accessor and secret', async (t) => {
    const token = await newToken(body);
    t.match(token, { ...body, AccessorID: /^.{36}$/, SecretID: /^.{36}$/, Local: false });
  });

  await t.test('T2: a local token', async (t) => {
    t.equal((await newToken({ ...body, Local: true })).Local, true);
  });

  await t.test('T3: a read equals the answer of the create', async (t) => {
    const token = await newToken(body);
    t.same((await consul.get(`/acl/token/${token.AccessorID}`)).json, token);
  });

  await t.test('T4: expanded, a bare parameter, adds policies and synthetic ones', async (t) => {
    const token = await newToken(body);
    const { json } = await consul.get(`/acl/token/${token.AccessorID}?expanded`);
    t.match(json, token);
    const expanded = json.ExpandedPolicies as readonly Fields[];
    t.equal(expanded.length, 3);
    t.same(expanded.slice(0, 2).map(linkTo), body.Policies);
    t.match(expanded[2], { Name: /^synthetic-policy-/, Rules: /node "node-x"/, ModifyIndex: 0 });
  });

  await t.test('T5: self, by the own secret', async (t) => {
    const token = await newToken(body);
    t.same((await consul.as(token.SecretID).get('/acl/token/self')).json, token);
  });

  await t.test('T6: a clone has new ids, equal policies and the given description', async (t) => {
    const token = await newToken(body);
    const clone = (Description: string): Promise<Fields> =>
      consul.made('PUT', `/acl/token/${token.AccessorID}/clone`, { Description });
    const cloned = await clone('cloned');
    t.not(cloned.AccessorID, token.AccessorID);
    t.not(cloned.SecretID, token.SecretID);
    t.match(cloned, { Description: 'cloned', Policies: body.Policies });
    t.equal((await clone('')).Description, body.Description);
  });

  await t.test('T7: an update with AccessorID fills in the secret', async (t) => {
    const token = await newToken(body);
    const { AccessorID } = token;
    const update = { AccessorID, Description: 'updated', Policies: body.Policies };
    const updated = await consul.made('PUT', `/acl/token/${AccessorID}`, update);
    t.match(updated, { ...update, SecretID: token.SecretID });
    t.not(updated.Hash, token.Hash);
    t.ok(Number(updated.ModifyIndex) > Number(token.ModifyIndex));
  });

  await t.test('T8: an update without AccessorID', async (t) => {
    const { AccessorID } = await newToken(body);
    const updated = await consul.made('PUT', `/acl/token/${AccessorID}`, { Description: 'again' });
    t.match(updated, { AccessorID, Description: 'again' });
    t.notOk('Policies' in updated);
  });

  await t.test('T9: no id', async (t) => {
    answers(t, await consul.get('/acl/token/'), 400, 'Missing token AccessorID');
  });

  await t.test('T10: another AccessorID in the body than in the path', async (t) => {
    const { AccessorID } = await newToken();
    const reply = await consul.put(`/acl/token/${AccessorID}`, { AccessorID: ID });
    answers(t, reply, 400, 'Token Accessor ID in URL and payload do not match');
  });

  await t.test('T11: a delete answers true; of what is gone false (decisions 2)', async (t) => {
    const { AccessorID } = await newToken();
    answers(t, await consul.delete(`/acl/token/${AccessorID}`), 200, 'true');
    answers(t, await consul.delete(`/acl/token/${AccessorID}`), 200, 'false');
  });

  await t.test('T12: the list is the live tokens and the two built-in ones', async (t) => {
    const other = new Client(await runNode(t), 'X-Consul-');
    const kept = await other.made('PUT', '/acl/token', { Description: 'kept' });
    const gone = await other.made('PUT', '/acl/token', {});
    await other.delete(`/acl/token/${gone.AccessorID}`);
    const { list } = await other.get('/acl/tokens');
    const descriptions = list.map(({ Description }) => Description).sort();
    t.same(descriptions, ['Anonymous Token', 'Initial Management Token', kept.Description]);
  });

  await t.test('T13: of global-management there is the initial management token', async (t) => {
    const { list } = await consul.get(`/acl/tokens?policy=${GLOBAL_MANAGEMENT}`);
    t.same(
      list.map(({ Description }) => Description),
      ['Initial Management Token'],
    );
  });

  await t.test('T14: ids that the caller chose are kept, letter case included', async (t) => {
    const [one, two] = ['DEADBEEF-0000-4000-8000-00000000000A', ID];
    t.match(await newToken({ AccessorID: one }), { AccessorID: one, SecretID: /^.{36}$/ });
    t.match(await newToken({ SecretID: two }), { AccessorID: /^.{36}$/, SecretID: two });
    const both = {
      AccessorID: 'deadbeef-0000-4000-8000-00000000000b',
      SecretID: 'deadbeef-0000-4000-8000-00000000000c',
    };
    t.match(await newToken(both), both);
  });

  await t.test('T15: no id is used twice, neither as accessor nor as secret', async (t) => {
    const { AccessorID, SecretID } = await newToken();
    const tries: readonly [Fields, string][] = [
      [{ AccessorID }, 'AccessorID'],
      [{ SecretID: AccessorID }, 'SecretID'],
      [{ SecretID }, 'SecretID'],
      [{ AccessorID: SecretID }, 'AccessorID'],
      [{ AccessorID: String(AccessorID).toUpperCase() }, 'AccessorID'],
    ];
    for (const [draft, field] of tries) {
      const reply = await consul.put('/acl/token', draft);
      answers(t, reply, 500, `Invalid Token: ${field} is already in use`);
    }
  });

  await t.test('T16: reserved ids', async (t) => {
    const prefix = '00000000-0000-0000-0000-0000000000';
    for (const field of ['AccessorID', 'SecretID']) {
      const reply = await consul.put('/acl/token', { [field]: `${prefix}aa` });
      const text = `Invalid Token: ${field} - UUIDs with the prefix "${prefix}" are reserved`;
      answers(t, reply, 500, text);
    }
  });

  await t.test('T17: capital letters in identities', async (t) => {
    const drafts = [
      { NodeIdentities: [{ NodeName: 'FOO', Datacenter: 'dc1' }] },
      { ServiceIdentities: [{ ServiceName: 'FOO' }] },
    ];
    for (const draft of drafts) {
      answers(t, await consul.put('/acl/token', draft), 500, /Only lowercase alphanumeric/);
    }
  });
});

t.test('authorize', async (t) => {
  const ask = (client: Client, body: unknown): Promise<Reply> =>
    client.post('/internal/acl/authorize', body);
  const question = (text: string): Fields => {
    const [Resource, Access, Segment = 'foo'] = text.split(' ');
    const isFlat = ['acl', 'keyring', 'mesh', 'operator', 'peering'].includes(Resource ?? '');
    return { Resource, Access, ...(isFlat ? {} : { Segment }) };
  };
  const RESOURCES = [
    ...['acl', 'agent', 'event', 'intention', 'key', 'keyring', 'mesh', 'node'],
    ...['operator', 'peering', 'query', 'service', 'session'],
  ];
  const everything = RESOURCES.flatMap((name) => [`${name} read`, `${name} write`]);

  await t.test('A1: management may do everything; questions are echoed', async (t) => {
    const questions = [...everything, 'key list', 'key write-prefix'].map(question);
    const { status, list } = await ask(consul, questions);
    t.equal(status, 200);
    t.same(
      list,
      questions.map((item) => ({ ...item, Allow: true })),
    );
  });

  await t.test('A2: what mixed rules allow', async (t) => {
    const rules = `acl = "read" operator = "write" service_prefix "" { policy = "read" }
      node_prefix "" { policy = "write" } key_prefix "/foo" { policy = "write" }`;
    const { SecretID } = await newToken({ Policies: [linkTo(await newPolicy({ Rules: rules }))] });
    const { list } = await ask(consul.as(SecretID), everything.map(question));
    const allowed = everything.filter((_, place) => list[place]?.Allow);
    t.same(allowed, [
      ...['acl read', 'intention read', 'mesh read', 'mesh write', 'node read', 'node write'],
      ...['operator read', 'operator write', 'peering read', 'peering write', 'service read'],
    ]);
  });

  await t.test('A3: more than 64 questions', async (t) => {
    const questions = (count: number) => Array.from({ length: count }, () => question('acl read'));
    const text = 'Refusing to process more than 64 authorizations at once';
    answers(t, await ask(consul, questions(100)), 400, text);
    t.equal((await ask(consul, questions(64))).list.length, 64);
  });

  await t.test('A4: an object instead of a list', async (t) => {
    answers(t, await ask(consul, question('acl read')), 400, /^Failed to decode request body: /);
  });

  await t.test('A5: an unknown secret', async (t) => {
    const unknown = consul.as('d908c0be-22e1-433e-84db-8718e1a019de');
    answers(t, await ask(unknown, [question('acl read')]), 403, 'ACL not found');
  });

  await t.test('A6: a local token in its own datacenter, by name', async (t) => {
    const { SecretID } = await newToken({ Local: true });
    const local = consul.as(SecretID);
    const reply = await local.post('/internal/acl/authorize?dc=dc1', [question('acl read')]);
    t.same([reply.status, reply.list[0]?.Allow], [200, false]);
    t.equal((await local.get('/acl/token/self?dc=dc1')).status, 200);
  });
});
