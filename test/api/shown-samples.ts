// Objects as the interface shows them, each with all its fields.

import type {
  ShownAuthMethod,
  ShownBindingRule,
  ShownLoginExplanation,
  ShownNamespace,
} from '../../src/api/render/shown.ts';
import type { RoleView } from '../../src/service/views.ts';
import { policyView, tokenView } from '../http/support.ts';

export const NS = { namespaces: true };
export const NO_NS = { namespaces: false };
export const LINK = { id: '1', name: 'p' };
export const FULL_TOKEN = tokenView(
  {
    serviceIdentities: [{ serviceName: 'w', datacenters: ['dc1'] }],
    nodeIdentities: [{ nodeName: 'n', datacenter: 'dc1' }],
    templatedPolicies: [
      {
        templateId: 't',
        templateName: 'builtin/service',
        variables: { name: 'w' },
        datacenters: [],
      },
    ],
    local: true,
    authMethod: { name: 'm', namespace: 'x', createIndex: 1 },
    expirationTime: '2026-11-21T08:00:00Z',
  } as never,
  { policies: [LINK], roles: [LINK] },
);
export const ROLE = {
  kind: 'role',
  role: {
    id: 'r',
    name: 'n',
    namespace: 'default',
    description: '',
    policies: [],
    serviceIdentities: [],
    nodeIdentities: [],
    templatedPolicies: [],
    hash: 'h',
    createIndex: 1,
    modifyIndex: 2,
  },
  policies: [],
} as unknown as RoleView;
export const METHOD = {
  method: {
    name: 'm',
    namespace: 'default',
    type: 'jwt',
    displayName: '',
    description: '',
    maxTokenTtlNs: 90_000_000_000n,
    tokenLocality: '',
    config: { a: '<' },
    namespaceRules: [{ selector: 's', bindNamespace: 'b' }],
    createIndex: 1,
    modifyIndex: 2,
  },
} as unknown as ShownAuthMethod;
export const RULE = {
  rule: {
    id: 'i',
    namespace: 'default',
    description: '',
    authMethod: 'm',
    selector: '',
    bindType: 'service',
    bindName: 'x',
    bindVars: { name: 'v' },
    createIndex: 1,
    modifyIndex: 2,
  },
} as unknown as ShownBindingRule;
export const NAMESPACE = {
  namespace: { name: 'x', description: '', meta: { k: 'v' }, createIndex: 1, modifyIndex: 2 },
  policyDefaults: [LINK],
  roleDefaults: [],
} as unknown as ShownNamespace;
export const EXPANDED = {
  policies: [policyView({ hash: '' }).policy],
  roles: [ROLE],
  namespaceDefaultPolicies: [LINK],
  namespaceDefaultRoles: undefined,
  defaultPolicy: 'deny' as const,
  downPolicy: 'extend-cache',
  resolvedByNode: 'n1',
};

const LOGIN_RULE = {
  ...({ id: '5', bindType: 'role', bindName: '<r>', selector: 'a == "b"' } as const),
  ...({ result: 'refused', name: undefined, why: 'so' } as const),
};
export const LOGIN: ShownLoginExplanation = {
  granted: true,
  summary: 'a "b"',
  attributes: [
    { name: 'value.team', value: 'a&b' },
    { name: 'list.groups', value: ['x', 'y'] },
  ],
  namespace: 'eng',
  namespaceSelector: 'a == b',
  rules: [LOGIN_RULE, { ...LOGIN_RULE, result: 'bound', name: 'r' }],
  token: {
    description: 'd',
    policies: [LINK],
    roles: [],
    serviceIdentities: [{ serviceName: 's', datacenters: [] }],
    nodeIdentities: [],
    templatedPolicies: [],
    local: true,
    expirationTtl: '1m0s',
  },
};
