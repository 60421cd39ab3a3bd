// Whether the token that an operation makes or changes lives in one datacenter alone: what placement
// must know about a write before it runs.

import type { Call } from '../call.ts';
import { loginMethodOf } from '../logins/login.ts';
import type { OperationInput, OperationName } from '../operations.ts';
import type { Service } from '../service.ts';

type Locality<Name extends OperationName> = (
  service: Service,
  input: OperationInput<Name>,
  call: Call,
) => boolean | undefined;

const LOCALITIES: { readonly [Name in OperationName]?: Locality<Name> } = {
  'token.create': (_service, { draft }) => draft.local ?? false,
  'token.update': ({ view }, { accessorId }) => view.token(accessorId)?.local,
  'token.clone': ({ view }, { accessorId }) => view.token(accessorId)?.local,
  'token.delete': ({ view }, { accessorId }) => view.token(accessorId)?.local,
  logout: ({ view }, _input, { secret }) =>
    secret === undefined ? undefined : view.tokenBySecret(secret)?.local,
  login: loginLocality,
  'explain-login': loginLocality,
  'oidc.auth-url': loginLocality,
  'oidc.callback': loginLocality,
  'oidc.explain': loginLocality,
};

/** Undefined where it is not known here, or where no token is concerned. */
export function tokenLocalityOf<Name extends OperationName>(
  service: Service,
  name: Name,
  input: OperationInput<Name>,
  call: Call,
): boolean | undefined {
  return LOCALITIES[name]?.(service, input, call);
}

function loginLocality(
  service: Service,
  input: { readonly authMethod: string; readonly namespace: string | undefined },
  call: Call,
): boolean | undefined {
  const method = loginMethodOf(service, { call }, input);
  return method && method.tokenLocality !== 'global';
}
