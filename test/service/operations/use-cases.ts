// What tests of the use cases share: objects to make, and questions to ask.

import type { OperationInput } from '../../../src/service/operations.ts';
import { allOf, type Harness } from '../harness.ts';

export const NOBODY = 'ffffffff-0000-4000-8000-000000000000';

export const NO_FILTER = {
  policy: undefined,
  role: undefined,
  serviceName: undefined,
  authMethod: undefined,
  authMethodNamespace: undefined,
  page: {},
};

export function tokenList(
  harness: Harness,
  input: Partial<OperationInput<'token.list'>> = {},
  call: Parameters<Harness['run']>[2] = {},
) {
  return harness.run('token.list', { ...NO_FILTER, ...input }, call);
}

export async function descriptions(running: ReturnType<typeof tokenList>): Promise<string[]> {
  return (await allOf(await running)).map(({ token }) => token.description).sort(byText);
}

export function byText(left: string, right: string): number {
  return left < right ? -1 : 1;
}

export function newMethod(harness: Harness, name: string, more: object = {}) {
  return harness.run('auth-method.create', {
    draft: { name, type: 'jwt', config: {}, ...more },
  });
}

export function bind(harness: Harness, authMethod: string, bindType: string, bindName: string) {
  return harness.run('binding-rule.create', { draft: { authMethod, bindType, bindName } });
}

export async function logIn(
  harness: Harness,
  authMethod: string,
  claims: object = { name: 'web' },
) {
  const input = { authMethod, bearerToken: JSON.stringify(claims), meta: {}, namespace: undefined };
  return (await harness.run('login', input, { secret: undefined })).value.token;
}
