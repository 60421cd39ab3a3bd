// How a datacenter stands in the global log: one row of the replicated state, the same on each of its
// servers. What it holds is a function of the datacenter's own log. The rules over it are pure and in
// their own files; see docs/decisions/0017.

import { must } from '../../../cluster/base/assert.ts';
import {
  type Fields,
  orNull,
  orUndefined,
  pack,
  requireFormat,
  unpack,
} from '../rows/layout/packing.ts';
import type { Getter } from '../rows/store/getter.ts';
import { rowKey } from '../rows/tables.ts';
import type { GlobalCursor } from './cursor.ts';

/** An epoch: all entries of one primary, between two promotions. */
export interface EpochStart {
  readonly epoch: number;
  /** Of its first entry. */
  readonly startSeq: number;
  /** Of the entry before its first one. */
  readonly startHash: Uint8Array;
  /** The datacenter that writes it. */
  readonly primary: string;
}

/** A datacenter as all datacenters know it. */
export interface Datacenter {
  readonly name: string;
  /** Whether its promise counts, and its acknowledgement for `majority`. */
  readonly isVoter: boolean;
  /** Whether it keeps votes and the tail of the log, and no objects. */
  readonly isWitness: boolean;
  /** An operator removed it: it takes no part any more, and no other may come under its name. */
  readonly isRemoved?: true;
  /**
   * The cluster that has this name: no other one may speak for the datacenter until an operator has removed it
   * and allowed the name. Lacking where it was not heard since the log says so, or was removed.
   */
  readonly clusterId?: string;
}

/** Entries of one epoch, from the first to the last. */
export interface EntryRange {
  readonly epoch: number;
  readonly first: number;
  readonly last: number;
}

export interface Replication {
  /** Its own name. */
  readonly datacenter: string;
  /** Of all datacenters that share the log; empty while this one knows of none. It never changes. */
  readonly federationId: string;
  readonly isWitness: boolean;
  /** The last entry that its objects have in them. */
  readonly cursor: GlobalCursor;
  /** Ascending, at least one; the last one is that of the cursor, or one that has no entry yet. */
  readonly epochs: readonly EpochStart[];
  /** Nothing of a lower epoch's primary is taken any more. */
  readonly maxEpochPromised: number;
  /** Whom the greatest epoch was promised to; undefined when it was only heard of. */
  readonly votedFor: string | undefined;
  /** By name. */
  readonly datacenters: readonly Datacenter[];
  /** Of the entry that said so; 0 when none did. */
  readonly datacentersSeq: number;
  /** The first entry that is kept; one more than the cursor's seq when none is. */
  readonly first: number;
  /** Bytes of the entries that are kept. */
  readonly keptBytes: number;
  /** Entries that this datacenter wrote and that are not on the chain of later epochs. */
  readonly divergent: readonly EntryRange[];
  /**
   * Entries of the same kind that were trimmed before this was known: they may have been acknowledged, and
   * can only be counted. A restore may have left out some of their seqs.
   */
  readonly gone: readonly EntryRange[];
  /** Entries that nobody wants; they are dropped in their own time. */
  readonly unused: readonly EntryRange[];
  /** The objects have entries in them that are not on the chain: only a snapshot brings it back. */
  readonly isDiverged: boolean;
}

/** No entry begins it, so none says whose it is: who joins later has that from its settings alone. */
export const FIRST_EPOCH = 1;

export const REPLICATION_KEY = rowKey('replication');

/** Format 1 knew of no federation, format 2 not of what is gone, format 3 of no clusters. */
const FORMAT = 4;
const WITHOUT_CLUSTERS = 3;
const OLDER_FORMATS: readonly unknown[] = [1, 2, WITHOUT_CLUSTERS];

export function encodeReplication(replication: Replication): Uint8Array {
  return pack([
    formatOf(replication),
    replication.datacenter,
    replication.isWitness,
    cursorFields(replication.cursor),
    replication.epochs.map(epochFields),
    replication.maxEpochPromised,
    orNull(replication.votedFor),
    replication.datacenters.map(datacenterFields),
    replication.datacentersSeq,
    replication.first,
    replication.keptBytes,
    replication.divergent.map(rangeFields),
    replication.unused.map(rangeFields),
    replication.isDiverged,
    replication.federationId,
    replication.gone.map(rangeFields),
  ]);
}

/** While nothing says of clusters, an older release can go on with the state. */
function formatOf({ datacenters }: Replication): number {
  return nameClusters(datacenters) ? FORMAT : WITHOUT_CLUSTERS;
}

export function decodeReplication(value: Uint8Array): Replication {
  const [format, datacenter, isWitness, cursor, epochs, promised, votedFor, ...rest] =
    unpack(value);
  if (!OLDER_FORMATS.includes(format)) requireFormat('replication row', format, FORMAT);
  const [datacenters, datacentersSeq, first, keptBytes, divergent, unused, ...last] = rest;
  const [isDiverged, federationId = '', gone = []] = last;
  return {
    datacenter,
    federationId,
    isWitness,
    cursor: cursorOf(cursor as Fields),
    epochs: (epochs as readonly Fields[]).map(epochOf),
    maxEpochPromised: promised,
    votedFor: orUndefined(votedFor as string | null),
    datacenters: (datacenters as readonly Fields[]).map(datacenterOf),
    datacentersSeq,
    first,
    keptBytes,
    divergent: (divergent as readonly Fields[]).map(rangeOfFields),
    gone: (gone as readonly Fields[]).map(rangeOfFields),
    unused: (unused as readonly Fields[]).map(rangeOfFields),
    isDiverged,
  } as Replication;
}

/** Undefined before the datacenter began its global log. */
export function readReplication(rows: Getter): Replication | undefined {
  const value = rows.get(REPLICATION_KEY);
  return value === undefined ? undefined : decodeReplication(value);
}

export function currentEpoch({ epochs }: Pick<Replication, 'epochs'>): EpochStart {
  return must(epochs.at(-1), 'an epoch');
}

/**
 * The datacenter that writes, as far as the own log says. No entry begins the first epoch, so whose that is a newcomer
 * has from its settings, which may be wrong: until the list of datacenters says which one has the cluster that the
 * federation is called after.
 */
export function primaryIn(replication: Replication): string {
  const { epoch, primary } = currentEpoch(replication);
  if (epoch !== FIRST_EPOCH) return primary;
  const { datacenters, federationId } = replication;
  const founder = datacenters.find(({ clusterId }) => clusterId === federationId);
  return founder?.name ?? primary;
}

/** Whether this datacenter may write global objects: a promise to anybody else ends that. */
export function isPrimary(replication: Replication): boolean {
  const { epoch, primary } = currentEpoch(replication);
  return (
    primary === replication.datacenter &&
    epoch === replication.maxEpochPromised &&
    !replication.isDiverged
  );
}

/** Whether both know which federation they are of, and it is not the same one. */
export function isStranger(
  { federationId }: Pick<Replication, 'federationId'>,
  other: Pick<Replication, 'federationId'>,
): boolean {
  const areKnown = federationId !== '' && other.federationId !== '';
  return areKnown && federationId !== other.federationId;
}

/** How many entries are in the ranges, of none where there is no global log. */
export function countIn(ranges: readonly EntryRange[] = []): number {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

export function cursorFields({ epoch, seq, hash }: GlobalCursor): Fields {
  return [epoch, seq, hash];
}

export function cursorOf([epoch, seq, hash]: Fields): GlobalCursor {
  return { epoch, seq, hash } as GlobalCursor;
}

export function epochFields({ epoch, startSeq, startHash, primary }: EpochStart): Fields {
  return [epoch, startSeq, startHash, primary];
}

export function epochOf([epoch, startSeq, startHash, primary]: Fields): EpochStart {
  return { epoch, startSeq, startHash, primary } as EpochStart;
}

/** Of one that was not removed, and whose cluster is not known, as they have always been. */
export function datacenterFields(datacenter: Datacenter): Fields {
  const { name, isVoter, isWitness, isRemoved = false, clusterId } = datacenter;
  if (clusterId !== undefined) return [name, isVoter, isWitness, isRemoved, clusterId];
  return isRemoved ? [name, isVoter, isWitness, true] : [name, isVoter, isWitness];
}

export function datacenterOf([name, isVoter, isWitness, isRemoved, clusterId]: Fields): Datacenter {
  return {
    ...{ name, isVoter, isWitness },
    ...(isRemoved === true && { isRemoved }),
    ...(clusterId !== undefined && { clusterId }),
  } as Datacenter;
}

/** Whether any of them says which cluster has its name: releases before feature level 4 do not read that. */
export function nameClusters(datacenters: readonly Datacenter[]): boolean {
  return datacenters.some(({ clusterId }) => clusterId !== undefined);
}

/** The cluster that has the name; undefined where the log does not say. */
export function clusterIdOf(
  replication: Pick<Replication, 'datacenters'> | undefined,
  datacenter: string,
): string | undefined {
  return replication?.datacenters.find(({ name }) => name === datacenter)?.clusterId;
}

/** Those that an operator removed. */
export function removedOf(
  replication: Pick<Replication, 'datacenters'> | undefined,
): readonly string[] {
  const removed = replication?.datacenters.filter(({ isRemoved }) => isRemoved === true);
  return removed?.map(({ name }) => name) ?? [];
}

function rangeFields({ epoch, first, last }: EntryRange): Fields {
  return [epoch, first, last];
}

function rangeOfFields([epoch, first, last]: Fields): EntryRange {
  return { epoch, first, last } as EntryRange;
}
