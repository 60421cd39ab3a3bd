// The operations on the catalogue of templated policies. It is part of the program, so there is no
// state to read and nothing to wait for.

import { previewTemplate } from '../../acl/built-in/synthetic-policy.ts';
import { TEMPLATES, type Template, templateNamed } from '../../acl/built-in/templates.ts';
import { unknownTemplate } from '../../acl/refusals.ts';
import type { ShownTemplate } from '../../api/render/shown.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { requireAcl } from '../rights/permissions.ts';
import { namespaceOf } from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';

export async function listTemplates(
  service: Service,
  _input: OperationInput<'templated-policy.list'>,
  request: Request,
): Promise<OperationOutput<'templated-policy.list'>> {
  const caller = service.callers.resolve(request.call.secret);
  requireAcl(caller, 'read', namespaceOf(service, request, caller).name);
  return TEMPLATES.map(viewOf);
}

export async function readTemplate(
  service: Service,
  { name }: OperationInput<'templated-policy.read'>,
  request: Request,
): Promise<OperationOutput<'templated-policy.read'>> {
  const caller = service.callers.resolve(request.call.secret);
  requireAcl(caller, 'read', namespaceOf(service, request, caller).name);
  const template = templateNamed(name);
  if (template === undefined) throw unknownTemplate(name);
  return viewOf(template);
}

export async function previewTemplatedPolicy(
  service: Service,
  { name, variables }: OperationInput<'templated-policy.preview'>,
  request: Request,
): Promise<OperationOutput<'templated-policy.preview'>> {
  const caller = service.callers.resolve(request.call.secret);
  const namespace = namespaceOf(service, request, caller).name;
  requireAcl(caller, 'read', namespace);
  return { kind: 'policy', policy: previewTemplate(name, variables, namespace) };
}

function viewOf({ templateName, schema, template, description }: Template): ShownTemplate {
  return { templateName, schema, template, description };
}
