// What another datacenter gets to see of an answer: plain data, lists as one page, and no secret that
// its reader is not shown. The secret of a local token is shown to no other datacenter. Whoever reads
// their own token there has presented it here, and is shown what they have presented.

import type { SecretId } from '../../acl/ids.ts';
import type { OperationName, OperationOutput } from '../operations.ts';
import type { ListResult, ReadResult, TokenView } from '../views.ts';
import { pageOf } from './remote-list.ts';

/** Lists must be bounded by their page. */
export async function presentable(output: OperationOutput<OperationName>): Promise<unknown> {
  if (typeof output !== 'object' || output === null) return output;
  if ('slices' in output) {
    const { items, ...rest } = await pageOf<unknown>(output as ListResult<unknown>);
    return { ...rest, items: items.map(withoutHidden) };
  }
  return 'value' in output ? { ...output, value: withoutHidden(output.value) } : output;
}

/** The bytes of a secret that is not shown do not travel either. */
function withoutHidden(value: unknown): unknown {
  if (!isTokenView(value)) return value;
  if (!value.secretHidden && !value.token.local) return value;
  return { ...value, secretHidden: true, token: { ...value.token, secretId: '' } };
}

/** What another datacenter says of the token with this secret, to whoever presents it here. */
export function withOwnSecret(
  read: ReadResult<TokenView>,
  secretId: SecretId | undefined,
): ReadResult<TokenView> {
  const { value } = read;
  if (value === undefined || secretId === undefined) return read;
  return { ...read, value: { ...value, secretHidden: false, token: { ...value.token, secretId } } };
}

function isTokenView(value: unknown): value is TokenView {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'token';
}
