// `conclave operator primary` and `conclave operator promote`: which datacenter writes what all share, and
// making another one do so.

import type { Command } from 'commander';
import type { CallInput } from '../../../client/call-types.ts';
import { addLeaf, wholeNumber } from '../../command-line.ts';
import type { Session } from '../../session.ts';
import { movedSentence, primaryParts } from '../../show/primary.ts';
import type { Surroundings } from '../../surroundings.ts';
import { UsageError } from '../../usage-error.ts';

interface HowToMove {
  readonly election?: true;
  readonly force?: true;
  readonly epoch?: number;
  readonly acceptLoss?: true;
}

/** Adds `primary` and `promote` to `operator`. */
export function addPrimaryCommands(operator: Command, surroundings: Surroundings): void {
  addLeaf(operator, surroundings, {
    name: 'primary',
    says: 'show which datacenter is the primary, as the datacenter that is asked knows it',
    run: showPrimary,
  });
  addLeaf<HowToMove>(operator, surroundings, {
    name: 'promote',
    says: 'make a datacenter the primary: the present one hands over, and nothing is lost',
    argument: ['[datacenter]', 'which one; default: the one that is asked'],
    flags: (command) => {
      command
        .option('--election', 'a majority of the datacenters decides: the primary is gone')
        .option('--force', 'nobody decides: the primary is gone, and so is the majority')
        .option(
          '--epoch <epoch>',
          'with --force: the next epoch, so that nobody does it twice',
          wholeNumber,
        )
        .option('--accept-loss', 'with --force: what the others have may be lost');
    },
    run: promote,
  });
}

async function showPrimary(session: Session): Promise<void> {
  const { value } = await session.client.operator.primary();
  await session.show(value, () => primaryParts(value));
}

async function promote(
  session: Session,
  how: HowToMove,
  datacenter: string | undefined,
): Promise<void> {
  const body = bodyOf(how, datacenter);
  const { value } = await session.client.operator.movePrimary({ body });
  await session.done(value, movedSentence(value));
}

/** Throws UsageError for flags that contradict each other. */
function bodyOf(
  { election, force, epoch, acceptLoss }: HowToMove,
  datacenter: string | undefined,
): NonNullable<CallInput<'operator.move-primary'>['body']> {
  if (datacenter === '') throw new UsageError('the name of the datacenter is empty');
  if (election && force) throw new UsageError('give only one of --election and --force');
  const isForced = force === true;
  if (isForced && epoch === undefined) {
    throw new UsageError(
      '--force needs --epoch: one more than the promised epoch that `conclave operator primary` shows',
    );
  }
  if (isForced && acceptLoss !== true) {
    throw new UsageError('--force needs --accept-loss: what the others have may be lost');
  }
  if (!isForced && (epoch !== undefined || acceptLoss)) {
    throw new UsageError('--epoch and --accept-loss go with --force alone');
  }
  const mode = election ? 'election' : 'hand-over';
  return isForced
    ? { Datacenter: datacenter, Mode: 'forced', Epoch: epoch, AcceptLoss: true }
    : { Datacenter: datacenter, Mode: mode };
}
