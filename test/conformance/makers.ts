// Objects for tests to work on, each with a name that no other has. What a test says about an object
// wins over what is filled in here.

import type { Client, Fields } from '../support/running/running-node.ts';

let serial = 0;

/** A name that no other thing of this test file has. */
export function fresh(what: string): string {
  serial += 1;
  return `${what}-${serial}`;
}

/** A link as answers show it. */
export function linkTo({ ID, Name }: Fields): Fields {
  return { ID, Name };
}

export function sorted(texts: readonly string[]): readonly string[] {
  return [...texts].sort((left, right) => (left < right ? -1 : 1));
}

export async function mayRead(client: Client, item: Fields): Promise<unknown> {
  const { list } = await client.post('/internal/acl/authorize', [{ Access: 'read', ...item }]);
  return list[0]?.Allow;
}

export interface Makers {
  /** PUT below `/acl`; the answer must be 200. */
  make(path: string, body?: Fields): Promise<Fields>;
  newPolicy(body?: Fields): Promise<Fields>;
  newRole(body?: Fields): Promise<Fields>;
  newToken(body?: Fields): Promise<Fields>;
  /** A `jwt` method. */
  newMethod(body?: Fields): Promise<Fields>;
  /** Its name. */
  newNamespace(body?: Fields): Promise<string>;
  /** A client whose token has these rules, from a policy in its own namespace. */
  callerWith(rules: string, namespace?: string): Promise<Client>;
  /** Binds to the service `web`. */
  newRule(body: Fields & { readonly AuthMethod: unknown }): Promise<Fields>;
}

/** What `client` makes; `jwtConfig` is the Config of its auth methods. */
export function makersOn(client: Client, jwtConfig: Fields): Makers {
  const make = (path: string, body: Fields = {}): Promise<Fields> =>
    client.made('PUT', `/acl/${path}`, body);
  const method = { Type: 'jwt', Config: jwtConfig };
  const rule = { BindType: 'service', BindName: 'web' };
  const newPolicy: Makers['newPolicy'] = (body) =>
    make('policy', { Name: fresh('policy'), ...body });
  const newToken: Makers['newToken'] = (body) => make('token', body);
  return {
    make,
    newPolicy,
    newRole: (body) => make('role', { Name: fresh('role'), ...body }),
    newToken,
    newNamespace: async (body) => {
      const { Name } = await client.made('PUT', '/namespace', { Name: fresh('ns'), ...body });
      return String(Name);
    },
    callerWith: async (Rules, Namespace = 'default') => {
      const { ID } = await newPolicy({ Rules, Namespace });
      return client.as((await newToken({ Policies: [{ ID }], Namespace })).SecretID);
    },
    newMethod: (body) => make('auth-method', { Name: fresh('method'), ...method, ...body }),
    newRule: (body) => make('binding-rule', { ...rule, ...body }),
  };
}
