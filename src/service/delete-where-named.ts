// A local token is known in its own datacenter alone, and a revocation must not fail for the place that
// it was sent to. So a deletion that names a datacenter, and finds nothing here or in the primary, is
// asked for once more in the one that it names.

import { requireKnownDatacenter } from './known-datacenter.ts';
import type { OperationName, OperationOutput } from './operations.ts';
import { runInDatacenter } from './run-in-datacenter.ts';
import { isMoved, type Write } from './run-write.ts';
import type { Service } from './service.ts';
import type { WriteResult } from './views.ts';

/**
 * `output` is what a client's call came to where tokens of its kind are looked for. Rejects with
 * 'no-such-datacenter', and as `runInDatacenter` does: without the datacenter that is named nobody knows
 * whether the token lives.
 */
export async function deletedWhereNamed<Name extends OperationName>(
  service: Service,
  write: Write<Name>,
  output: OperationOutput<Name>,
): Promise<OperationOutput<Name>> {
  const { name, call } = write;
  if (name !== 'token.delete' || (output as WriteResult<boolean>).value) return output;
  const { datacenter } = call;
  if (datacenter === undefined || datacenter === '' || wasAsked(service, datacenter)) return output;
  requireKnownDatacenter(service.federation, datacenter);
  try {
    return await runInDatacenter(service, datacenter, write);
  } catch (error) {
    // It sends back what is no local token of its own.
    if (isMoved(error)) return output;
    throw error;
  }
}

function wasAsked({ federation, settings }: Service, datacenter: string): boolean {
  return [settings.datacenter, federation.primary().datacenter].includes(datacenter);
}
