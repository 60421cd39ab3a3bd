// The description of the interface is whole, and says what is.

import { createRequire } from 'node:module';
import t from 'tap';
import * as answers from '../../src/api/bodies/answers.ts';
import type { Endpoint } from '../../src/api/endpoints/endpoint.ts';
import { ENDPOINTS } from '../../src/api/endpoints/endpoints.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import {
  OPERATOR_ENDPOINTS,
  SNAPSHOT_ENDPOINTS,
} from '../../src/api/endpoints/endpoints-operator.ts';
import { openApiDocument } from '../../src/api/endpoints/openapi.ts';
import {
  renderAuthMethod,
  renderAuthMethodListEntry,
  renderBindingRule,
} from '../../src/api/render/render-auth-method.ts';
import { renderLoginExplanation } from '../../src/api/render/render-login.ts';
import { renderAuthorizations, renderNamespace } from '../../src/api/render/render-others.ts';
import { renderPolicy, renderPolicyListEntry } from '../../src/api/render/render-policy.ts';
import { renderRole } from '../../src/api/render/render-role.ts';
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
  NS,
  ROLE,
  RULE,
} from './shown-samples.ts';

const require = createRequire(import.meta.url);
interface Validator {
  addSchema(schema: object, key: string): void;
  validate(schema: object, value: unknown): boolean;
  readonly errors?: unknown;
}
const Ajv = require('ajv') as { default: new (options: object) => Validator };

t.test('openapi: every endpoint is in it, and every schema compiles', async (t) => {
  const document = openApiDocument('1.2.3') as unknown as {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: Record<string, object> };
  };
  const all = {
    ...ENDPOINTS,
    ...NODE_ENDPOINTS,
    ...OPERATOR_ENDPOINTS,
    ...SNAPSHOT_ENDPOINTS,
  };
  for (const [name, endpoint] of Object.entries<Endpoint>(all)) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}');
    t.equal(document.paths[path]?.[endpoint.method.toLowerCase()]?.operationId, name);
  }
  const ajv = new Ajv.default({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'doc');
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref);
  t.ok(refs.length > 50);
  for (const ref of new Set(refs)) {
    t.doesNotThrow(() => ajv.validate({ $ref: `doc${ref}` }, {}), String(ref));
  }
});

t.test('openapi: an endpoint that looks at the namespace of its request says so', async (t) => {
  const { paths } = openApiDocument('1') as unknown as {
    paths: Record<string, Record<string, { parameters: { name: string; in: string }[] }>>;
  };
  for (const [path, method, isLookedAt] of [
    ['/v1/acl/tokens', 'get', true],
    ['/v1/internal/acl/authorize', 'post', true],
    ['/v1/internal/acl/authorize/{accessorId}', 'post', true],
    ['/v1/acl/token/self', 'get', false],
  ] as const) {
    const named = paths[path]?.[method]?.parameters.filter(({ name }) => name === 'ns') ?? [];
    t.equal(named.length, isLookedAt ? 1 : 0, path);
  }
});

t.test('openapi: each type that an endpoint answers with is named', async (t) => {
  const { paths } = openApiDocument('1') as unknown as {
    paths: Record<string, { get: { responses: { '200': { content: object } } } }>;
  };
  for (const [path, types] of [
    ['/v1/agent/metrics', ['application/json', 'text/plain']],
    ['/readyz', ['text/plain']],
    ['/v1/acl/tokens', ['application/json']],
    ['/v1/snapshot', ['application/x-gzip']],
  ] as const) {
    t.same(Object.keys(paths[path]?.get.responses['200'].content ?? {}), types, path);
  }
});

t.test('openapi: what is rendered is what the answer schemas say', async (t) => {
  const ajv = new Ajv.default({ strict: false });
  const explanation = {
    decision: 'deny' as const,
    summary: 's',
    token: { accessorId: 'a', description: '' },
    role: LINK,
    identity: undefined,
    policy: { ...LINK, namespace: 'default' },
    rule: { text: 'x', line: 1, column: 2 },
    decidedBy: 'rule',
    overruled: [{ policy: 'p', rule: 'r', why: 'w' }],
  };
  const authorization = { resource: 'key', access: 'read', segment: '', namespace: undefined };
  const cases: [object, string][] = [
    [answers.Token, renderToken(FULL_TOKEN, NS)],
    [answers.Token, renderTokenListEntry(tokenView(), NS)],
    [answers.BootstrapToken, renderBootstrapToken(FULL_TOKEN, NS)],
    [answers.TokenRead, renderToken(tokenView({}, { expanded: EXPANDED }), NS)],
    [answers.Policy, renderPolicy(policyView(), NS)],
    [answers.PolicyListEntry, renderPolicyListEntry(policyView(), NS)],
    [answers.Role, renderRole(ROLE, NS)],
    [answers.AuthMethod, renderAuthMethod(METHOD, NS)],
    [answers.AuthMethodListEntry, renderAuthMethodListEntry(METHOD, NS)],
    [answers.BindingRule, renderBindingRule(RULE, NS)],
    [answers.Namespace, renderNamespace(NAMESPACE)],
    [answers.LoginExplanation, renderLoginExplanation(LOGIN, NS)],
    [
      answers.Authorization,
      renderAuthorizations([{ ...authorization, allow: true, explanation }]).slice(1, -1),
    ],
  ];
  for (const [schema, json] of cases) {
    const closed = { ...schema, additionalProperties: false };
    t.ok(ajv.validate(closed, JSON.parse(json)), `${json} ${JSON.stringify(ajv.errors)}`);
  }
});

t.test('openapi: no product but this one is named in the texts of the document', async (t) => {
  t.notMatch(JSON.stringify(openApiDocument('1')).replaceAll('X-Consul-', ''), /consul/i);
});
