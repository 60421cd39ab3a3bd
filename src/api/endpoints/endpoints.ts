// Every endpoint that is an operation of the service, by the name of the operation.

import type { Static, TSchema } from 'typebox';
import { AUTH_METHOD_ENDPOINTS, BINDING_RULE_ENDPOINTS } from './endpoints-auth-method.ts';
import { DATACENTER_ENDPOINTS } from './endpoints-datacenter.ts';
import { NAMESPACE_ENDPOINTS, OTHER_ENDPOINTS } from './endpoints-namespace.ts';
import { POLICY_ENDPOINTS, ROLE_ENDPOINTS, TEMPLATE_ENDPOINTS } from './endpoints-policy.ts';
import { TOKEN_ENDPOINTS } from './endpoints-token.ts';

export const ENDPOINTS = {
  ...TOKEN_ENDPOINTS,
  ...POLICY_ENDPOINTS,
  ...ROLE_ENDPOINTS,
  ...TEMPLATE_ENDPOINTS,
  ...AUTH_METHOD_ENDPOINTS,
  ...BINDING_RULE_ENDPOINTS,
  ...NAMESPACE_ENDPOINTS,
  ...OTHER_ENDPOINTS,
  ...DATACENTER_ENDPOINTS,
};

export type EndpointName = keyof typeof ENDPOINTS;
/** What a client sends to an endpoint. */
export type EndpointInput<Name extends EndpointName> = (typeof ENDPOINTS)[Name] extends {
  readonly body: { readonly schema: infer Schema };
}
  ? Schema extends TSchema
    ? Static<Schema>
    : never
  : undefined;
