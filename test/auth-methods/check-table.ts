// Configurations of auth methods by the table, and what a cluster gives to service accounts.

import type { AuthMethod, AuthMethodType } from '../../src/acl/auth-method.ts';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import { authMethod, testSurroundings } from './loopback.ts';

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
/** Nothing here checks its signature: the cluster does. */
export const jwt = (name: string) =>
  `${encoded({ alg: 'RS256' })}.${encoded({ sub: name })}.c2lnbmF0dXJl`;

export async function checkTable(
  type: AuthMethodType,
  table: readonly (readonly [AuthMethod['config'], string | RegExp])[],
  t: Pick<typeof import('tap').default, 'rejects'>,
): Promise<void> {
  const { types } = createAuthMethods(testSurroundings());
  for (const [config, text] of table) {
    const message = typeof text === 'string' ? `Invalid Auth Method: ${text}` : text;
    const check = types[type].checkConfig(authMethod(type, config));
    await t.rejects(check, { code: 'invalid', message }, String(text));
  }
}
