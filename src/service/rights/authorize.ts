// Answers a batch of "may I?" for the token that is presented, or of "may it?" for one that is named by its
// accessor id, with the reasons on request. What is answered of a named token says no more than its policies
// and their rules do, which whoever may read the one may read as well.

import { must } from '../../../cluster/base/assert.ts';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { isExpired } from '../../acl/checks/token-expiry.ts';
import { type NamespaceName, requireLookupUuid } from '../../acl/ids.ts';
import { tokenExpired, tokenMissing } from '../../acl/refusals.ts';
import type { AccessQuery } from '../../authz/access-query.ts';
import type { Authorizer } from '../../authz/authorizer.ts';
import type { Explanation, OverruledRule } from '../../authz/explanation.ts';
import { parseAuthorizations } from '../../authz/parse-authorization.ts';
import { type Via, validInDatacenter } from '../../authz/policy-source.ts';
import { excerpt } from '../../rules/source-text.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import type { Request, Service } from '../service.ts';
import type { ExplanationView } from './authorization-types.ts';
import type { Caller } from './caller.ts';
import { linkedPolicies } from './linked-policies.ts';
import { requireAcl } from './permissions.ts';
import { namespaceNamed, selectNamespace } from './select-namespace.ts';

export function authorize(
  service: Service,
  { items, explain }: OperationInput<'authorize'>,
  { call }: Request,
): OperationOutput<'authorize'> {
  const caller = service.callers.resolve(call.secret);
  return answersFor(caller, { items, explain }, { service, call });
}

/** Rejects as the reading of that token does. */
export function authorizeToken(
  service: Service,
  { accessorId, items, explain }: OperationInput<'token.authorize'>,
  { call }: Request,
): OperationOutput<'token.authorize'> {
  const caller = service.callers.resolve(call.secret);
  // What is wrong with the question is told before anything that depends on whether there is such a token.
  const home = homeOf(service, call, caller);
  const token = service.view.token(accessorId);
  requireAcl(caller, 'read', token?.namespace ?? home);
  if (token === undefined) requireLookupUuid('token', accessorId);
  else if (isExpired(token, service.clock.wallMs())) throw tokenExpired('read');
  if (token === undefined || service.callers.isVoid(token)) throw tokenMissing();
  return answersFor(service.callers.holderOf(token), { items, explain }, { service, call });
}

function answersFor(
  caller: Caller,
  { items, explain }: OperationInput<'authorize'>,
  { service, call }: { readonly service: Service; readonly call: Request['call'] },
): OperationOutput<'authorize'> {
  const home = homeOf(service, call, caller);
  const { namespacesEnabled } = service.settings;
  // The whole batch is read first: its size, and one bad item, refuse all of it.
  const queries = parseAuthorizations(items, (namespace) =>
    namespacesEnabled ? (namespaceNamed(namespace) ?? home) : home,
  );
  const idle = idlePolicies(service, caller);
  return items.map((item, place) => {
    const { resource, access, segment, namespace } = item;
    const query = must(queries[place], 'a query of each item');
    const answer = explain
      ? explained(caller, query, idle)
      : { allow: caller.authorizer.decide(query) === 'allow', explanation: undefined };
    const { allow, explanation } = answer;
    // Where an item names none, it depends on the token: whoever asks why is told which one it was.
    const decidedIn = explain && namespacesEnabled ? query.namespace : namespace;
    return { resource, access, segment, namespace: decidedIn, allow, explanation };
  });
}

function explained(
  caller: Caller,
  query: AccessQuery,
  idle: SayIdle,
): { readonly allow: boolean; readonly explanation: ExplanationView } {
  const explanation = caller.authorizer.explain(query);
  return {
    allow: explanation.decision === 'allow',
    explanation: explanationViewOf(caller, explanation, idle),
  };
}

/** Says what a token has and what does not count in this datacenter; nothing where there is none. */
type SayIdle = () => string;

function idlePolicies({ view, settings }: Service, { token, authorizer }: Caller): SayIdle {
  const look = (): string => {
    const { own, defaults } = linkedPolicies(view, token);
    const idle = [...own, ...defaults].filter(
      ({ policy }) => !validInDatacenter(policy.datacenters, settings.datacenter),
    );
    const names = idle.map(({ policy, via }) => identityOf(via) ?? `policy "${policy.name}"`);
    return idleText([...new Set(names)]);
  };
  return () => {
    const text = idleTexts.get(authorizer) ?? look();
    idleTexts.set(authorizer, text);
    return text;
  };
}

/**
 * A token may have ten thousand policies, and each refusal by an agent asks for an explanation. An authorizer is made
 * anew when one of them changes.
 */
const idleTexts = new WeakMap<Authorizer, string>();

/** The namespace of items that name none. While namespaces are off, parameters are ignored here. */
function homeOf({ settings }: Service, call: Request['call'], caller: Caller): NamespaceName {
  const { token } = caller;
  if (!settings.namespacesEnabled) return token.namespace;
  return selectNamespace({ call, token, isEnabled: true }).name;
}

function explanationViewOf(
  { token }: Caller,
  explanation: Explanation,
  idle: SayIdle,
): ExplanationView {
  const { decision, reason, rule, overruled } = explanation;
  return {
    decision,
    summary: summaryOf(explanation, idle),
    // It is told with each item, and may have a mebibyte.
    token: {
      accessorId: token.accessorId,
      description: excerpt(token.description),
      namespace: token.namespace,
    },
    role: rule && roleOf(rule.via),
    identity: rule && identityOf(rule.via),
    policy: rule && { ...rule.policy },
    rule: rule && { text: rule.text, line: rule.line, column: rule.column },
    decidedBy: reason,
    overruled: overruled.map(({ witness, because }) => ({
      policy: witness.policy.name,
      rule: witness.text,
      why: WHY[because],
    })),
  };
}

const WHY: Readonly<Record<OverruledRule['because'], string>> = {
  precedence: 'a stronger level stands under the same name',
  'less-specific': 'a rule that fits the name more closely decides',
};

/** So many are told that do not count here. */
const IDLE_SHOWN = 4;

function summaryOf({ decision, reason, rule, isImplied }: Explanation, idle: SayIdle): string {
  const verb = decision === 'allow' ? 'Allowed' : 'Denied';
  if (rule === undefined) {
    return `${verb} by the default policy: no rule says anything about this.${idle()}`;
  }
  const where = `policy "${rule.policy.name}", line ${rule.line}`;
  const how = reason === 'namespace-default' ? ', a default of the namespace' : wayOf(rule.via);
  return `${verb} by ${where}${how}.${isImplied ? IMPLIED : ''}`;
}

/** Whoever reads a rule that lets them write would not understand why they may not. */
const IMPLIED =
  ' It says nothing of intentions: whoever may read or write the service may read them, and nobody may write them.';

/** Whoever finds the rule in a policy of the token would not understand the answer. */
function idleText(idle: readonly string[]): string {
  if (idle.length === 0) return '';
  const more = idle.length - IDLE_SHOWN;
  const rest = more > 0 ? `, and ${more} more` : '';
  return ` Not valid in this datacenter: ${idle.slice(0, IDLE_SHOWN).join(', ')}${rest}.`;
}

function wayOf(via: Via): string {
  const role = roleOf(via);
  const identity = identityOf(via);
  const parts = [
    ...(identity === undefined ? [] : [`made from ${identity}`]),
    ...(role === undefined ? [] : [`through role "${role.name}"`]),
  ];
  return parts.length === 0 ? '' : `, ${parts.join(' ')}`;
}

function roleOf(via: Via): ExplanationView['role'] {
  const role = via.kind === 'direct' ? undefined : via.role;
  return role && { id: role.id, name: role.name };
}

function identityOf(via: Via): string | undefined {
  switch (via.kind) {
    case 'service-identity':
      return `service ${via.serviceName}`;
    case 'node-identity':
      return `node ${via.nodeName}`;
    case 'templated-policy':
      return via.templateName;
    case 'direct':
    case 'role':
    case 'namespace-default':
      return undefined;
    default:
      return unreachable(via);
  }
}
