// What moving the primary needs of this datacenter: its state as this server has it, and commands in the
// log of its own group, where all that binds is decided.

import { must } from '../../../../cluster/base/assert.ts';
import type {
  PromotionPort,
  PromotionState,
} from '../../../../cluster/federation/promotion/promotion-port.ts';
import type { Random } from '../../../../cluster/platform/random.ts';
import { AclError } from '../../../acl/error.ts';
import { mayPromise } from '../../../state/global-log/election.ts';
import type { ForkSnapshot } from '../../../state/global-log/fork-snapshot.ts';
import { isReset } from '../../../state/global-log/global-entry.ts';
import {
  currentEpoch,
  type EpochStart,
  isPrimary,
  type Replication,
} from '../../../state/global-log/replication.ts';
import type { StateMachine } from '../../../state/machine.ts';
import type { GlobalGate } from '../gate/global-gate.ts';
import type { ComingEntries } from './coming-entries.ts';
import { applyBatch, type FollowingDeps, verdictOf } from './follow-primary.ts';
import { GlobalSnapshotSink, takeBack } from './global-snapshots.ts';

export interface PromotionPortDeps extends FollowingDeps, Pick<PromotionPort, 'leftBehindBy'> {
  readonly machine: Pick<
    StateMachine,
    'replication' | 'forkSnapshot' | 'importUnderWay' | 'localRows' | 'rowBytes'
  >;
  readonly random: Random;
  readonly coming: Pick<ComingEntries, 'until' | 'furthest'>;
  readonly gate: Pick<GlobalGate, 'seal' | 'idle'>;
  /** This server leads its datacenter, and has applied what came before its reign. */
  readonly isReigning: () => boolean;
}

export function promotionPortOf(deps: PromotionPortDeps): PromotionPort {
  const { coming, machine, gate, isReigning } = deps;
  const fence: PromotionPort['fence'] = async (epochs) => {
    const { verdict } = await verdictOf(deps, { type: 'epoch.fence', epochs });
    if (verdict === 'applied') return;
    throw new AclError('internal', `the own datacenter does not yield to it: ${verdict}`);
  };
  return {
    state: () => {
      const replication = machine.replication();
      return replication && stateOf(replication);
    },
    leftBehindBy: deps.leftBehindBy,
    isLeading: isReigning,
    mayReach: (cursor) => coming.furthest(cursor),
    mayPromise: ({ epoch, candidate, cursor: at }) => {
      const replication = machine.replication();
      return replication !== undefined && mayPromise(replication, { epoch, candidate, at });
    },
    promise: async ({ epoch, candidate, cursor: at }) => {
      const change = { type: 'epoch.promise', epoch, candidate, at } as const;
      const { verdict, cursor, maxEpochPromised } = await verdictOf(deps, change);
      return {
        isGranted: verdict === 'granted',
        cursor: must(cursor, 'a cursor'),
        maxEpoch: maxEpochPromised,
      };
    },
    isRestore: ({ bytes }) => isReset(bytes),
    take: async ({ epoch, ...batch }) => {
      const reached = await applyBatch(deps, epoch, batch);
      if (reached !== 'snapshot-needed') return reached;
      const says =
        'a restore follows, and only a datacenter that has objects gives a snapshot of it';
      throw new AclError('unavailable', says);
    },
    start: async (claim) => {
      const isFromFork = machine.replication()?.isDiverged === true;
      const change = { type: 'epoch.start', ...claim, isFromFork } as const;
      const { verdict } = await verdictOf(deps, change);
      return verdict === 'applied';
    },
    fence,
    forkPlace: async (epochs) => (await forkAt(machine, epochs)).cursor,
    goBack: async (epochs) => {
      await fence((await forkAt(machine, epochs)).epochs);
      const snapshot = await machine.forkSnapshot(epochs);
      try {
        await takeBack(new GlobalSnapshotSink(machine, deps), deps.random.uuid(), snapshot);
      } finally {
        await snapshot.close();
      }
    },
    seal: () => gate.seal(),
    settled: async () => {
      await gate.idle();
      return must(machine.replication(), 'a global log').cursor;
    },
  };
}

/** Whether the own objects lead back to it is known then. */
async function forkAt(
  machine: Pick<StateMachine, 'forkSnapshot'>,
  epochs: readonly EpochStart[],
): Promise<Pick<ForkSnapshot, 'cursor' | 'epochs'>> {
  const { cursor, epochs: upToFork, close } = await machine.forkSnapshot(epochs);
  await close();
  return { cursor, epochs: upToFork };
}

function stateOf(replication: Replication): PromotionState {
  const { cursor, epochs, maxEpochPromised, votedFor, isDiverged, isWitness, datacenters } =
    replication;
  const { epoch, primary } = currentEpoch(replication);
  return {
    epoch,
    primary,
    isPrimary: isPrimary(replication),
    maxEpoch: maxEpochPromised,
    votedFor,
    cursor,
    isDiverged,
    isWitness,
    voters: datacenters.filter(({ isVoter }) => isVoter).map(({ name }) => name),
    witnesses: datacenters.filter((each) => each.isWitness).map(({ name }) => name),
    epochs,
  };
}
