// Checks of identity lists and their normal form, for tokens and roles alike: one entry a name, in an
// order that makes equal lists equal, so that the content hash depends on the meaning alone. The
// texts are compatibility 3.4 and 4.2.

import { type TemplateName, templateNamed, templateProblem } from '../built-in/templates.ts';
import { invalid } from '../error.ts';
import type { Identities, NodeIdentity, ServiceIdentity, TemplatedPolicy } from '../identities.ts';
import { isIdentityName } from '../values/names.ts';
import type { NodeIdentityDraft, ServiceIdentityDraft, TemplatedPolicyDraft } from './drafts.ts';

/** Who bears the identities. A local token may not name datacenters: it has but its own. */
export type IdentityOwner = 'global token' | 'local token' | 'role';

export interface IdentityListsDraft {
  readonly serviceIdentities?: readonly ServiceIdentityDraft[] | undefined;
  readonly nodeIdentities?: readonly NodeIdentityDraft[] | undefined;
  readonly templatedPolicies?: readonly TemplatedPolicyDraft[] | undefined;
}

/** All three lists checked in their prescribed order and in normal form. */
export function identityLists(draft: IdentityListsDraft, owner: IdentityOwner): Identities {
  return {
    serviceIdentities: serviceIdentities(draft.serviceIdentities ?? [], owner),
    nodeIdentities: nodeIdentities(draft.nodeIdentities ?? [], owner),
    templatedPolicies: templatedPolicies(draft.templatedPolicies ?? [], owner),
  };
}

/** One identity a service, sorted by name; datacenters united, and none at all wins over some. */
function serviceIdentities(
  drafts: readonly ServiceIdentityDraft[],
  owner: IdentityOwner,
): readonly ServiceIdentity[] {
  const unionByName = new Map<string, DatacenterUnion>();
  for (const draft of drafts) {
    const serviceName = requireServiceName(draft, owner);
    const union = unionByName.get(serviceName) ?? new DatacenterUnion();
    union.add(draft.datacenters ?? []);
    unionByName.set(serviceName, union);
  }
  return [...unionByName]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([serviceName, union]) => ({ serviceName, datacenters: union.sorted() }));
}

function requireServiceName(draft: ServiceIdentityDraft, owner: IdentityOwner): string {
  const name = draft.serviceName ?? '';
  if (name === '') {
    throw invalid(`Service identity is missing the service name field on this ${nounOf(owner)}`);
  }
  if (owner === 'local token' && (draft.datacenters ?? []).length > 0) {
    throw invalid(
      `Service identity "${name}" cannot specify a list of datacenters on a local token`,
    );
  }
  if (!isIdentityName(name)) {
    throw invalid(
      `Service identity "${name}" has an invalid name. ` +
        "Only lowercase alphanumeric characters, '-' and '_' are allowed",
    );
  }
  return name;
}

/** Without repetitions, in the order they were given. */
function nodeIdentities(
  drafts: readonly NodeIdentityDraft[],
  owner: IdentityOwner,
): readonly NodeIdentity[] {
  const identityByKey = new Map<string, NodeIdentity>();
  for (const draft of drafts) {
    const identity = requireNodeIdentity(draft, owner);
    const key = JSON.stringify([identity.nodeName, identity.datacenter]);
    identityByKey.set(key, identity);
  }
  return [...identityByKey.values()];
}

function requireNodeIdentity(draft: NodeIdentityDraft, owner: IdentityOwner): NodeIdentity {
  const { nodeName = '', datacenter = '' } = draft;
  if (nodeName === '') {
    throw invalid(`Node identity is missing the node name field on this ${nounOf(owner)}`);
  }
  if (datacenter === '') {
    throw invalid(`Node identity is missing the datacenter field on this ${nounOf(owner)}`);
  }
  if (!isIdentityName(nodeName)) {
    throw invalid(
      "Node identity has an invalid name. Only lowercase alphanumeric characters, '-' and '_' are allowed",
    );
  }
  return { nodeName, datacenter };
}

/** One entry a template and value, in the order they were given; datacenters as for services. */
function templatedPolicies(
  drafts: readonly TemplatedPolicyDraft[],
  owner: IdentityOwner,
): readonly TemplatedPolicy[] {
  const entryByKey = new Map<string, { policy: TemplatedPolicy; union: DatacenterUnion }>();
  for (const draft of drafts) {
    const policy = requireTemplatedPolicy(draft, owner);
    const key = JSON.stringify([policy.templateName, policy.variables?.name ?? '']);
    const entry = entryByKey.get(key) ?? { policy, union: new DatacenterUnion() };
    entry.union.add(policy.datacenters);
    entryByKey.set(key, entry);
  }
  return [...entryByKey.values()].map(({ policy, union }) => ({
    ...policy,
    datacenters: union.sorted(),
  }));
}

function requireTemplatedPolicy(
  draft: TemplatedPolicyDraft,
  owner: IdentityOwner,
): TemplatedPolicy {
  const name = draft.templateName ?? '';
  if (name === '') {
    throw invalid(`templated policy is missing the template name field on this ${nounOf(owner)}`);
  }
  const template = templateNamed(name);
  if (template === undefined) throw invalid(unknownTemplateText(name, owner));
  requireVariables(template.templateName, draft, owner);
  const variable = draft.variables?.name ?? '';
  return {
    templateId: template.templateId,
    templateName: template.templateName,
    variables: variable === '' ? undefined : { name: variable },
    datacenters: draft.datacenters ?? [],
  };
}

function unknownTemplateText(name: string, owner: IdentityOwner): string {
  return owner === 'role'
    ? `templated policy with an invalid templated name: ${name} for this role`
    : `no such ACL templated policy with Name "${name}"`;
}

function requireVariables(
  templateName: TemplateName,
  draft: TemplatedPolicyDraft,
  owner: IdentityOwner,
): void {
  const problem = templateProblem(templateName, draft.variables);
  if (problem === undefined) return;
  throw invalid(
    owner === 'role'
      ? `encountered role with invalid templated policy: ${problem}`
      : `validation error for templated policy "${templateName}": ${problem}`,
  );
}

/** Lists of datacenters as one. An empty list means every datacenter, so nothing can add to it. */
class DatacenterUnion {
  readonly #names = new Set<string>();
  #isEvery = false;

  add(datacenters: readonly string[]): void {
    if (datacenters.length === 0) this.#isEvery = true;
    for (const name of datacenters) this.#names.add(name);
  }

  /** Empty for every one. To be asked once: a body may hold very many lists. */
  sorted(): readonly string[] {
    return this.#isEvery ? [] : [...this.#names].sort();
  }
}

function nounOf(owner: IdentityOwner): string {
  return owner === 'role' ? 'role' : 'token';
}
