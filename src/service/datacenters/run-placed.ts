// Whatever is not answered by every server from its own state: where it runs, and again where the primary is
// another datacenter by the time it gets there.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import { AclError } from '../../acl/error.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { Asked, OperationName, OperationOutput } from '../operations.ts';
import { runRead } from '../run-read.ts';
import type { Service } from '../service.ts';
import type { WriteResult } from '../views.ts';
import { answerFromHome } from '../writes/answer-again.ts';
import { runWrite } from '../writes/run-write.ts';
import {
  isMoved,
  NotAsked,
  requireAwaited,
  saysNothingOfEarlier,
  saysNothingThere,
  unknownBehind,
} from '../writes/tries.ts';
import { deletedWhereNamed } from './delete-where-named.ts';
import { placeOfCall, refusalOfPlace } from './place-call.ts';
import { isOfToken, type Placement } from './placement.ts';
import { runInDatacenter } from './run-in-datacenter.ts';

/** `from` is the datacenter that sent the call; undefined when a client did. */
export async function runPlaced<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Promise<OperationOutput<Name>> {
  const { clock, settings } = service;
  // Of what another datacenter sends, that one has waited for it.
  if (from === undefined && asked.call.minPosition !== undefined)
    await afterPosition(service, asked);
  const deadlineMs = clock.monotonicMs() + settings.leaderWaitMs;
  /** Of a try at an earlier primary: it may have taken effect. */
  let unknown: AclError | undefined;
  for (;;) {
    try {
      const run = () => runOncePlaced(service, asked, from);
      return await (from === undefined ? deletedWhereNamed(service, asked, run) : run());
    } catch (error) {
      unknown = unknownBehind(error) ?? unknown;
      // The primary is another one by now, or has something that soon will be known here too.
      const goesOn = isMoved(error) && from === undefined && clock.monotonicMs() < deadlineMs;
      if (goesOn) await new Promise<void>((resolve) => clock.after(MOVED_PAUSE_MS, resolve));
      if (!goesOn || asked.isGone?.() === true) {
        throw saysNothingOfEarlier(error) ? (unknown ?? error) : error;
      }
    }
  }
}

/** A read waits where it is answered; a write, before anything is tried. Rejects with 'wait-timeout'. */
async function afterPosition({ positions }: Service, asked: Asked<OperationName>): Promise<void> {
  const { name, call } = asked;
  if (call.minPosition === undefined || OPERATION_TABLE[name].kind === 'read') return;
  try {
    await positions.reached(call.minPosition);
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    throw new NotAsked(error.code, `Nothing was written. ${error.message}`, { cause: error });
  }
  requireAwaited(asked);
}

/** Between two looks at where the primary is. */
const MOVED_PAUSE_MS = 100;

async function runOncePlaced<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
  from: string | undefined,
): Promise<OperationOutput<Name>> {
  const { epoch } = service.federation.primary();
  const place = placeOfCall(service, asked, from);
  const placement = place instanceof Promise ? await place : place;
  if (placement.kind === 'here') return ofThatReign(epoch, await runAt(service, placement, asked));
  const isSentAway = placement.kind === 'datacenter' || placement.kind === 'astray';
  if (!isSentAway || !isOfToken(OPERATION_TABLE[asked.name])) {
    return runAt(service, placement, asked);
  }
  try {
    const output = await runAt(service, placement, asked);
    const isNothing = (output as WriteResult<unknown>).value === false;
    return (isNothing ? await answerFromHome(service, asked, undefined) : undefined) ?? output;
  } catch (error) {
    const first = error instanceof AclError ? answerFromHome(service, asked, error) : undefined;
    if (first === undefined) throw error;
    return first;
  }
}

/**
 * What runs here by the reign that this server knew of, and is not found by a leader that knows of a later one, may
 * be in what the next primary has written. Throws 'not-primary': where it runs is looked up anew.
 */
function ofThatReign<Name extends OperationName>(
  epoch: number,
  output: OperationOutput<Name>,
): OperationOutput<Name> {
  if (!saysNothingThere(output) || output.meta.position.epoch <= epoch) return output;
  const text = `nothing was deleted: epoch ${output.meta.position.epoch} has begun meanwhile, and what is there may be elsewhere`;
  throw new AclError('not-primary', text);
}

async function runAt<Name extends OperationName>(
  service: Service,
  placement: Placement,
  asked: Asked<Name>,
): Promise<OperationOutput<Name>> {
  switch (placement.kind) {
    case 'here':
      if (OPERATION_TABLE[asked.name].kind === 'read') return runRead(service, asked);
      return runWrite(service, asked);
    case 'datacenter':
      return runInDatacenter(service, placement.name, asked);
    case 'astray':
    case 'local-here':
    case 'ahead':
      throw refusalOfPlace(placement, service.settings.datacenter);
    default:
      return unreachable(placement);
  }
}
