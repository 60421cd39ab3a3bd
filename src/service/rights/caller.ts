// Who makes a request, and what that one may do.

import type { Token } from '../../acl/token.ts';
import type { Authorizer } from '../../authz/authorizer.ts';

export interface Caller {
  readonly token: Token;
  /** As of the moment of the resolution: a request asks again, it never keeps a caller. */
  readonly authorizer: Authorizer;
}
