// What each operation is given and how its answer is written. Everything that all routes have in
// common is in serve-operation.ts; here is only what differs.

import { requireNoTokenNameFormat } from '../../acl/checks/auth-method-checks.ts';
import { policyIdChosen, requireSameAddress } from '../../acl/refusals.ts';
import {
  authMethodDraftOf,
  bindingRuleDraftOf,
  namespaceDraftOf,
  policyDraftOf,
  roleDraftOf,
  tokenDraftOf,
} from '../../api/bodies/draft-of.ts';
import { quote } from '../../api/render/quote.ts';
import {
  renderAuthMethod,
  renderAuthMethodListEntry,
  renderBindingRule,
} from '../../api/render/render-auth-method.ts';
import { renderReplication } from '../../api/render/render-federation.ts';
import { renderLoginExplanation } from '../../api/render/render-login.ts';
import {
  renderAuthorizations,
  renderNamespace,
  renderTemplate,
  renderTemplates,
} from '../../api/render/render-others.ts';
import { renderPolicy, renderPolicyListEntry } from '../../api/render/render-policy.ts';
import { renderRole } from '../../api/render/render-role.ts';
import {
  renderBootstrapToken,
  renderToken,
  renderTokenListEntry,
} from '../../api/render/render-token.ts';
import { requireFewAuthorizations } from '../../authz/parse-authorization.ts';
import type { OperationName } from '../../service/operations.ts';
import { isSwitchedOn, textOf, unescapeQuery } from '../wire/query.ts';
import type { OperationRoute } from './operation-types.ts';

const renderBoolean = (value: boolean) => (value ? 'true' : 'false');
const nothing = () => ({});
const questionsOf: OperationRoute<'authorize'>['input'] = ({ body = [], query }) => {
  // Before the token is looked at, as in deployed servers.
  requireFewAuthorizations(body);
  const items = body.map((item) => ({
    resource: item.Resource ?? '',
    access: item.Access ?? '',
    segment: item.Segment ?? '',
    namespace: item.Namespace,
  }));
  return { items, explain: isSwitchedOn(query, 'explain') };
};
const loginOf: OperationRoute<'login'>['input'] = ({ body = {} }) => ({
  authMethod: body.AuthMethod ?? '',
  bearerToken: body.BearerToken ?? '',
  meta: body.Meta ?? {},
  namespace: body.Namespace,
});
const callbackOf: OperationRoute<'oidc.callback'>['input'] = ({ body = {} }) => ({
  authMethod: body.AuthMethod ?? '',
  state: body.State ?? '',
  code: body.Code ?? '',
  clientNonce: body.ClientNonce ?? '',
  namespace: body.Namespace,
});
const datacenterNamed: OperationRoute<'datacenter.remove' | 'datacenter.allow'>['input'] = ({
  parameter,
  query,
}) => ({ name: parameter, isForced: isSwitchedOn(query, 'force') });

export const OPERATION_ROUTES: { readonly [Name in OperationName]: OperationRoute<Name> } = {
  bootstrap: {
    input: ({ body }) => ({ secret: body?.BootstrapSecret }),
    render: renderBootstrapToken,
  },

  'token.create': {
    input: ({ body = {} }) => ({ draft: tokenDraftOf(body) }),
    render: renderToken,
  },
  'token.read': {
    input: ({ parameter, query }) => ({
      accessorId: parameter,
      expanded: isSwitchedOn(query, 'expanded'),
    }),
    render: renderToken,
  },
  'token.read-self': { input: nothing, render: renderToken },
  'token.update': {
    input: ({ parameter, body = {} }) => {
      requireSameAddress('Token Accessor ID', { path: parameter, body: body.AccessorID });
      return { accessorId: parameter, draft: tokenDraftOf(body) };
    },
    render: renderToken,
  },
  'token.clone': {
    input: ({ parameter, body }) => ({
      accessorId: parameter,
      description: body?.Description,
      namespace: body?.Namespace,
    }),
    render: renderToken,
  },
  'token.delete': {
    input: ({ parameter }) => ({ accessorId: parameter }),
    render: renderBoolean,
  },
  'token.list': {
    input: ({ query, page }) => ({
      policy: textOf(query, 'policy'),
      role: textOf(query, 'role'),
      serviceName: textOf(query, 'servicename'),
      authMethod: textOf(query, 'authmethod'),
      authMethodNamespace: textOf(query, 'authmethod-ns'),
      page,
    }),
    render: renderTokenListEntry,
  },

  'policy.create': {
    input: ({ body = {} }) => {
      if (body.ID !== undefined && body.ID !== '') throw policyIdChosen();
      return { draft: policyDraftOf(body) };
    },
    render: renderPolicy,
  },
  'policy.read': { input: ({ parameter }) => ({ id: parameter }), render: renderPolicy },
  'policy.read-by-name': {
    // Deployed clients escape the name once more than the path needs.
    input: ({ parameter }) => ({ name: unescapeQuery(parameter) ?? parameter }),
    render: renderPolicy,
  },
  'policy.update': {
    input: ({ parameter, body = {} }) => {
      requireSameAddress('Policy ID', { path: parameter, body: body.ID });
      return { id: parameter, draft: policyDraftOf(body) };
    },
    render: renderPolicy,
  },
  'policy.delete': { input: ({ parameter }) => ({ id: parameter }), render: renderBoolean },
  'policy.list': { input: ({ page }) => ({ page }), render: renderPolicyListEntry },

  'role.create': {
    input: ({ body = {} }) => {
      requireSameAddress('Role ID', { path: '', body: body.ID });
      return { draft: roleDraftOf(body) };
    },
    render: renderRole,
  },
  'role.read': { input: ({ parameter }) => ({ id: parameter }), render: renderRole },
  'role.read-by-name': { input: ({ parameter }) => ({ name: parameter }), render: renderRole },
  'role.update': {
    input: ({ parameter, body = {} }) => {
      requireSameAddress('Role ID', { path: parameter, body: body.ID });
      return { id: parameter, draft: roleDraftOf(body) };
    },
    render: renderRole,
  },
  'role.delete': { input: ({ parameter }) => ({ id: parameter }), render: renderBoolean },
  'role.list': {
    input: ({ query, page }) => ({ policy: textOf(query, 'policy'), page }),
    render: renderRole,
  },

  'auth-method.create': {
    input: ({ body = {} }) => {
      requireNoTokenNameFormat(body.TokenNameFormat);
      return { draft: authMethodDraftOf(body) };
    },
    render: renderAuthMethod,
  },
  'auth-method.read': { input: ({ parameter }) => ({ name: parameter }), render: renderAuthMethod },
  'auth-method.update': {
    input: ({ parameter, body = {} }) => {
      requireSameAddress('AuthMethod Name', { path: parameter, body: body.Name });
      requireNoTokenNameFormat(body.TokenNameFormat);
      return { name: parameter, draft: authMethodDraftOf(body) };
    },
    render: renderAuthMethod,
  },
  'auth-method.delete': { input: ({ parameter }) => ({ name: parameter }), render: renderBoolean },
  'auth-method.list': { input: ({ page }) => ({ page }), render: renderAuthMethodListEntry },

  'binding-rule.create': {
    input: ({ body = {} }) => {
      requireSameAddress('BindingRule ID', { path: '', body: body.ID });
      return { draft: bindingRuleDraftOf(body) };
    },
    render: renderBindingRule,
  },
  'binding-rule.read': { input: ({ parameter }) => ({ id: parameter }), render: renderBindingRule },
  'binding-rule.update': {
    input: ({ parameter, body = {} }) => {
      requireSameAddress('BindingRule ID', { path: parameter, body: body.ID });
      return { id: parameter, draft: bindingRuleDraftOf(body) };
    },
    render: renderBindingRule,
  },
  'binding-rule.delete': { input: ({ parameter }) => ({ id: parameter }), render: renderBoolean },
  'binding-rule.list': {
    input: ({ query, page }) => ({ authMethod: textOf(query, 'authmethod'), page }),
    render: renderBindingRule,
  },

  'namespace.create': {
    input: ({ body = {} }) => ({ draft: namespaceDraftOf(body) }),
    render: renderNamespace,
  },
  'namespace.read': { input: ({ parameter }) => ({ name: parameter }), render: renderNamespace },
  'namespace.update': {
    input: ({ parameter, body = {} }) => {
      requireSameAddress('Namespace Name', { path: parameter, body: body.Name });
      return { name: parameter, draft: namespaceDraftOf(body) };
    },
    render: renderNamespace,
  },
  'namespace.delete': { input: ({ parameter }) => ({ name: parameter }), render: renderBoolean },
  'namespace.list': { input: ({ page }) => ({ page }), render: renderNamespace },

  'templated-policy.list': { input: nothing, render: renderTemplates },
  'templated-policy.read': {
    input: ({ parameter }) => ({ name: parameter }),
    render: renderTemplate,
  },
  'templated-policy.preview': {
    input: ({ parameter, body }) => ({ name: parameter, variables: { name: body?.name } }),
    render: renderPolicy,
  },

  login: { input: loginOf, render: renderToken },
  'explain-login': { input: loginOf, render: renderLoginExplanation },
  logout: { input: nothing, render: renderBoolean },
  'oidc.auth-url': {
    input: ({ body = {} }) => ({
      authMethod: body.AuthMethod ?? '',
      redirectUri: body.RedirectURI ?? '',
      clientNonce: body.ClientNonce ?? '',
      meta: body.Meta ?? {},
      namespace: body.Namespace,
    }),
    render: ({ authUrl }) => `{"AuthURL":${quote(authUrl)}}`,
  },
  'oidc.callback': { input: callbackOf, render: renderToken },
  'oidc.explain': { input: callbackOf, render: renderLoginExplanation },

  authorize: { input: questionsOf, render: renderAuthorizations },
  'token.authorize': {
    input: (given) => ({ accessorId: given.parameter, ...questionsOf(given) }),
    render: renderAuthorizations,
  },
  'replication.status': { input: nothing, render: renderReplication },
  'datacenter.remove': { input: datacenterNamed, render: renderBoolean },
  'datacenter.allow': { input: datacenterNamed, render: renderBoolean },
};
