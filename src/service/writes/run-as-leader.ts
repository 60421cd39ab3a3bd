// A write at the leader itself. It is authorized and proposed under one reign, so that it cannot enter
// the log on account of rights that another leader has taken away meanwhile. What enters the log is
// thereby proven; a refusal, or an answer that needed no change, is proven by a read barrier before it
// is given: a leader that was replaced without noticing might speak of the past.

import { AclError } from '../../acl/error.ts';
import type { ServiceDeps } from '../deps.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { OperationName } from '../operations.ts';
import { LeaderAway } from '../remote.ts';
import type { RefusedRequests } from './refused-requests.ts';

/** One run of a write. */
export interface Attempt {
  /** The term of this leader in which it began. */
  readonly reign: number;
  /** The answer is the log's own: it was proposed, or found among the remembered ones. */
  isDecided: boolean;
  /** It took effect, and the state knows that: the next try of the same request need not wait. */
  readonly applied: () => void;
}

/** It asks somebody outside, or uses something up: it is run once, and what it reads is proven first. */
function isRunOnce(name: OperationName): boolean {
  return name === 'bootstrap' || OPERATION_TABLE[name].asksProvider === true;
}

export interface Run {
  readonly name: OperationName;
  /** For the leader of that term alone; undefined: for whoever leads. */
  readonly term: number | undefined;
  /** By which a refusal is remembered; undefined where a client gave no id. */
  readonly request: string | undefined;
  /** Whether no token names the caller. */
  readonly isOfStranger: () => boolean;
  /** It took effect, and the state knows that. */
  readonly onApplied: () => void;
}

interface Leader extends Pick<ServiceDeps, 'reign' | 'readBarrier' | 'view'> {
  readonly refused: RefusedRequests;
}

/** Rejects with LeaderAway when this server does not lead, or not in one piece, or in another term. */
export async function runAsLeader<Output>(
  service: Leader,
  { name, term, request, isOfStranger, onApplied }: Run,
  run: (attempt: Attempt) => Output | Promise<Output>,
): Promise<Output> {
  const known = service.reign();
  const reign = typeof known === 'number' ? known : await known;
  if (term !== undefined && term !== reign) throw new LeaderAway();
  const proven = (applied: () => void): Promise<Output> =>
    runProven(service, { name, reign, applied }, run);
  if (request === undefined) return proven(onApplied);
  const own = { request, term: reign, isOfStranger };
  return service.refused.once(
    own,
    () => service.readBarrier(),
    (letGo) =>
      proven(() => {
        letGo();
        onApplied();
      }),
  );
}

async function runProven<Output>(
  service: Leader,
  { name, reign, applied }: { readonly name: OperationName } & Omit<Attempt, 'isDecided'>,
  run: (attempt: Attempt) => Output | Promise<Output>,
): Promise<Output> {
  if (isRunOnce(name)) {
    await service.readBarrier();
    return await run({ reign, isDecided: false, applied });
  }
  const attempt: Attempt = { reign, isDecided: false, applied };
  const index = service.view.index();
  let refusal: unknown;
  let output: Output | undefined;
  try {
    output = await run(attempt);
    if (attempt.isDecided) return output;
  } catch (error) {
    if (attempt.isDecided || !(error instanceof AclError)) throw error;
    refusal = error;
  }
  await service.readBarrier();
  if (service.view.index() !== index) return await run({ reign, isDecided: false, applied });
  if (output === undefined) throw refusal;
  return output;
}
