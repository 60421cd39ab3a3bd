// What clients of several datacenters asked, and what they were told.

import type { AckLevel } from '../../../../../src/service/call.ts';
import type { HttpAnswer } from '../../../subject/node-subject.ts';
import type {
  ChangedTarget,
  LocalRightTarget,
  LoginTarget,
  RightTarget,
  Target,
  TenantTarget,
} from '../../acl-requests.ts';
import type { ObjectInput, ObjectOutput } from '../../object-model.ts';

/** A place in the global log, as answers tell it. */
export interface Place {
  readonly epoch: number;
  readonly seq: number;
}

/** Who was asked: a server in one of its lives, of the datacenter at this place. */
export interface Asked {
  readonly host: string;
  readonly life: number;
  readonly site: number;
}

export interface GlobalWrite {
  readonly requestId: string;
  /** Whose request it is, where it is not that of the token which all clients present. */
  readonly owner?: string;
  readonly input: ObjectInput;
  readonly callMs: number;
  returnMs: number;
  /** nothing: it was said that nothing was done; withheld: that it was done, and not what came of it. */
  output: ObjectOutput | 'unknown' | 'nothing' | 'withheld';
  /** Where it stands, as the answer says, and who has it. */
  stands: { readonly at: Place; readonly ack: AckLevel } | undefined;
  /** Who answered that it can be read there by now. */
  visibleAt: Asked | undefined;
}

/** default: as new as the datacenter has it; stale: as this server has it; position: not before a place. */
export type GlobalConsistency = 'default' | 'stale' | 'position';

/** What a read may be about. */
export type ReadTarget =
  | Target
  | LoginTarget
  | TenantTarget
  | ChangedTarget
  | RightTarget
  | LocalRightTarget;

export interface GlobalRead {
  readonly kind: 'object' | 'presented' | 'authorized';
  readonly target: ReadTarget;
  readonly consistency: GlobalConsistency;
  /** Not before it; of `position`. */
  readonly from: Place | undefined;
  readonly asked: Asked;
  /** Where the server was, as it said. */
  readonly at: Place | undefined;
  readonly callMs: number;
  readonly returnMs: number;
  readonly output: ObjectOutput;
}

/** All policies that clients made, at once. */
export interface GlobalListing {
  readonly asked: Asked;
  readonly returnMs: number;
  /** `name index`, in order. */
  readonly found: readonly string[];
}

export interface GlobalHistory {
  readonly writes: readonly GlobalWrite[];
  readonly reads: readonly GlobalRead[];
  readonly listings: readonly GlobalListing[];
}

export function placeIn({ headers }: HttpAnswer): Place | undefined {
  const [epoch, seq] = String(headers['x-service-position'] ?? '').split('.');
  return epoch === undefined || seq === undefined
    ? undefined
    : { epoch: Number(epoch), seq: Number(seq) };
}

export function ackIn({ headers }: HttpAnswer): AckLevel {
  return (headers['x-service-ack'] as AckLevel | undefined) ?? 'primary';
}

export function isBefore(left: Place, right: Place): boolean {
  return left.epoch === right.epoch ? left.seq < right.seq : left.epoch < right.epoch;
}
