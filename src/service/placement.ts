// Where an operation runs: here, at this datacenter's leader, or in the primary datacenter. Pure; what
// carries a call there is somebody else's work.

import { unreachable } from '../../cluster/base/unreachable.ts';
import type { OperationFacts } from './operation-table.ts';

export type Placement =
  | { readonly kind: 'here' }
  | { readonly kind: 'leader' }
  | { readonly kind: 'datacenter'; readonly name: string };

export interface Topology {
  readonly datacenter: string;
  readonly primaryDatacenter: string;
  readonly isLeader: boolean;
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
}

/** A pure function of its arguments. A named datacenter must be known to exist. */
export function placementOf(question: PlacementQuestion, topology: Topology): Placement {
  const wanted = datacenterOf(question, topology);
  if (wanted !== topology.datacenter) return { kind: 'datacenter', name: wanted };
  // Reads answer from this node's state, behind a barrier unless they are stale.
  if (topology.isLeader || question.facts.kind === 'read') return { kind: 'here' };
  return { kind: 'leader' };
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
      // What this datacenter does not know can only be the primary's to know.
      return question.isLocalToken === true ? topology.datacenter : topology.primaryDatacenter;
    default:
      return unreachable(facts.scope);
  }
}
