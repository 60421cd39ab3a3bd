// Where an operation runs: in this datacenter or in another one. Pure; what carries a call there, or here to the
// leader, is somebody else's work.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { OperationFacts } from '../operation-table.ts';

export type Placement =
  /** In this datacenter: a read at this server, a write by its leader. */
  | { readonly kind: 'here' }
  | { readonly kind: 'datacenter'; readonly name: string }
  /**
   * Another datacenter sent it here, and it belongs to `name`: whoever sent it knows an older primary. It
   * is sent no further, so that nothing goes round in circles.
   */
  | { readonly kind: 'astray'; readonly name: string }
  /** Another datacenter sent it here, and the answer would show it a token that lives here alone. */
  | { readonly kind: 'local-here' }
  /**
   * The datacenter `name` sent a login here because it does not know the auth method, whose tokens are made
   * where they are asked for: the method has not come there yet.
   */
  | { readonly kind: 'ahead'; readonly name: string };

export interface Topology {
  readonly datacenter: string;
  readonly primaryDatacenter: string;
}

export interface PlacementQuestion {
  readonly facts: OperationFacts;
  /** The datacenter that the request names, if the operation takes one. */
  readonly datacenter: string | undefined;
  /**
   * Whether the token that is made or changed lives in one datacenter alone. Undefined where it is
   * not known yet: the token, or its auth method, is not in this state.
   */
  readonly isLocalToken: boolean | undefined;
  /** The datacenter that sent the call; undefined when a client of this one did. */
  readonly from: string | undefined;
}

/** A pure function of its arguments. A named datacenter must be known to exist. */
export function placementOf(question: PlacementQuestion, topology: Topology): Placement {
  const { facts, from, isLocalToken } = question;
  if (from !== undefined && isAhead(question, topology)) return { kind: 'ahead', name: from };
  const wanted = datacenterOf(question, topology);
  if (wanted !== topology.datacenter) {
    return { kind: from === undefined ? 'datacenter' : 'astray', name: wanted };
  }
  if (from !== undefined && isLocalToken === true && facts.answersWithToken) {
    return { kind: 'local-here' };
  }
  return { kind: 'here' };
}

/** Whether the token that it is about decides where it runs. */
export function isOfToken({ scope }: OperationFacts): boolean {
  return scope === 'by-token' || scope === 'by-method';
}

/** Whoever names this datacenter wants no token of its own. */
function isAhead({ facts, datacenter, isLocalToken }: PlacementQuestion, own: Topology): boolean {
  return facts.scope === 'by-method' && isLocalToken === true && datacenter !== own.datacenter;
}

function datacenterOf(question: PlacementQuestion, topology: Topology): string {
  const { facts, datacenter } = question;
  switch (facts.scope) {
    case 'local':
      return (facts.takesDatacenter ? datacenter : undefined) ?? topology.datacenter;
    case 'global':
      return topology.primaryDatacenter;
    case 'by-token':
    case 'by-method':
      // What all share is written in the primary, whichever datacenter is named.
      if (question.isLocalToken === false) return topology.primaryDatacenter;
      if (facts.takesDatacenter && datacenter !== undefined && !isUnknownHere(question, topology)) {
        return datacenter;
      }
      // What this datacenter does not know can only be the primary's to know.
      return question.isLocalToken === true ? topology.datacenter : topology.primaryDatacenter;
    default:
      return unreachable(facts.scope);
  }
}

/** The client names the datacenter that it asks: what that does not know may be global, and not here yet. */
function isUnknownHere({ datacenter, from, isLocalToken }: PlacementQuestion, own: Topology) {
  return from === undefined && isLocalToken === undefined && datacenter === own.datacenter;
}
