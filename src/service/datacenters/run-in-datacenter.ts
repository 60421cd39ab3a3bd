// What another datacenter must do: how often it is tried, and what the answer waits for. As a write to
// the leader of this one, it is tried again, within bounds, while it is certain that nothing was done or
// that doing it again changes nothing; what became of it is either known at the end, or said to be not
// known. The secret of a local token is never sent along.

import { AclError } from '../../acl/error.ts';
import { OPERATION_TABLE } from '../operation-table.ts';
import type { Asked, OperationInput, OperationName, OperationOutput } from '../operations.ts';
import { LeaderAway } from '../remote.ts';
import type { Service } from '../service.ts';
import type { ListResult, ReadResult, TokenView, WriteResult } from '../views.ts';
import { hasId, isUnknown, leastKnown, repeatableOf, saysNothingThere } from '../writes/tries.ts';
import { DatacenterAway } from './federation.ts';
import { withOwnSecret } from './presentable.ts';
import { type ListPage, listOfPages } from './remote-list.ts';
import { requireTravels } from './travelling-secret.ts';

/** Between two tries. */
const PAUSE_MS = 100;
/** After this no other try begins where nobody there can be reached: it may be so for an hour. */
const AWAY_TRIES_MS = 1_000;

/** Rejects with AclError: what was refused, 'unavailable', or 'outcome-unknown'. */
export async function runInDatacenter<Name extends OperationName>(
  service: Service,
  datacenter: string,
  given: Asked<Name>,
): Promise<OperationOutput<Name>> {
  const travelling = aboutHere(service, await requireTravels(service, datacenter, given));
  const isRead = OPERATION_TABLE[given.name].kind === 'read';
  if (isRead) return readThere(service, datacenter, travelling);
  const repeatable = repeatableOf(service, travelling);
  const output = await tried(service, datacenter, repeatable, given);
  if (!('meta' in output)) return output;
  const { value, meta } = output as WriteResult<unknown>;
  // Nobody repeated anything but this server.
  const replayed = meta.replayed && hasId(given);
  const isVisible = await becomesVisible(service, meta.position);
  const index = isVisible ? Math.max(service.view.index(), meta.index) : meta.index;
  return { value, meta: { ...meta, index, replayed, isVisible } } as OperationOutput<Name>;
}

/** Wherever a login is carried, a node that logs in is one of this datacenter. */
function aboutHere<Name extends OperationName>(
  { settings }: Service,
  asked: Asked<Name>,
): Asked<Name> {
  if (OPERATION_TABLE[asked.name].scope !== 'by-method') return asked;
  return { ...asked, call: { ...asked.call, askedIn: settings.datacenter } };
}

/** `write` is what was given, in a form that can be repeated. */
async function tried<Name extends OperationName>(
  service: Service,
  datacenter: string,
  write: Asked<Name>,
  given: Asked<Name> = write,
): Promise<OperationOutput<Name>> {
  const { clock, federation, settings } = service;
  const startMs = clock.monotonicMs();
  /** Of an earlier try: it may have taken effect. */
  let unknown: AclError | undefined;
  for (;;) {
    let failure: unknown = unknown;
    try {
      const output = (await federation.run(datacenter, write)) as OperationOutput<Name>;
      // An earlier try may lie at a server there, for the leader of a later term, which does not remember that.
      if (unknown === undefined || !saysNothingThere(output)) return output;
    } catch (error) {
      failure = error;
      if (isUnknown(error)) unknown = error;
    }
    const limitMs = failure instanceof DatacenterAway ? AWAY_TRIES_MS : settings.leaderWaitMs;
    const isOver = clock.monotonicMs() - startMs >= limitMs;
    const goesOn = !isOver && mayTryAgain(failure, write);
    if (goesOn) await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
    if (!goesOn || given.isGone?.() === true) {
      // No server over there knows which tries came before, or how many are still on their way.
      const told = leastKnown(failure, unknown, { given, isLast: false });
      throw told === failure ? named(service, failure) : told;
    }
  }
}

function mayTryAgain(failure: unknown, write: Asked<OperationName>): boolean {
  if (failure instanceof LeaderAway || failure instanceof DatacenterAway) return true;
  return isUnknown(failure) && (hasId(write) || OPERATION_TABLE[write.name].kind === 'read');
}

/** Whoever cannot reach the primary learns which one it is looked for, and by what authority. */
function named({ federation }: Service, failure: unknown): unknown {
  const { datacenter, epoch } = federation.primary();
  if (!(failure instanceof DatacenterAway)) return failure;
  const text = `${failure.message}; the last known primary is ${datacenter}, epoch ${epoch}`;
  return new AclError('unavailable', text, { cause: failure });
}

/** Whether this server has it, after a wait that is not long. */
async function becomesVisible(
  { positions, settings }: Service,
  position: WriteResult<unknown>['meta']['position'],
): Promise<boolean> {
  return positions.arrives(position, settings.visibleWaitMs);
}

/** What is watched is watched there, and a list goes on there page by page. */
async function readThere<Name extends OperationName>(
  service: Service,
  datacenter: string,
  question: Asked<Name>,
): Promise<OperationOutput<Name>> {
  const ask = async (input: OperationInput<Name>): Promise<OperationOutput<Name>> => {
    const output = await tried(service, datacenter, { ...question, input });
    const isWatched = typeof output === 'object' && output !== null && 'meta' in output;
    if (!isWatched) return output;
    const { meta } = output as ReadResult<unknown>;
    const isOwn = question.name === 'token.read-self';
    const shown = isOwn
      ? withOwnSecret(output as ReadResult<TokenView>, question.call.secret)
      : output;
    return { ...shown, meta: { ...meta, watch: { ...meta.watch, datacenter } } } as typeof output;
  };
  const { input } = question;
  if (!('page' in input)) return ask(input);
  const list: ListResult<unknown> = await listOfPages(input.page, async (page) => {
    const answer: unknown = await ask({ ...input, page });
    return answer as ListPage<unknown>;
  });
  return list as OperationOutput<Name>;
}
