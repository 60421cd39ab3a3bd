// The first management token of a system. A repeat with the same secret gets the same answer, so a
// caller whose connection broke is not locked out; anything else needs the operator's reset index.

import { bootstrapToken } from '../../acl/built-in/built-ins.ts';
import {
  type AccessorId,
  requireBootstrapSecret,
  type SecretId,
  secretIdOf,
} from '../../acl/ids.ts';
import { bootstrapDone, bootstrapSecretInUse, wrongResetIndex } from '../../acl/refusals.ts';
import { isGiven } from '../../acl/values/given.ts';
import { BOOTSTRAP_DEPENDENCY } from '../dependencies.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import type { Request, Service } from '../service.ts';
import { commit, metaOfNoChange } from '../writes/commit.ts';
import { tokenViewOf } from './make-views.ts';

/** Needs no token, so the door takes no request id: guessing one must not give the answer to another. */
export async function bootstrap(
  service: Service,
  input: OperationInput<'bootstrap'>,
  request: Request,
): Promise<OperationOutput<'bootstrap'>> {
  const secret = isGiven(input.secret) ? requireBootstrapSecret(input.secret) : undefined;
  const again = secret && bootstrappedBefore(service, secret);
  if (again !== undefined) return again;
  requireWritable(service, request);
  const resetIndex = requireAllowed(service, secret);
  if (secret !== undefined && service.view.idInUse(secret)) throw bootstrapSecretInUse();
  const token = bootstrapToken({
    accessorId: service.random.uuid() as AccessorId,
    secretId: secret ?? secretIdOf(service.random.uuid()),
    nowMs: service.clock.wallMs(),
  });
  const change = { type: 'bootstrap', token, resetIndex } as const;
  const result = await commit(service, request, change, 'token');
  service.metrics.count('acl.bootstrap');
  return result;
}

/**
 * Whatever keeps a change out of the log keeps it out before the reset index is used up: another bootstrap, too, which
 * has taken it and may have the same secret. Throws why not, and Overtaken.
 */
function requireWritable(
  { underWay, callers, federation }: Service,
  { call }: Pick<Request, 'call'>,
): void {
  underWay.requireQuiet(() => [BOOTSTRAP_DEPENDENCY, ...callers.rootsOf(call.secret)]);
  const closed = federation.closedBecause();
  if (closed !== undefined) throw closed;
}

/** The answer of the last bootstrap, for who knows its secret. */
function bootstrappedBefore(
  service: Service,
  secret: SecretId,
): OperationOutput<'bootstrap'> | undefined {
  const { view, names } = service;
  const token = view.tokenBySecret(secret);
  if (token === undefined || token.createIndex !== view.bootstrapIndex()) return undefined;
  const value = tokenViewOf(token, names, { secretHidden: false });
  return { value, meta: { ...metaOfNoChange(service), replayed: true } };
}

/** The reset index to send along, if one is needed. Throws when there was a bootstrap and no reset. */
function requireAllowed(service: Service, secret: SecretId | undefined): number | undefined {
  const bootstrapIndex = service.view.bootstrapIndex();
  if (bootstrapIndex === undefined) return undefined;
  const given = service.takeResetIndex(secret);
  if (given === undefined) throw bootstrapDone(bootstrapIndex);
  if (given === bootstrapIndex) return given;
  const specified = Number.isNaN(given)
    ? 'the file acl-bootstrap-reset of the leader holds neither a number nor a number and a secret'
    : `specified ${given}`;
  throw wrongResetIndex(specified, bootstrapIndex);
}
