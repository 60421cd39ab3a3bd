// Refusals, asked for in both dialects: the text is the same, the status is each dialect's own.

import {
  answers,
  Client,
  type Fields,
  type NodeUnderTest,
} from '../support/running/running-node.ts';

/** The statuses of a refusal: for clients of the `consul` dialect, and for those of `service`. */
export type Statuses = readonly [consul: number, service: number];

export const MALFORMED: Statuses = [400, 400];
export const DENIED: Statuses = [403, 403];
export const MISSING: Statuses = [404, 404];
/** Against a rule of the domain: bounds, names, rules, immutable fields. */
export const INVALID: Statuses = [500, 400];
export const DUPLICATE: Statuses = [500, 409];
/** A token that a read or a clone asks for. */
export const TOKEN_MISSING: Statuses = [403, 404];
/** A templated policy that is read or previewed. */
export const TEMPLATE_MISSING: Statuses = [400, 404];
/** What an update names. */
export const TARGET_MISSING: Statuses = [500, 404];

export interface Refusal {
  /** Method and path below `/v1`, such as `PUT /acl/token`. */
  readonly ask: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly statuses: Statuses;
  readonly text: string | RegExp;
}

/** Rows of one request with different bodies, all with the same statuses. */
export function rows(
  ask: string,
  statuses: Statuses,
  cases: readonly (readonly [body: Fields, text: string | RegExp])[],
): readonly Refusal[] {
  return cases.map(([body, text]) => ({ ask, body, statuses, text }));
}

/** Asks for each refusal in both dialects. `secret` as for a Client. */
export async function refuses(
  t: Parameters<typeof answers>[0],
  node: NodeUnderTest,
  refusals: readonly Refusal[],
  secret?: string,
): Promise<void> {
  const consul = new Client(node, 'X-Consul-', secret);
  const service = new Client(node, 'X-Service-', secret);
  for (const { ask, statuses, text, ...sent } of refusals) {
    const [method = '', path = ''] = ask.split(' ');
    answers(t, await consul.send(method, path, sent), statuses[0], text);
    answers(t, await service.send(method, path, sent), statuses[1], text);
  }
}
