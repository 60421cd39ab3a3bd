// Templated policies and the policies that identities become.

import { createRequire } from 'node:module';
import fc from 'fast-check';
import t from 'tap';
import {
  policyOfNodeIdentity,
  policyOfServiceIdentity,
  policyOfTemplatedPolicy,
  previewTemplate,
} from '../../../src/acl/built-in/synthetic-policy.ts';
import { renderTemplate, TEMPLATES, templateNamed } from '../../../src/acl/built-in/templates.ts';
import { identityLists } from '../../../src/acl/checks/identity-checks.ts';
import { DEFAULT_NAMESPACE } from '../../../src/acl/ids.ts';
import { refusalOf } from '../refusal-of.ts';
import { TEAM } from './cases.ts';

t.test('templates: the catalogue holds what clients know', async (t) => {
  t.same(
    TEMPLATES.map(({ templateName, templateId, schema }) => [
      templateName,
      templateId.slice(-4),
      schema === '' ? '' : Object.keys(JSON.parse(schema).properties).join(),
    ]),
    [
      ['builtin/api-gateway', '0008', 'name'],
      ['builtin/dns', '0005', ''],
      ['builtin/node', '0004', 'name'],
      ['builtin/nomad-client', '0009', ''],
      ['builtin/nomad-server', '0006', ''],
      ['builtin/service', '0003', 'name'],
    ],
  );
  t.equal(
    templateNamed('builtin/node')?.template,
    'node "{{.Name}}" {\n  policy = "write"\n}\nservice_prefix "" {\n  policy = "read"\n}\n',
  );
  t.equal(templateNamed('BUILTIN/node'), undefined);
});

/** The reference parser of the rule language's notation: text in, JSON text out. */
const hcl = createRequire(import.meta.url)('js-hcl-parser') as {
  readonly parse: (text: string) => string;
};

t.test('templates: each becomes the rules that it promises', async (t) => {
  const write = [{ policy: 'write' }];
  const read = [{ policy: 'read' }];
  const everything = (level: unknown) => [{ '': level }];
  const cases: Readonly<Record<string, object>> = {
    'builtin/service': {
      service: [{ w: write }, { 'w-sidecar-proxy': write }],
      service_prefix: everything(read),
      node_prefix: everything(read),
    },
    'builtin/node': { node: [{ w: write }], service_prefix: everything(read) },
    'builtin/dns': {
      node_prefix: everything(read),
      service_prefix: everything(read),
      query_prefix: everything(read),
    },
    'builtin/nomad-server': {
      acl: 'write',
      agent_prefix: everything(read),
      node_prefix: everything(read),
      service_prefix: everything(write),
    },
    'builtin/api-gateway': {
      mesh: 'read',
      node_prefix: everything(read),
      service_prefix: everything(read),
      service: [{ w: write }],
    },
    'builtin/nomad-client': {
      agent_prefix: everything(read),
      node_prefix: everything(read),
      key_prefix: everything(read),
      service_prefix: everything(write),
    },
  };
  for (const { templateName } of TEMPLATES) {
    t.same(
      JSON.parse(hcl.parse(renderTemplate(templateName, 'w'))),
      cases[templateName],
      templateName,
    );
  }
});

t.test('templates: no value can leave its quotes', async () => {
  const nasty = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
    fc
      .array(fc.constantFrom(`\${`, '}', '"', '\\', '\n', 'x', ' { policy = "write" }'), {
        minLength: 1,
        maxLength: 8,
      })
      .map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(nasty, (name) => {
      const rules = JSON.parse(hcl.parse(renderTemplate('builtin/api-gateway', name)));
      return (
        Object.keys(rules).join() === 'mesh,node_prefix,service,service_prefix' &&
        JSON.stringify(rules.service) === JSON.stringify([{ [name]: [{ policy: 'write' }] }])
      );
    }),
    { numRuns: 100 },
  );
});

t.test('synthetic policies: made from identities, with ids that say their rules', async (t) => {
  const policy = policyOfServiceIdentity({ serviceName: 'web', datacenters: ['dc1'] }, TEAM);
  const hex = Buffer.from(policy.rules).toString('hex');
  t.match(policy, {
    id: `${hex}6c62272e07bb014262b821756295c58d`,
    name: `synthetic-policy-${policy.id}`,
    description: 'synthetic policy generated from templated policy: builtin/service',
    namespace: 'team',
    datacenters: ['dc1'],
    createIndex: 0,
    modifyIndex: 0,
  });
  t.match(policy.hash, /^[A-Za-z0-9+/]{43}=$/);
  t.match(policyOfNodeIdentity({ nodeName: 'n', datacenter: 'dc2' }, TEAM), {
    description: 'synthetic policy generated from templated policy: builtin/node',
    rules: /^node "n" \{/,
    datacenters: ['dc2'],
  });
  const { templatedPolicies } = identityLists(
    { templatedPolicies: [{ templateName: 'builtin/service', variables: { name: 'web' } }] },
    'role',
  );
  const templated = policyOfTemplatedPolicy(templatedPolicies[0]!, TEAM);
  t.equal(templated?.id, policy.id, 'a service identity is that template');
  t.equal(
    policyOfTemplatedPolicy({ ...templatedPolicies[0]!, templateName: 'builtin/gone' }, TEAM),
    undefined,
  );
});

t.test('preview: the policy that a template would become, or why not', async (t) => {
  t.same(
    previewTemplate('builtin/service', { name: 'web' }, TEAM),
    policyOfServiceIdentity({ serviceName: 'web', datacenters: [] }, TEAM),
  );
  t.equal(
    previewTemplate('builtin/dns', {}, DEFAULT_NAMESPACE).rules,
    renderTemplate('builtin/dns', ''),
  );
  t.equal(
    refusalOf(() => previewTemplate('x', {}, DEFAULT_NAMESPACE)),
    'template-not-found: templated policy "x" does not exist',
  );
  t.match(
    refusalOf(() => previewTemplate('builtin/node', { name: 'N' }, DEFAULT_NAMESPACE)),
    'malformed: validation error for templated policy: "builtin/node": node identity "N"  has an invalid name.',
  );
});
