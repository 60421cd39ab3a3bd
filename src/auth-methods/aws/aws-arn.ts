// Amazon resource names of users and roles. An assumed role is spoken of by its role; the path of an
// entity is not part of its canonical name, because a session's ARN does not tell it.

export interface Principal {
  readonly partition: string;
  readonly accountId: string;
  readonly kind: 'role' | 'user';
  /** The last part, without path. */
  readonly name: string;
  /** `arn:aws:iam::‹account›:role/‹name›` */
  readonly canonicalArn: string;
}

const ACCOUNT = /^[0-9]{12}$/;
const PARTITION = /^aws(?:-[a-z]+)*$/;
/** What IAM allows in names and paths. */
const RESOURCE = /^[\w+=,.@/-]+$/;

/** Reads the ARN of a user, a role or a session of a role; undefined for anything else. */
export function principalOf(arn: string): Principal | undefined {
  const parts = arn.split(':');
  const [prefix, partition = '', service, region, accountId = '', resource = ''] = parts;
  if (parts.length !== 6 || prefix !== 'arn' || region !== '') return undefined;
  if (!PARTITION.test(partition) || !ACCOUNT.test(accountId) || !RESOURCE.test(resource)) {
    return undefined;
  }
  const [type = '', ...segments] = resource.split('/');
  const found = entityOf(service, type, segments);
  if (found === undefined || found.name === '') return undefined;
  const canonicalArn = `arn:${partition}:iam::${accountId}:${found.kind}/${found.name}`;
  return { ...found, partition, accountId, canonicalArn };
}

function entityOf(
  service: string | undefined,
  type: string,
  segments: readonly string[],
): Pick<Principal, 'kind' | 'name'> | undefined {
  if (service === 'sts' && type === 'assumed-role' && segments.length === 2) {
    return { kind: 'role', name: segments[0] ?? '' };
  }
  if (service === 'iam' && (type === 'role' || type === 'user')) {
    return { kind: type, name: segments.at(-1) ?? '' };
  }
  return undefined;
}

/**
 * Whether a configured ARN is one that can match: a role or user, or the start of one with a `*` at
 * its end that comes after the account, so that no wildcard reaches into another account.
 */
export function isBindableArn(arn: string): boolean {
  if (!arn.includes('*')) return principalOf(arn) !== undefined && !arn.includes(':sts:');
  return /^arn:aws(?:-[a-z]+)*:iam::[0-9]{12}:(?:|(?:role|user)\/[\w+=,.@/-]*)\*$/.test(arn);
}

/** Exact, or up to the `*` at the end of the configured ARN. */
export function matchesArn(bound: string, arn: string): boolean {
  return bound.endsWith('*') ? arn.startsWith(bound.slice(0, -1)) : arn === bound;
}
