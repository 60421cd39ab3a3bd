// Why a login is granted or refused, told to whoever may read the auth method: the steps of a login, in their order,
// and nothing is made of them (clients.md 4 G).

import type { AuthMethod } from '../../acl/auth-method.ts';
import { AclError } from '../../acl/error.ts';
import { formatDuration } from '../../acl/values/duration.ts';
import type { Identity } from '../../auth-methods/identity.ts';
import {
  attempt,
  type Binding,
  grantOf,
  type JudgedRule,
  type LoginGrant,
  loginSteps,
  type Place,
} from '../../auth-methods/login.ts';
import { excerpt } from '../../rules/source-text.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { requireAcl } from '../rights/permissions.ts';
import { namespaceOf } from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';
import type {
  AttributeView,
  ExplainedRuleView,
  LoginExplanationView,
} from './explanation-views.ts';
import {
  inputOf,
  type Login,
  requireLoginMethod,
  requireShortMeta,
  requireUnchanged,
  tokenTtlNs,
} from './login.ts';
import { finishAtProvider, takePending } from './oidc-login.ts';

/** Why a login is refused is told. Rejects with 'permission-denied' without `acl:read` where the auth method is. */
export async function explainLogin(
  service: Service,
  input: OperationInput<'explain-login'>,
  request: Request,
): Promise<OperationOutput<'explain-login'>> {
  requireShortMeta(input.meta);
  const method = requireReadableMethod(service, request, input);
  const { types } = service.authMethods;
  const identity = await refusalOr(types[method.type].validate(method, input.bearerToken));
  requireReadableMethod(service, request, input);
  const told = { method, meta: input.meta, flow: 'login' } as const;
  return explanationOf(service, told, identity, request);
}

/** The same of a login through an OpenID provider, whose state is used up by it. */
export async function explainOidc(
  service: Service,
  input: OperationInput<'oidc.explain'>,
  request: Request,
): Promise<OperationOutput<'oidc.explain'>> {
  const method = requireReadableMethod(service, request, input);
  const pending = await takePending(service, input, request);
  const answer = finishAtProvider(service, method, pending, input);
  // Without its state nothing is known of the login: an earlier try of this very call may have used that up.
  const finished = await (pending === undefined ? answer : refusalOr(answer));
  requireReadableMethod(service, request, input);
  const isRefused = finished instanceof AclError;
  const told = { method, meta: isRefused ? {} : finished.meta, flow: 'oidc' } as const;
  return explanationOf(service, told, isRefused ? finished : finished.identity, request);
}

/** Asked once more when the provider has answered: what is told is what is here then, and to whom is judged by then. */
function requireReadableMethod(
  service: Service,
  request: Request,
  wanted: { readonly authMethod: string; readonly namespace: string | undefined },
): AuthMethod {
  const caller = service.callers.resolve(request.call.secret);
  const body = { kind: 'Login', namespace: wanted.namespace } as const;
  requireAcl(caller, 'read', namespaceOf(service, request, undefined, body).name);
  return requireLoginMethod(service, request, wanted);
}

/** What a login is refused for is a result here; a provider that cannot be reached is none. */
async function refusalOr<T>(action: Promise<T>): Promise<T | AclError> {
  try {
    return await action;
  } catch (error) {
    if (error instanceof AclError && error.code === 'login-refused') return error;
    throw error;
  }
}

function explanationOf(
  service: Service,
  login: Omit<Login, 'identity'>,
  identity: Identity | AclError,
  request: Request,
): LoginExplanationView {
  if (identity instanceof AclError) {
    return { ...NOTHING, summary: `Refused by the auth method: ${excerpt(identity.message)}.` };
  }
  const change = attempt(() => requireUnchanged(service, login.method));
  if (change instanceof AclError) return { ...NOTHING, summary: refusalText(change) };
  const attributes = attributesOf(identity);
  const input = inputOf(service, { ...login, identity }, request);
  const steps = loginSteps(input);
  const place = attempt(() => steps.place());
  if (place instanceof AclError) {
    return { ...NOTHING, attributes, summary: refusalText(place) };
  }
  const known = { ...NOTHING, attributes, ...placeViewOf(login.method, place) };
  const rules: ExplainedRuleView[] = [];
  const told = { ...known, rules };
  const bound: Binding[] = [];
  for (const judged of steps.judgedRules(place.namespace)) {
    const { rule, outcome } = judged;
    rules.push(ruleViewOf(judged));
    if (outcome instanceof AclError) {
      const summary = `Refused by binding rule ${rule.id}: ${excerpt(outcome.message)}.`;
      return { ...told, summary };
    }
    if (outcome.kind === 'bound') bound.push(outcome);
  }
  if (bound.length === 0) return { ...told, summary: nothingBound(rules.length) };
  const grant = attempt(() => grantOf(input, place.namespace, bound));
  if (grant instanceof AclError) return { ...told, summary: refusalText(grant) };
  const summary = `Granted: ${bound.length} of ${rules.length} binding rules bind something.`;
  return { ...told, granted: true, summary, token: tokenViewOf(service, login.method, grant) };
}

function nothingBound(ruleCount: number): string {
  if (ruleCount === 0) return 'Refused: the auth method has no binding rule.';
  return `Refused: none of its ${ruleCount} binding rules binds anything.`;
}

function refusalText({ message }: AclError): string {
  return `Refused: ${excerpt(message)}.`;
}

const NOTHING: Omit<LoginExplanationView, 'summary'> = {
  granted: false,
  attributes: undefined,
  namespace: undefined,
  namespaceSelector: undefined,
  rules: [],
  token: undefined,
};

function attributesOf({ selectable }: Identity): readonly AttributeView[] {
  const { strings, lists } = selectable;
  return [
    ...[...strings].map(([name, value]) => ({ name, value })),
    ...[...lists].map(([name, value]) => ({ name, value })),
  ];
}

function placeViewOf(
  { namespaceRules }: AuthMethod,
  { namespace, rule }: Place,
): Pick<LoginExplanationView, 'namespace' | 'namespaceSelector'> {
  const selector = rule === undefined ? undefined : namespaceRules[rule]?.selector;
  return { namespace, namespaceSelector: selector && excerpt(selector) };
}

function ruleViewOf({ rule, outcome }: JudgedRule): ExplainedRuleView {
  const { id, bindType, bindName, selector } = rule;
  const what = { id, bindType, bindName: excerpt(bindName), selector: excerpt(selector) };
  if (outcome instanceof AclError) {
    return { ...what, result: 'refused', name: undefined, why: excerpt(outcome.message) };
  }
  const name = 'name' in outcome ? excerpt(outcome.name) : undefined;
  return { ...what, result: outcome.kind, name, why: WHY[outcome.kind] };
}

const WHY: Readonly<Record<Exclude<ExplainedRuleView['result'], 'refused'>, string>> = {
  bound: 'its selector matches',
  'not-selected': 'its selector does not match',
  'selector-invalid': 'its selector does not compile for this auth method, so it matches nobody',
  'target-missing': 'there is no role or policy of that name that it could bind',
};

function tokenViewOf(
  { names, settings }: Service,
  method: AuthMethod,
  grant: LoginGrant,
): LoginExplanationView['token'] {
  const { description, serviceIdentities, nodeIdentities, templatedPolicies } = grant;
  const ttlNs = tokenTtlNs(method, settings.tokenLimits);
  return {
    description,
    policies: names.policies(grant.policies),
    roles: names.roles(grant.roles),
    serviceIdentities,
    nodeIdentities,
    templatedPolicies,
    local: method.tokenLocality !== 'global',
    expirationTtl: method.maxTokenTtlNs === 0n ? undefined : formatDuration(ttlNs),
  };
}
