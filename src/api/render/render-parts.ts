// The pieces that several objects of the wire have in common: links, identities, the closing stamps.
// All are strings built by hand, because a list of tokens is the hottest thing that this server writes.

import type {
  Identities,
  NodeIdentity,
  ServiceIdentity,
  TemplatedPolicy,
} from '../../acl/identities.ts';
import { quote, quoteAll } from './quote.ts';
import type { ShownLink, WireStyle } from './shown.ts';

/** `[{"ID":…,"Name":…}]`. */
export function renderLinks(links: readonly ShownLink[]): string {
  let items = '';
  for (const link of links) {
    items += `${items === '' ? '' : ','}{"ID":"${link.id}","Name":${quote(link.name)}}`;
  }
  return `[${items}]`;
}

/** `,"‹name›":‹links›`, or nothing without links. */
export function optionalLinks(name: string, links: readonly ShownLink[]): string {
  return links.length === 0 ? '' : `,"${name}":${renderLinks(links)}`;
}

/** `,"‹name›":"‹text›"`, or nothing without text. */
export function optionalText(name: string, text: string | undefined): string {
  return text === undefined || text === '' ? '' : `,"${name}":${quote(text)}`;
}

/** The three kinds of identity of a token or a role, each left out when empty. */
export function renderIdentities(holder: Identities): string {
  let out = '';
  if (holder.serviceIdentities.length > 0) {
    out += `,"ServiceIdentities":[${holder.serviceIdentities.map(serviceIdentity).join()}]`;
  }
  if (holder.nodeIdentities.length > 0) {
    out += `,"NodeIdentities":[${holder.nodeIdentities.map(nodeIdentity).join()}]`;
  }
  if (holder.templatedPolicies.length > 0) {
    out += `,"TemplatedPolicies":[${holder.templatedPolicies.map(templatedPolicy).join()}]`;
  }
  return out;
}

function serviceIdentity(identity: ServiceIdentity): string {
  return `{"ServiceName":${quote(identity.serviceName)}${optionalDatacenters(identity.datacenters)}}`;
}

function nodeIdentity(identity: NodeIdentity): string {
  return `{"NodeName":${quote(identity.nodeName)},"Datacenter":${quote(identity.datacenter)}}`;
}

function templatedPolicy(policy: TemplatedPolicy): string {
  const head = `{"TemplateID":${quote(policy.templateId)},"TemplateName":${quote(policy.templateName)}`;
  const { variables } = policy;
  const name =
    variables === undefined || variables.name === '' ? '' : `"name":${quote(variables.name)}`;
  const shown = variables === undefined ? '' : `,"TemplateVariables":{${name}}`;
  return `${head}${shown}${optionalDatacenters(policy.datacenters)}}`;
}

export function optionalDatacenters(datacenters: readonly string[]): string {
  return datacenters.length === 0 ? '' : `,"Datacenters":${quoteAll(datacenters)}`;
}

/** Lists show the absence of datacenters as null. */
export function nullableDatacenters(datacenters: readonly string[]): string {
  return `,"Datacenters":${datacenters.length === 0 ? 'null' : quoteAll(datacenters)}`;
}

/** Synthetic policies have no hash. */
export function renderHash(hash: string): string {
  return hash === '' ? ',"Hash":null' : `,"Hash":"${hash}"`;
}

interface Stamped {
  readonly createIndex: number;
  readonly modifyIndex: number;
}

/** The indexes that end an object, and its namespace where namespaces are enabled. */
export function renderEnd(
  stamped: Stamped & { readonly namespace: string },
  style: WireStyle,
): string {
  const namespace = style.namespaces ? `,"Namespace":${quote(stamped.namespace)}` : '';
  return `${renderStamps(stamped)}${namespace}}`;
}

export function renderStamps(stamped: Stamped): string {
  return `,"CreateIndex":${stamped.createIndex},"ModifyIndex":${stamped.modifyIndex}`;
}
