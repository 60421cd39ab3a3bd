// How objects are written in answers.

import fc from 'fast-check';
import t from 'tap';
import { quote, quoteValue } from '../../src/api/render/quote.ts';
import {
  renderAuthMethod,
  renderAuthMethodListEntry,
  renderBindingRule,
} from '../../src/api/render/render-auth-method.ts';
import { renderReplication } from '../../src/api/render/render-federation.ts';
import { renderLoginExplanation } from '../../src/api/render/render-login.ts';
import { renderNamespace, renderTemplates } from '../../src/api/render/render-others.ts';
import { renderPolicy, renderPolicyListEntry } from '../../src/api/render/render-policy.ts';
import {
  renderBootstrapToken,
  renderToken,
  renderTokenListEntry,
} from '../../src/api/render/render-token.ts';
import { policyView, tokenView } from '../http/support.ts';
import {
  EXPANDED,
  FULL_TOKEN,
  LINK,
  LOGIN,
  METHOD,
  NAMESPACE,
  NO_NS,
  NS,
  RULE,
} from './shown-samples.ts';

t.test('render: each object has its fields in the order of the interface', async (t) => {
  const token =
    '"AccessorID":"33333333-3333-3333-3333-333333333333","SecretID":"44444444-4444-4444-4444-444444444444",' +
    '"Description":"a \\u003cb\\u003e \\u0026 \\"c\\""';
  const end =
    '"CreateTime":"2026-11-21T06:00:00.5Z","Hash":"aGFzaA==","CreateIndex":3,"ModifyIndex":4';
  const policy =
    '{"ID":"22222222-2222-2222-2222-222222222222","Name":"reader","Description":"","Rules":"acl = \\"read\\""';
  const cases: [string, string][] = [
    [renderToken(tokenView(), NO_NS), `{${token},"Local":false,${end}}`],
    [renderToken(tokenView(), NS), `{${token},"Local":false,${end},"Namespace":"default"}`],
    [renderTokenListEntry(tokenView(), NO_NS), `{${token},"Policies":null,"Local":false,${end}}`],
    [
      renderTokenListEntry(tokenView({}, { policies: [LINK] }), NO_NS),
      `{${token},"Policies":[{"ID":"1","Name":"p"}],"Local":false,${end}}`,
    ],
    [
      renderBootstrapToken(tokenView(), NO_NS),
      `{"ID":"44444444-4444-4444-4444-444444444444",${token},"Local":false,${end}}`,
    ],
    [
      renderToken(FULL_TOKEN, NO_NS),
      `{${token},"Policies":[{"ID":"1","Name":"p"}],"Roles":[{"ID":"1","Name":"p"}],` +
        '"ServiceIdentities":[{"ServiceName":"w","Datacenters":["dc1"]}],' +
        '"NodeIdentities":[{"NodeName":"n","Datacenter":"dc1"}],' +
        '"TemplatedPolicies":[{"TemplateID":"t","TemplateName":"builtin/service","TemplateVariables":{"name":"w"}}],' +
        `"Local":true,"AuthMethod":"m","ExpirationTime":"2026-11-21T08:00:00Z",${end}}`,
    ],
    [
      renderToken(tokenView({}, { expanded: EXPANDED }), NO_NS),
      `{${token},"Local":false,${end},"ExpandedPolicies":[${policy},"Datacenters":null,"Hash":null,"CreateIndex":5,"ModifyIndex":6}],` +
        '"ExpandedRoles":[{"ID":"r","Name":"n","Description":"","Hash":"h","CreateIndex":1,"ModifyIndex":2}],' +
        '"NamespaceDefaultPolicyIDs":["1"],"NamespaceDefaultRoleIDs":null,' +
        '"NamespaceDefaultPolicies":[{"ID":"1","Name":"p"}],"NamespaceDefaultRoles":null,' +
        '"AgentACLDefaultPolicy":"deny","AgentACLDownPolicy":"extend-cache","ResolvedByAgent":"n1"}',
    ],
    [
      renderPolicy(policyView(), NO_NS),
      `${policy},"Hash":"aGFzaA==","CreateIndex":5,"ModifyIndex":6}`,
    ],
    [
      renderPolicyListEntry(policyView(), NO_NS),
      '{"ID":"22222222-2222-2222-2222-222222222222","Name":"reader","Description":"","Datacenters":null,"Hash":"aGFzaA==","CreateIndex":5,"ModifyIndex":6}',
    ],
    [
      renderAuthMethod(METHOD, NO_NS),
      '{"MaxTokenTTL":"1m30s","Name":"m","Type":"jwt","Config":{"a":"\\u003c"},"NamespaceRules":[{"Selector":"s","BindNamespace":"b"}],"CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderAuthMethodListEntry(METHOD, NO_NS),
      '{"MaxTokenTTL":"1m30s","Name":"m","Type":"jwt","Description":"","CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderBindingRule(RULE, NO_NS),
      '{"ID":"i","Description":"","AuthMethod":"m","Selector":"","BindType":"service","BindName":"x","BindVars":{"name":"v"},"CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderNamespace(NAMESPACE),
      '{"Name":"x","Description":"","ACLs":{"PolicyDefaults":[{"ID":"1","Name":"p"}]},"Meta":{"k":"v"},"CreateIndex":1,"ModifyIndex":2}',
    ],
    [
      renderNamespace({ ...NAMESPACE, policyDefaults: [] }),
      '{"Name":"x","Description":"","ACLs":{},"Meta":{"k":"v"},"CreateIndex":1,"ModifyIndex":2}',
    ],
    [renderTemplates([]), '{}'],
  ];
  for (const [written, expected] of cases) t.equal(written, expected);
});

t.test('render: why a login is granted or refused', async (t) => {
  const rule = '{"ID":"5","BindType":"role","BindName":"\\u003cr\\u003e","Selector":"a == \\"b\\""';
  const rules = `[${rule},"Result":"refused","Why":"so"},${rule},"Result":"bound","Name":"r","Why":"so"}]`;
  const token =
    '{"Description":"d","Policies":[{"ID":"1","Name":"p"}],"ServiceIdentities":[{"ServiceName":"s"}],"Local":true,"ExpirationTTL":"1m0s"}';
  const head =
    '{"Granted":true,"Summary":"a \\"b\\"","Attributes":[{"Name":"value.team","Value":"a\\u0026b"},{"Name":"list.groups","Value":["x","y"]}]';
  const rest = `,"NamespaceSelector":"a == b","BindingRules":${rules},"Token":${token}}`;
  t.equal(renderLoginExplanation(LOGIN, NS), `${head},"Namespace":"eng"${rest}`);
  t.equal(renderLoginExplanation(LOGIN, NO_NS), `${head}${rest}`);
  const nothing = { namespace: undefined, namespaceSelector: undefined, rules: [] };
  const refused = { granted: false, summary: 's', attributes: undefined, token: undefined };
  t.equal(
    renderLoginExplanation({ ...refused, ...nothing }, NS),
    '{"Granted":false,"Summary":"s","BindingRules":[]}',
  );
});

t.test('render: a hidden secret is never written', async (t) => {
  const hidden = tokenView({}, { secretHidden: true });
  for (const json of [renderToken(hidden, NS), renderTokenListEntry(hidden, NS)]) {
    t.notMatch(json, '44444444');
    t.match(json, '"SecretID":"\\u003chidden\\u003e"');
  }
});

t.test('render: replication times are whole seconds or the zero time', async (t) => {
  const status = {
    enabled: true,
    running: true,
    sourceDatacenter: 'dc1',
    replicationType: 'tokens' as const,
    replicatedIndex: 1,
    replicatedRoleIndex: 2,
    replicatedTokenIndex: 3,
    lastSuccessMs: 1_500,
    lastErrorMs: undefined,
    lastErrorMessage: '',
    federation: {
      primary: { datacenter: 'dc1', epoch: 2 },
      head: { epoch: 2, seq: 9 },
      majority: undefined,
      tableIndexes: undefined,
      datacenters: [
        {
          ...({
            name: 'dc2',
            isSelf: true,
            isWitness: true,
            state: 'live',
            position: { epoch: 2, seq: 8 },
          } as const),
          ...{ lagEntries: 1, lagBytes: undefined, lagMs: 1_234, lastContactMs: undefined },
          ...{ differences: 0, lastSuccessMs: 1_500, lastErrorMs: undefined, lastError: '' },
          rival: undefined,
          ahead: undefined,
        },
      ],
    },
  };
  const shown = JSON.parse(renderReplication(status)) as Record<string, unknown>;
  t.match(shown, {
    PrimaryDatacenter: 'dc1',
    Epoch: 2,
    Position: '2.8',
    HeadPosition: '2.9',
    MajorityPosition: null,
    Datacenters: [
      {
        ...{ Name: 'dc2', State: 'live', Witness: true },
        LagEntries: 1,
        LagBytes: null,
        LagSeconds: 1.234,
      },
    ],
  });
  t.equal(shown.LastSuccess, '1970-01-01T00:00:01Z');
  t.equal(shown.LastError, '0001-01-01T00:00:00Z');
});

t.test('quote: any text comes back as it was', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const json = quote(text);
      return JSON.parse(json) === text && !/[<>&\u2028\u2029]/.test(json);
    }),
  );
  t.equal(quoteValue({ a: '&' }), '{"a":"\\u0026"}');
});
