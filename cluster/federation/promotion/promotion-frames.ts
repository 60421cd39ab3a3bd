// What datacenters say to each other about who is to be primary, as bytes of calls and their answers.

import { packed, unpacked } from '../../wire/call-payload.ts';
import { NAME_MAX } from '../../wire/frame.ts';
import { arrayOf, countOf, exactBytesOf, fieldsOf, flagOf, textOf } from '../../wire/shape.ts';
import { cursorFields, cursorOf } from '../feed/feed-frames.ts';
import { type GlobalCursor, HASH_BYTES } from '../global-log.ts';

/** The names of the calls. */
export const PROMOTION_METHOD = {
  promise: 'promotion.promise',
  take: 'promotion.take',
  epochs: 'promotion.epochs',
  rest: 'promotion.rest',
} as const;

/** Codes of refusals. They are on the wire: none gets another meaning. */
export const PROMOTION_REFUSAL = {
  /** Another server of that datacenter leads it. */
  notLeading: 'promotion.not-leading',
  /** It cannot be: the words say why. Nothing was begun. */
  refused: 'promotion.refused',
  /** It did not come to it, and some may have promised: they take nothing of a lower epoch any more. */
  undecided: 'promotion.undecided',
  /** What the candidate lacks is of a newer release than its servers. */
  unreadable: 'promotion.unreadable',
  /** What the candidate lacks was dropped for a restore. Earlier releases say `refused` of that. */
  restored: 'promotion.restored',
} as const;

/** In a trial: whether anybody else was promised a later one is what it finds out, so it asks for none of them. */
export const LAST_EPOCH: number = Number.MAX_SAFE_INTEGER;

/** A candidate asks a datacenter to take nothing of a lower epoch any more. */
export interface PromiseAsk {
  readonly epoch: number;
  readonly candidate: string;
  /** How far the candidate is, and stays. */
  readonly cursor: GlobalCursor;
  /** Only whether it would. */
  readonly isTrial: boolean;
}

export interface PromiseAnswer {
  readonly isGranted: boolean;
  /** How far the datacenter that was asked is. */
  readonly cursor: GlobalCursor;
  /** The latest that it has promised, or was told of. */
  readonly maxEpoch: number;
}

/** A candidate asks for the entries that it has not. The answer is an entry run of the feed. */
export interface RestAsk {
  /** How far the candidate is. */
  readonly after: GlobalCursor;
  /** Only whether it would get any: the answer has none. Asked by releases that did not look what comes first. */
  readonly isTrial: boolean;
}

/** When a reign began, and whose it is. */
export interface EpochStart {
  readonly epoch: number;
  readonly startSeq: number;
  /** Of the entry before. */
  readonly startHash: Uint8Array;
  readonly primary: string;
}

const EPOCHS_MAX = 4_096;

export function encodeAsk({ epoch, candidate, cursor, isTrial }: PromiseAsk): Uint8Array {
  return packed(epoch, candidate, cursorFields(cursor), isTrial);
}

/** Throws WireDamage. */
export function decodeAsk(bytes: Uint8Array): PromiseAsk {
  const [epoch, candidate, cursor, isTrial] = unpacked(bytes, 'a wish for a promise', 4);
  return {
    epoch: countOf(epoch, 'epoch'),
    candidate: textOf(candidate, 'candidate', NAME_MAX),
    cursor: cursorOf(cursor, 'cursor'),
    isTrial: flagOf(isTrial, 'isTrial'),
  };
}

export function encodePromise({ isGranted, cursor, maxEpoch }: PromiseAnswer): Uint8Array {
  return packed(isGranted, cursorFields(cursor), maxEpoch);
}

/** Throws WireDamage. */
export function decodePromise(bytes: Uint8Array): PromiseAnswer {
  const [isGranted, cursor, maxEpoch] = unpacked(bytes, 'an answer about a promise', 3);
  return {
    isGranted: flagOf(isGranted, 'isGranted'),
    cursor: cursorOf(cursor, 'cursor'),
    maxEpoch: countOf(maxEpoch, 'maxEpoch'),
  };
}

export function encodeRest({ after, isTrial }: RestAsk): Uint8Array {
  return packed(cursorFields(after), isTrial);
}

/** Throws WireDamage. */
export function decodeRest(bytes: Uint8Array): RestAsk {
  const [after, isTrial] = unpacked(bytes, 'a wish for the rest of a log', 2);
  return { after: cursorOf(after, 'cursor'), isTrial: flagOf(isTrial, 'isTrial') };
}

/** The primary's last entry: whoever takes over must have it. */
export function encodeTake(cursor: GlobalCursor): Uint8Array {
  return packed(cursorFields(cursor));
}

/** Throws WireDamage. */
export function decodeTake(bytes: Uint8Array): GlobalCursor {
  return cursorOf(unpacked(bytes, 'a hand-over', 1)[0], 'cursor');
}

/** The epoch that has begun. */
export function encodeTaken(epoch: number): Uint8Array {
  return packed(epoch);
}

/** Throws WireDamage. */
export function decodeTaken(bytes: Uint8Array): number {
  return countOf(unpacked(bytes, 'an answer to a hand-over', 1)[0], 'epoch');
}

/** Of the federation that asks. In the first layout the question was empty. */
export function encodeEpochsAsk(federationId: string): Uint8Array {
  return packed(federationId);
}

/** Undefined: of an earlier release, which reads the first layout of the answer alone. Throws WireDamage. */
export function decodeEpochsAsk(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0) return undefined;
  return textOf(unpacked(bytes, 'a question for epochs', 1)[0], 'federationId', NAME_MAX);
}

/** The epochs of a federation. */
export interface ToldEpochs {
  /** Empty: it knows of none, or was not told in the first layout. */
  readonly federationId: string;
  readonly epochs: readonly EpochStart[];
}

/** Without a federation in the first layout. */
export function encodeEpochs(
  epochs: readonly EpochStart[],
  federationId: string | undefined,
): Uint8Array {
  const fields = epochs
    .slice(-EPOCHS_MAX)
    .map(({ epoch, startSeq, startHash, primary }) => [epoch, startSeq, startHash, primary]);
  return federationId === undefined ? packed(fields) : packed(fields, federationId);
}

/** Throws WireDamage. */
export function decodeEpochs(bytes: Uint8Array): ToldEpochs {
  const [epochs, federationId = ''] = unpacked(bytes, 'epochs', 1, 2);
  return {
    federationId: textOf(federationId, 'federationId', NAME_MAX),
    epochs: epochsOf(epochs),
  };
}

function epochsOf(value: unknown): readonly EpochStart[] {
  return arrayOf(value, 'epochs', EPOCHS_MAX).map((each) => {
    const [epoch, startSeq, startHash, primary] = fieldsOf(each, 'an epoch', 4);
    return {
      epoch: countOf(epoch, 'epoch'),
      startSeq: countOf(startSeq, 'startSeq'),
      startHash: exactBytesOf(startHash, 'startHash', HASH_BYTES),
      primary: textOf(primary, 'primary', NAME_MAX),
    };
  });
}
