// A local token is known in its own datacenter alone, and a revocation must not fail for the place that
// it was sent to. So a deletion that names a datacenter, and finds nothing here or in the primary, is
// asked for once more in the one that it names.

import { AclError, type AclErrorCode } from '../../acl/error.ts';
import { isGiven } from '../../acl/values/given.ts';
import type { Asked, OperationName, OperationOutput } from '../operations.ts';
import type { Service } from '../service.ts';
import type { WriteResult } from '../views.ts';
import { isMoved } from '../writes/tries.ts';
import { requireKnownDatacenter } from './known-datacenter.ts';
import { runInDatacenter } from './run-in-datacenter.ts';

/**
 * `look` runs a client's call where tokens of its kind are looked for. Rejects as that does, with
 * 'no-such-datacenter', and as `runInDatacenter`: without the datacenter that is named nobody knows whether
 * the token lives.
 */
export async function deletedWhereNamed<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  look: () => Promise<OperationOutput<Name>>,
): Promise<OperationOutput<Name>> {
  const { datacenter } = asked.call;
  if (asked.name !== 'token.delete' || !isGiven(datacenter)) return look();
  const wasAsked = askedBefore(service, datacenter);
  let output: OperationOutput<Name>;
  try {
    output = await look();
  } catch (error) {
    if (!isOpen(error) || wasAsked()) throw error;
    return deletedThereAfterAll(service, asked, { datacenter, open: error });
  }
  if ((output as WriteResult<boolean>).value || wasAsked()) return output;
  requireKnownDatacenter(service.federation, datacenter);
  try {
    return await runInDatacenter(service, datacenter, asked);
  } catch (error) {
    // It sends back what is no local token of its own.
    if (isMoved(error)) return output;
    throw error;
  }
}

/**
 * Nobody else has to know of a local token: that others are late to acknowledge, or that the primary is away or takes
 * no writes, does not keep it alive.
 */
async function deletedThereAfterAll<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  { datacenter, open }: { readonly datacenter: string; readonly open: AclError },
): Promise<OperationOutput<Name>> {
  try {
    const output = await runInDatacenter(service, datacenter, asked);
    if ((output as WriteResult<boolean>).value) return output;
  } catch {
    // What the first look came to is told.
  }
  throw open;
}

/** What says nothing of whether the token is one of what all share. */
const OPEN: ReadonlySet<AclErrorCode> = new Set([
  'wait-timeout',
  'unavailable',
  'not-primary',
  'outcome-unknown',
]);

function isOpen(error: unknown): error is AclError {
  return error instanceof AclError && OPEN.has(error.code);
}

/**
 * Whether it was looked for there already, to be asked behind the look: one that became the primary meanwhile, or is it
 * no more, may not have been the one that was asked.
 */
function askedBefore({ federation, settings }: Service, datacenter: string): () => boolean {
  const before = federation.primary().datacenter;
  return () => {
    const isPrimary = [before, federation.primary().datacenter].every(
      (each) => each === datacenter,
    );
    return isPrimary || datacenter === settings.datacenter;
  };
}
