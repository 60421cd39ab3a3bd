// Service identities, node identities and templated policies: shorthands that expand to a synthetic
// policy. built-in/templates.ts has the catalogue, built-in/synthetic-policy.ts the expansion.

export interface ServiceIdentity {
  readonly serviceName: string;
  /** Empty: valid in all datacenters, also future ones. Sorted. */
  readonly datacenters: readonly string[];
}

export interface NodeIdentity {
  readonly nodeName: string;
  readonly datacenter: string;
}

export interface TemplatedPolicy {
  readonly templateId: string;
  readonly templateName: string;
  /** The one variable that templates know; undefined where none was given. */
  readonly variables: { readonly name: string } | undefined;
  /** Empty: valid in all datacenters. Sorted. */
  readonly datacenters: readonly string[];
}

/** All that a token or a role may have of them. */
export interface Identities {
  readonly serviceIdentities: readonly ServiceIdentity[];
  readonly nodeIdentities: readonly NodeIdentity[];
  readonly templatedPolicies: readonly TemplatedPolicy[];
}
