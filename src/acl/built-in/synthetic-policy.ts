// Synthetic policies: what identities and templated policies expand to. They are never stored; their
// ids are made from their rules, so equal rules have one id wherever they come from. Two of one id may
// still differ in datacenters and namespace: whoever caches by id must add those to the key.

import { AclError } from '../error.ts';
import { policyHash } from '../hash.ts';
import type { NodeIdentity, ServiceIdentity, TemplatedPolicy } from '../identities.ts';
import type { NamespaceName, PolicyId } from '../ids.ts';
import type { Policy } from '../policy.ts';
import {
  renderTemplate,
  type TemplateName,
  type TemplateVariables,
  templateNamed,
  templateProblem,
} from './templates.ts';

/** What the ids of synthetic policies end in. */
const ID_SUFFIX = '6c62272e07bb014262b821756295c58d';

/** The policy of `builtin/service` in the identity's datacenters. */
export function policyOfServiceIdentity(
  identity: ServiceIdentity,
  namespace: NamespaceName,
): Policy {
  const { serviceName, datacenters } = identity;
  return syntheticPolicy('builtin/service', serviceName, { datacenters, namespace });
}

/** The policy of `builtin/node`, valid in the identity's datacenter alone. */
export function policyOfNodeIdentity(identity: NodeIdentity, namespace: NamespaceName): Policy {
  const datacenters = [identity.datacenter];
  return syntheticPolicy('builtin/node', identity.nodeName, { datacenters, namespace });
}

/** The policy of a stored templated policy; undefined when no template of its name exists any more. */
export function policyOfTemplatedPolicy(
  templated: TemplatedPolicy,
  namespace: NamespaceName,
): Policy | undefined {
  const template = templateNamed(templated.templateName);
  if (template === undefined) return undefined;
  const { variables, datacenters } = templated;
  return syntheticPolicy(template.templateName, variables?.name ?? '', { datacenters, namespace });
}

/** The policy that a templated policy would become (compatibility 4.6). */
export function previewTemplate(
  name: string,
  variables: TemplateVariables,
  namespace: NamespaceName,
): Policy {
  const template = templateNamed(name);
  if (template === undefined) {
    throw new AclError('template-not-found', `templated policy "${name}" does not exist`);
  }
  const problem = templateProblem(template.templateName, variables);
  if (problem !== undefined) {
    throw new AclError('malformed', `validation error for templated policy: "${name}": ${problem}`);
  }
  return syntheticPolicy(template.templateName, variables?.name ?? '', {
    datacenters: [],
    namespace,
  });
}

function syntheticPolicy(
  templateName: TemplateName,
  variable: string,
  where: Pick<Policy, 'datacenters' | 'namespace'>,
): Policy {
  const rules = renderTemplate(templateName, variable);
  const id = Buffer.from(rules, 'utf8').toString('hex') + ID_SUFFIX;
  const content = {
    name: `synthetic-policy-${id}`,
    description: `synthetic policy generated from templated policy: ${templateName}`,
    rules,
    datacenters: where.datacenters,
  };
  return {
    id: id as PolicyId,
    ...content,
    namespace: where.namespace,
    hash: policyHash(content),
    createIndex: 0,
    modifyIndex: 0,
  };
}
